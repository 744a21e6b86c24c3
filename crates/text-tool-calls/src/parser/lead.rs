//! `Lead`: white space and fences whose meaning depends on what follows.

use super::input::Tail;
use super::marker::{Marker, marker_at, space_within};
use super::steps;

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
    /// The open fence that is text.
    text_fence: Option<TextFence>,
}

/// A fence that is text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextFence {
    /// It ends with a line.
    Lines,
    /// It ends anywhere, since its content began on its line.
    Inline,
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

/// The text before a lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    Text,
    Call,
}

/// The place of a text in its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InLine {
    Start,
    Middle,
}

impl InLine {
    /// Returns the place after `text`, which begins at this place.
    pub(super) fn after(self, text: &str) -> Self {
        match text.chars().next_back() {
            Some('\n') => Self::Start,
            Some(_) => Self::Middle,
            None => self,
        }
    }
}

impl Lead {
    /// Looks at the text after the lead.
    pub(super) fn next(&mut self, rest: &str, after: After, place: InLine, tail: Tail) -> Next {
        let first = rest.chars().next().unwrap_or_default();
        match first {
            // A step takes no more than fits, so the bound does not depend on how the text is cut.
            first if first.is_whitespace() && self.text.len() + first.len_utf8() <= MAX_LEAD => {
                Next::Lead(space_within(rest, MAX_LEAD - self.text.len()))
            }
            '`' if self.in_fence && after == After::Call => match closing_fence(rest) {
                (Marker::Whole, length) => Next::FenceEnd(length),
                (Marker::Maybe, _) if tail == Tail::Open => Next::Undecided,
                _ => Next::Other(first),
            },
            '`' if self.text_fence == Some(TextFence::Inline) => self.in_inline_fence(rest, tail),
            '`' if place == InLine::Start => self.at_line_start(rest, tail),
            '`' if self.text_fence.is_none() => self.within_line(rest, tail),
            first => Next::Other(first),
        }
    }

    fn in_inline_fence(&mut self, rest: &str, tail: Tail) -> Next {
        match closing_fence(rest) {
            (Marker::Maybe, _) if tail == Tail::Open => return Next::Undecided,
            (Marker::Whole, _) => self.text_fence = None,
            _ => {}
        }
        Next::Other('`')
    }

    fn at_line_start(&mut self, rest: &str, tail: Tail) -> Next {
        match opening_fence(rest) {
            Fence::Undecided if tail == Tail::Open => Next::Undecided,
            Fence::Line(length) | Fence::Inline(length) if self.may_begin_fence(length) => Next::Lead(length),
            fence => {
                // A line with other text after the fence is one, too, and so is the end of one.
                if !matches!(fence, Fence::None) || rest.starts_with(FENCE) {
                    self.text_fence = match self.text_fence {
                        Some(_) => None,
                        None => Some(TextFence::Lines),
                    };
                }
                Next::Other('`')
            }
        }
    }

    /// Models also open a fence behind other words of the line. Then only a language may follow it.
    fn within_line(&self, rest: &str, tail: Tail) -> Next {
        match opening_fence(rest) {
            Fence::Undecided if tail == Tail::Open && is_one_word(rest) => Next::Undecided,
            Fence::Line(length) if is_one_word(rest) && self.may_begin_fence(length) => Next::Lead(length),
            Fence::Inline(length) if self.may_begin_fence(length) => Next::Lead(length),
            _ => Next::Other('`'),
        }
    }

    fn may_begin_fence(&self, length: usize) -> bool {
        self.text_fence.is_none() && self.text.len() + length <= MAX_LEAD
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
        if let Some((_, line)) = self.text.rsplit_once('`') {
            let fence = if line.contains('\n') { TextFence::Lines } else { TextFence::Inline };
            self.text_fence.get_or_insert(fence);
        }
        std::mem::take(&mut self.text)
    }
}

/// Whether a text begins with the opening of a fence.
enum Fence {
    /// The bytes of the line, its line break included.
    Line(usize),
    /// The bytes before something that may be a call, on the line of the fence.
    Inline(usize),
    Undecided,
    None,
}

/// Checks whether no white space is within the first line of a text, or only at its end.
fn is_one_word(text: &str) -> bool {
    let line = text.split('\n').next().unwrap_or_default();
    steps::count(line.len());
    !line.trim_end().contains(char::is_whitespace)
}

fn opening_fence(text: &str) -> Fence {
    match marker_at(text, FENCE) {
        Marker::Whole => {}
        Marker::Maybe => return Fence::Undecided,
        Marker::None => return Fence::None,
    }
    for (at, letter) in text.char_indices().skip(FENCE.len()) {
        steps::count(1);
        match letter {
            '\n' => return Fence::Line(at + 1),
            _ if at > FENCE.len() + MAX_LANGUAGE => return Fence::None,
            '{' | '[' | '<' if is_language(text.get(FENCE.len()..at)) => return Fence::Inline(at),
            ' ' | '\r' | '_' | '-' | '+' | '.' => {}
            letter if letter.is_ascii_alphanumeric() => {}
            _ => return Fence::None,
        }
    }
    if text.len() > FENCE.len() + MAX_LANGUAGE { Fence::None } else { Fence::Undecided }
}

/// Checks for a word that follows a fence at once, or for nothing.
fn is_language(text: Option<&str>) -> bool {
    text.is_some_and(|text| !text.trim_end().contains(char::is_whitespace))
}

/// Returns whether a text begins with a closing fence, and its bytes.
fn closing_fence(text: &str) -> (Marker, usize) {
    (marker_at(text, FENCE), FENCE.len())
}
