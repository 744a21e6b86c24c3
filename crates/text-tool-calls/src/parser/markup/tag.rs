//! `Tag` and `TagScan`: parses a tag that arrives in pieces.

use super::entities::decoded;
use crate::parser::steps;

/// The bytes of a name beyond which a tag is text.
const MAX_NAME: usize = 128;

/// A tag: `<name a="1">`, `</name>` or `<name/>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tag {
    pub(crate) name: String,
    pub(crate) kind: TagKind,
    pub(crate) attributes: Vec<(String, String)>,
    /// The bytes from `<` to `>`.
    pub(crate) length: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TagKind {
    Opening,
    Closing,
    /// Opening and closing in one.
    Empty,
}

impl Tag {
    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        let mut attributes = self.attributes.iter();
        attributes.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub(crate) fn is(&self, kind: TagKind, name: &str) -> bool {
        self.kind == kind && self.name.eq_ignore_ascii_case(name)
    }
}

/// Finds the end of a tag at the start of a text that arrives in pieces.
#[derive(Debug, Default)]
pub(crate) struct TagScan {
    /// The bytes that were looked at.
    seen: usize,
    quote: Option<u8>,
}

/// The end of a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TagEnd {
    /// The tag may go on.
    Undecided,
    /// The text does not begin with a tag; this many bytes are no tag.
    None(usize),
    /// The tag has this many bytes.
    At(usize),
}

#[derive(Debug)]
pub(crate) enum Scanned {
    /// The tag may go on.
    Incomplete,
    /// The text does not begin with a tag; this many bytes are no tag.
    NoTag(usize),
    Tag(Tag),
}

impl TagScan {
    /// Looks at the text from its `<` on. It must begin with the same bytes as in the call before.
    pub(crate) fn scan(&mut self, text: &str) -> Scanned {
        match self.end(text) {
            TagEnd::Undecided => Scanned::Incomplete,
            TagEnd::None(length) => Scanned::NoTag(length),
            TagEnd::At(length) => {
                let inside = text.get(1..length - 1).unwrap_or_default();
                parse(inside, length).map_or(Scanned::NoTag(length), Scanned::Tag)
            }
        }
    }

    /// Finds the `>` outside quotes, in the same way.
    pub(crate) fn end(&mut self, text: &str) -> TagEnd {
        let bytes = text.as_bytes();
        for byte in bytes.iter().skip(self.seen) {
            self.seen += 1;
            steps::count(1);
            match (self.quote, *byte) {
                (Some(quote), byte) if byte == quote => self.quote = None,
                (Some(_), _) => {}
                (None, byte @ (b'"' | b'\'')) => self.quote = Some(byte),
                (None, b'<') if self.seen > 1 => return TagEnd::None(self.seen - 1),
                (None, b'>') => return TagEnd::At(self.seen),
                (None, _) => {}
            }
        }
        TagEnd::Undecided
    }
}

/// Parses the text between `<` and `>`.
fn parse(inside: &str, length: usize) -> Option<Tag> {
    let (kind, inside) = match (inside.strip_prefix('/'), inside.strip_suffix('/')) {
        (Some(rest), _) => (TagKind::Closing, rest),
        (None, Some(rest)) => (TagKind::Empty, rest),
        (None, None) => (TagKind::Opening, inside),
    };
    let (name, rest) = inside
        .split_at_checked(name_of(inside).len())
        .filter(|(name, _)| (1..=MAX_NAME).contains(&name.len()))?;
    Some(Tag { name: name.to_owned(), kind, attributes: attributes(rest)?, length })
}

/// Parses attributes, each after white space; `None` if there is anything else.
///
/// Values need quotes: people write about tags in the form `<tool name=time>`, and models follow the quoted
/// examples.
pub(crate) fn attributes(text: &str) -> Option<Vec<(String, String)>> {
    steps::count(text.len());
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    if !text.is_empty() && rest.len() == text.len() {
        return None;
    }
    while !rest.is_empty() {
        let (name, after) =
            rest.split_at_checked(name_of(rest).len()).filter(|(name, _)| !name.is_empty())?;
        let value = after.trim_start().strip_prefix('=')?.trim_start();
        let quote = value.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
        let (value, after) = value.get(1..)?.split_once(quote)?;
        found.push((name.to_owned(), decoded(value)));
        rest = after.trim_start();
    }
    Some(found)
}

/// Returns the name at the start of a text, which may be empty.
pub(crate) fn name_of(text: &str) -> &str {
    let end = text.find(|letter: char| !is_name(letter)).unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}

fn is_name(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.' | ':')
}
