//! `Markup`: the tags of DeepSeek's markup (DSML).

use crate::parser::input::Tail;
use crate::parser::marker::{Marker, marker_at};
use crate::parser::markup::tag::{TagEnd, TagScan, attributes};

/// The bar around `DSML` in the model's own tokens.
pub(super) const BAR: char = '\u{ff5c}';
/// The bar that some servers write in its place.
pub(super) const ASCII_BAR: char = '|';
const LISTS: [&str; 2] = ["function_calls>", "tool_calls>"];

/// The tags of the markup with one kind of bars.
#[derive(Debug)]
pub(super) struct Markup {
    bar: char,
    max_tag: usize,
    /// The beginnings of an opening and of a closing tag.
    open: String,
    close: String,
    /// The scan of the tag that is undecided.
    scan: TagScan,
}

/// The tag of a list of calls at the start of a text, with its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListTag {
    Opening(usize),
    Closing(usize),
    /// Depends on what follows.
    Undecided,
    None,
}

/// A tag with attributes at the start of a text.
#[derive(Debug)]
pub(super) enum Tag {
    Whole(Attributes, usize),
    /// Depends on what follows.
    Undecided,
    /// The text begins with no such tag; this many bytes are none.
    None(usize),
}

/// The attributes of a tag.
#[derive(Debug)]
pub(super) struct Attributes(Vec<(String, String)>);

impl Attributes {
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns the name, unless it is blank.
    pub(super) fn name(&self) -> Option<&str> {
        self.attribute("name").map(str::trim).filter(|name| !name.is_empty())
    }
}

impl Markup {
    pub(super) fn new(bar: char, max_tag: usize) -> Self {
        let (open, close) = (format!("<{bar}DSML{bar}"), format!("</{bar}DSML{bar}"));
        Self { bar, max_tag, open, close, scan: TagScan::default() }
    }

    /// Changes to these bars, unless the markup has them.
    pub(super) fn set_bar(&mut self, bar: char) {
        if self.bar != bar {
            *self = Self::new(bar, self.max_tag);
        }
    }

    /// Returns the tag that closes the element `name`.
    pub(super) fn closing(&self, name: &str) -> String {
        format!("{}{name}>", self.close)
    }

    /// Looks for a tag of a list.
    pub(super) fn list_tag(&self, text: &str) -> ListTag {
        let mut found = ListTag::None;
        for list in LISTS {
            let (opening, closing) = (format!("{}{list}", self.open), format!("{}{list}", self.close));
            match (marker_at(text, &opening), marker_at(text, &closing)) {
                (Marker::Whole, _) => return ListTag::Opening(opening.len()),
                (_, Marker::Whole) => return ListTag::Closing(closing.len()),
                (Marker::Maybe, _) | (_, Marker::Maybe) => found = ListTag::Undecided,
                (Marker::None, Marker::None) => {}
            }
        }
        found
    }

    /// Looks for an opening tag of this name. While it is undecided, the text must begin with the same bytes.
    pub(super) fn tag(&mut self, name: &str, text: &str, tail: Tail) -> Tag {
        let begin = format!("{}{name} ", self.open);
        match marker_at(text, &begin) {
            Marker::Whole => {}
            Marker::Maybe if tail == Tail::Open => return Tag::Undecided,
            Marker::Maybe | Marker::None => return Tag::None(1),
        }
        let window = text.get(..text.floor_char_boundary(self.max_tag)).unwrap_or_default();
        let end = self.scan.end(window);
        if end == TagEnd::Undecided && tail == Tail::Open && text.len() < self.max_tag {
            return Tag::Undecided;
        }
        self.scan = TagScan::default();
        match end {
            TagEnd::Undecided => Tag::None(1),
            TagEnd::None(length) => Tag::None(length),
            TagEnd::At(length) => {
                let inside = text.get(begin.len() - 1..length - 1).unwrap_or_default();
                match attributes(inside) {
                    Some(attributes) => Tag::Whole(Attributes(attributes), length),
                    None => Tag::None(length),
                }
            }
        }
    }
}
