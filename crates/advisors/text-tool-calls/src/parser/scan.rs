//! Looks at text that may be cut anywhere: markers, the end of a text before a marker, tags and JSON values.

use super::steps;

/// The white space between two markers that belong together, in bytes.
pub(super) const MAX_SPACE: usize = 128;
/// The bytes of a name beyond which a tag is text.
const MAX_NAME: usize = 128;

/// Whether more text may follow the received one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tail {
    /// It may.
    Open,
    /// It does not, so all is decided.
    Ended,
}

/// Whether a text begins with something that is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// It does; it has this many bytes.
    Whole(usize),
    /// It depends on what follows.
    Undecided,
    /// It does not; this many bytes are something else.
    None(usize),
}

/// Compares the beginning of a text with a marker. Upper and lower case of ASCII letters are equal, and so are the bars of
/// DeepSeek's tokens and those of ASCII, which some servers write in their place.
pub(super) fn marker_at(text: &str, marker: &str, tail: Tail) -> Found {
    let mut letters = text.char_indices();
    for expected in marker.chars() {
        steps::count(1);
        match letters.next() {
            Some((_, letter)) if letter.eq_ignore_ascii_case(&expected) => {}
            Some((_, '|' | '｜')) if matches!(expected, '|' | '｜') => {}
            None if tail == Tail::Open => return Found::Undecided,
            _ => return Found::None(1),
        }
    }
    Found::Whole(letters.offset())
}

/// Checks whether two names are equal, as [`marker_at`] compares.
pub(super) fn is_name(text: &str, name: &str) -> bool {
    marker_at(text, name, Tail::Ended) == Found::Whole(text.len())
}

/// Returns the bytes of white space at the start of a text, up to a limit.
pub(super) fn space_within(text: &str, most: usize) -> usize {
    let window = text.get(..text.floor_char_boundary(most)).unwrap_or_default();
    let space = window.len() - window.trim_start().len();
    steps::count(space + 1);
    space
}

/// Finds the marker `close`. Returns the bytes before it and its length; without it, the bytes that are certainly before it.
/// With a `guard`, only a `close` right behind it counts, with white space between them.
pub(super) fn find_end(text: &str, guard: &str, close: &str, tail: Tail) -> (usize, Option<usize>) {
    let Some(first) = guard.chars().chain(close.chars()).next() else { return (0, Some(0)) };
    steps::count(text.len());
    for (at, _) in text.match_indices(first) {
        let from = text.get(at..).unwrap_or_default();
        let length = match marker_at(from, guard, tail) {
            Found::Whole(length) => length,
            Found::Undecided => return (at, None),
            Found::None(_) => continue,
        };
        let after = from.get(length..).unwrap_or_default();
        let space = if guard.is_empty() { 0 } else { space_within(after, MAX_SPACE) };
        match marker_at(after.get(space..).unwrap_or_default(), close, tail) {
            Found::Whole(close) => return (at, Some(length + space + close)),
            Found::Undecided => return (at, None),
            Found::None(_) => {}
        }
    }
    (text.len(), None)
}

/// Finds the end of a tag or of a JSON value at the start of a text that arrives in pieces.
///
/// Each look goes on where the one before ended, so the text must begin with the same bytes.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// The bytes that were looked at.
    seen: usize,
    depth: usize,
    quote: Option<u8>,
    is_escaped: bool,
    has_ended: bool,
}

impl Scan {
    /// Finds the `>` of a tag, outside of quotes. Another `<` begins another tag.
    pub(super) fn tag(&mut self, text: &str) -> Found {
        for byte in text.bytes().skip(self.seen) {
            self.seen += 1;
            steps::count(1);
            match (self.quote, byte) {
                (Some(quote), byte) if byte == quote => self.quote = None,
                (Some(_), _) => {}
                (None, b'"' | b'\'') => self.quote = Some(byte),
                (None, b'<') if self.seen > 1 => return Found::None(self.seen - 1),
                (None, b'>') => return Found::Whole(self.seen),
                (None, _) => {}
            }
        }
        Found::Undecided
    }

    /// Finds the bracket that closes a JSON object or list; white space may stand before it.
    ///
    /// A byte that JSON does not have outside strings ends the scan.
    pub(super) fn strict_json(&mut self, text: &str) -> Found {
        while let Some(byte) = text.as_bytes().get(self.seen).filter(|_| !self.has_ended) {
            let begins_or_goes_on =
                self.depth > 0 || matches!(byte, b'{' | b'[') || byte.is_ascii_whitespace();
            if !begins_or_goes_on || (!self.is_in_string() && !is_in_json(*byte)) {
                return Found::None(self.seen);
            }
            self.has_ended = self.closes_with(*byte);
        }
        if self.has_ended { Found::Whole(self.seen) } else { Found::Undecided }
    }

    /// Finds the bracket that closes a JSON object or list, whatever is in it.
    pub(super) fn json(&mut self, text: &str) -> Option<usize> {
        let rest = text.as_bytes().get(self.seen..).unwrap_or_default();
        let closes = rest.iter().any(|byte| self.closes_with(*byte));
        closes.then_some(self.seen)
    }

    /// Takes the next byte of JSON. Returns whether it closes the outermost bracket.
    pub(super) fn closes_with(&mut self, byte: u8) -> bool {
        steps::count(1);
        self.seen += 1;
        match (self.quote, byte) {
            (Some(_), _) if self.is_escaped => self.is_escaped = false,
            (Some(_), b'\\') => self.is_escaped = true,
            (Some(_), b'"') => self.quote = None,
            (None, b'"') => self.quote = Some(byte),
            (None, b'{' | b'[') => self.depth += 1,
            (None, b'}' | b']') => {
                self.depth = self.depth.saturating_sub(1);
                return self.depth == 0;
            }
            _ => {}
        }
        false
    }

    pub(super) fn is_in_string(&self) -> bool {
        self.quote.is_some()
    }

    /// Returns the number of open brackets.
    pub(super) fn depth(&self) -> usize {
        self.depth
    }
}

/// Checks for a byte that JSON may have outside strings.
fn is_in_json(byte: u8) -> bool {
    let is_literal = byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"+-.E".contains(&byte);
    is_literal || byte.is_ascii_whitespace() || b"{}[]:,\"".contains(&byte)
}

/// A tag: `<name a="1">`, `</name>` or `<name/>`.
#[derive(Debug)]
pub(super) struct Tag {
    pub(super) name: String,
    pub(super) kind: TagKind,
    pub(super) attributes: Vec<(String, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TagKind {
    Opening,
    Closing,
    /// Opening and closing in one.
    Empty,
}

impl Tag {
    /// Reads a tag, from its `<` to its `>`.
    ///
    /// Values need quotes: people write about tags in the form `<tool name=time>`, and models follow the quoted
    /// examples.
    pub(super) fn read(tag: &str) -> Option<Self> {
        steps::count(tag.len());
        let inside = tag.strip_prefix('<')?.strip_suffix('>')?;
        let (kind, inside) = match (inside.strip_prefix('/'), inside.strip_suffix('/')) {
            (Some(rest), _) => (TagKind::Closing, rest),
            (None, Some(rest)) => (TagKind::Empty, rest),
            (None, None) => (TagKind::Opening, inside),
        };
        let (name, mut rest) = split_name(inside).filter(|(name, _)| name.len() <= MAX_NAME)?;
        let mut attributes = Vec::new();
        while !rest.trim_start().is_empty() {
            let (name, after) = split_name(rest.strip_prefix(char::is_whitespace)?.trim_start())?;
            let value = after.trim_start().strip_prefix('=')?.trim_start();
            let quote = value.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
            let (value, after) = value.get(1..)?.split_once(quote)?;
            attributes.push((name.to_owned(), crate::entities::decoded(value)));
            rest = after;
        }
        Some(Self { name: name.to_owned(), kind, attributes })
    }

    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        let mut attributes = self.attributes.iter();
        attributes.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub(super) fn is(&self, kind: TagKind, name: &str) -> bool {
        self.kind == kind && is_name(&self.name, name)
    }
}

/// Splits a text behind the name at its start. DeepSeek's names have bars in them.
fn split_name(text: &str) -> Option<(&str, &str)> {
    let is_name = |letter: char| letter.is_alphanumeric() || "_-.:|\u{ff5c}".contains(letter);
    let end = text.find(|letter| !is_name(letter)).unwrap_or(text.len());
    text.split_at_checked(end).filter(|(name, _)| !name.is_empty())
}
