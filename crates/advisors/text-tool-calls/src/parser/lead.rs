//! `Lead`: white space and fences before a call, whose meaning depends on what follows.

use super::scan::{Found, Tail, marker_at, space_within};
use super::steps;

/// The white space and the fences before a call that are held back, in bytes.
const MAX_LEAD: usize = 1024;
const FENCE: &str = "```";
/// The bytes of the language and the white space after a fence.
const MAX_LANGUAGE: usize = 32;

/// White space and fences whose meaning depends on what follows.
#[derive(Default)]
pub(super) struct Lead {
    text: String,
    /// Whether the last call was in a fence that is still open.
    in_fence: bool,
    /// Whether a fence that is text is open.
    in_text_fence: bool,
}

/// The text before a lead.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    Text,
    Call,
}

/// The beginning of the text after a lead.
pub(super) enum Next {
    /// Text that belongs to the lead, with its bytes.
    Lead(usize),
    /// The end of the fence around a call, with its bytes.
    FenceEnd(usize),
    /// A fence that is text, with its bytes.
    TextFence(usize),
    /// Something else, with this first character.
    Other(char),
    /// Perhaps a fence, depending on what follows.
    Undecided,
}

impl Lead {
    /// Looks at the text after the lead.
    pub(super) fn next(&self, rest: &str, after: After, tail: Tail) -> Next {
        let first = rest.chars().next().unwrap_or_default();
        let left = MAX_LEAD - self.text.len();
        // A step takes no more than fits, so the bound does not depend on how the text is cut.
        if first.is_whitespace() && first.len_utf8() <= left {
            return Next::Lead(space_within(rest, left));
        }
        match marker_at(rest, FENCE, tail) {
            Found::Undecided if first == '`' => Next::Undecided,
            Found::Undecided | Found::None(_) => Next::Other(first),
            Found::Whole(_) if self.in_fence && after == After::Call => Next::FenceEnd(FENCE.len()),
            // A call is in one fence.
            Found::Whole(_) if self.in_text_fence || self.has_fence() => Next::TextFence(FENCE.len()),
            Found::Whole(_) => opening_fence(rest, left, tail),
        }
    }

    fn has_fence(&self) -> bool {
        self.text.contains('`')
    }

    pub(super) fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    pub(super) fn is_white_space(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// Takes the lead of a call; a fence in it is around the call.
    pub(super) fn take_before_call(&mut self) -> String {
        self.in_fence |= self.has_fence();
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
        self.in_text_fence |= self.has_fence();
        std::mem::take(&mut self.text)
    }

    /// Notes a fence that is text: it opens one, or closes the open one.
    pub(super) fn pass_text_fence(&mut self) {
        self.in_text_fence = !self.in_text_fence;
    }
}

/// Looks at a fence: a language may follow it, then a call, on the same line or the next one.
fn opening_fence(text: &str, left: usize, tail: Tail) -> Next {
    let window = text.get(..text.floor_char_boundary(FENCE.len() + MAX_LANGUAGE)).unwrap_or_default();
    steps::count(window.len());
    let is_language = |letter: char| letter.is_ascii_alphanumeric() || "_-+.".contains(letter);
    let after = window.get(FENCE.len()..).unwrap_or_default().trim_start_matches(is_language);
    let after = after.trim_start_matches([' ', '\t', '\r']);
    let length = window.len() - after.len();
    match after.chars().next() {
        Some('\n') if length < left => Next::Lead(length + 1),
        Some('{' | '[' | '<') if length <= left => Next::Lead(length),
        None if window.len() == text.len() && tail == Tail::Open => Next::Undecided,
        _ => Next::TextFence(FENCE.len()),
    }
}
