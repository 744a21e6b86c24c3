use super::marker::{Marker, marker_at};

/// The white space and the fences before a call that are held back, in bytes.
const MAX_LEAD: usize = 1024;

const FENCE: &str = "```";
/// The bytes of the language after a fence beyond which a line is no fence.
const MAX_LANGUAGE: usize = 32;

/// White space and fences whose meaning depends on what follows.
#[derive(Debug, Default)]
pub(super) struct Lead {
    text: String,
    /// Whether the last call was in a fence that is still open.
    in_fence: bool,
    /// Whether a fence is open that is text.
    in_text_fence: bool,
}

/// The beginning of the text after a lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Text that belongs to the lead, with its length in bytes.
    Lead(usize),
    /// The end of the fence around a call, with its length in bytes.
    FenceEnd(usize),
    /// Something else, with this first character.
    Other(char),
    /// Perhaps a fence, depending on what follows.
    Undecided,
}

impl Lead {
    /// Looks at the text after the lead; `after_call` tells whether the lead follows a call.
    pub(super) fn next(&mut self, rest: &str, after_call: bool, at_line_start: bool, at_end: bool) -> Next {
        let first = rest.chars().next().unwrap_or_default();
        match first {
            // A step takes no more than fits, so the bound does not depend on how the text is cut.
            first if first.is_whitespace() && self.text.len() + first.len_utf8() <= MAX_LEAD => {
                Next::Lead(space_within(rest, MAX_LEAD - self.text.len()))
            }
            '`' if self.in_fence && after_call => match closing_fence(rest) {
                (Marker::Whole, length) => Next::FenceEnd(length),
                (Marker::Maybe, _) if !at_end => Next::Undecided,
                _ => Next::Other(first),
            },
            '`' if at_line_start => match opening_fence(rest) {
                Fence::Undecided if !at_end => Next::Undecided,
                Fence::Line(length) if !self.in_text_fence && self.text.len() + length <= MAX_LEAD => {
                    Next::Lead(length)
                }
                fence => {
                    // A line with other text after the fence is one, too, and so is the end of one.
                    self.in_text_fence ^= !matches!(fence, Fence::None) || rest.starts_with(FENCE);
                    Next::Other(first)
                }
            },
            // Models also open a fence behind other words of the line. Then only a language may follow it.
            '`' if !self.in_text_fence => match opening_fence(rest) {
                Fence::Undecided if !at_end && is_one_word(rest) => Next::Undecided,
                Fence::Line(length) if is_one_word(rest) && self.text.len() + length <= MAX_LEAD => {
                    Next::Lead(length)
                }
                _ => Next::Other(first),
            },
            first => Next::Other(first),
        }
    }

    pub(super) fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    pub(super) fn is_white_space(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// Takes the lead of a call; a fence in it is around the call.
    pub(super) fn take_before_call(&mut self) -> String {
        self.in_fence |= self.text.contains('`');
        std::mem::take(&mut self.text)
    }

    /// Takes the lead before the end of a fence.
    pub(super) fn take_before_fence_end(&mut self) -> String {
        self.in_fence = false;
        std::mem::take(&mut self.text)
    }

    /// Takes the lead of a text, which is text as well.
    pub(super) fn take_before_text(&mut self) -> String {
        self.in_fence = false;
        self.in_text_fence |= self.text.contains('`');
        std::mem::take(&mut self.text)
    }
}

/// Returns the bytes of white space at the start of a text, at most so many.
fn space_within(text: &str, most: usize) -> usize {
    let window = text.get(..text.floor_char_boundary(most)).unwrap_or_default();
    window.len() - window.trim_start().len()
}

/// Whether a text begins with a line that opens a fence.
enum Fence {
    /// The bytes of the line, its line break included.
    Line(usize),
    Undecided,
    None,
}

/// Checks whether no white space is within the first line of a text.
fn is_one_word(text: &str) -> bool {
    let line = text.split('\n').next().unwrap_or_default();
    !line.trim_end_matches('\r').contains(char::is_whitespace)
}

fn opening_fence(text: &str) -> Fence {
    match marker_at(text, FENCE) {
        Marker::Whole => {}
        Marker::Maybe => return Fence::Undecided,
        Marker::None => return Fence::None,
    }
    for (at, letter) in text.char_indices().skip(FENCE.len()) {
        match letter {
            '\n' => return Fence::Line(at + 1),
            _ if at > FENCE.len() + MAX_LANGUAGE => return Fence::None,
            ' ' | '\r' | '_' | '-' | '+' | '.' => {}
            letter if letter.is_ascii_alphanumeric() => {}
            _ => return Fence::None,
        }
    }
    if text.len() > FENCE.len() + MAX_LANGUAGE { Fence::None } else { Fence::Undecided }
}

/// Returns whether a text begins with a closing fence, and its bytes.
fn closing_fence(text: &str) -> (Marker, usize) {
    (marker_at(text, FENCE), FENCE.len())
}
