//! Reasoning that a server leaves at the beginning of a text, between tags (Q65).

use std::mem;

use advisor_core::DeltaKind;

use crate::profile::ThinkTags;

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";
/// The most bytes of white space before the opening tag. At most the length of a tag is held back.
const MOST_SPACE: usize = 2;

/// Splits a text into the reasoning at its beginning and the rest.
///
/// Any split of the text gives the same reasoning and the same rest. At most a tag is held back.
#[derive(Debug)]
pub(super) struct ThinkTagSplitter {
    tags: ThinkTags,
    stage: Stage,
    /// Text that may begin a tag.
    held: String,
    /// Whether reasoning came in a separate field. Reasoning in the text only repeats it.
    has_reasoning: bool,
}

/// The place of the next piece of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The beginning of the text, where an opening tag may follow.
    Beginning,
    Reasoning,
    /// Behind the closing tag. White space here is left out.
    AfterReasoning,
    Text,
}

impl ThinkTagSplitter {
    pub(super) fn new(tags: ThinkTags) -> Self {
        let stage = if tags == ThinkTags::AsText { Stage::Text } else { Stage::Beginning };
        Self { tags, stage, held: String::new(), has_reasoning: false }
    }

    /// Checks whether everything that follows is text.
    pub(super) fn is_over(&self) -> bool {
        self.stage == Stage::Text
    }

    /// Notes reasoning in a separate field: a text that begins after it is no reasoning without an opening tag.
    pub(super) fn note_reasoning(&mut self) {
        self.has_reasoning = true;
        if self.stage == Stage::Beginning && self.tags == ThinkTags::OpenedByPrompt {
            self.tags = ThinkTags::Leading;
        }
    }

    /// Emits the text as far as it is decided.
    #[inline]
    pub(super) fn push(&mut self, text: &str, emit: &mut impl FnMut(DeltaKind)) {
        if self.is_over() {
            return emit(DeltaKind::Text(text.into()));
        }
        let mut undecided = mem::take(&mut self.held);
        undecided.push_str(text);
        self.held = self.split(&undecided, emit).to_owned();
    }

    /// Emits the held text. Everything that follows is text.
    pub(super) fn end(&mut self, emit: &mut impl FnMut(DeltaKind)) {
        let held = mem::take(&mut self.held);
        let stage = mem::replace(&mut self.stage, Stage::Text);
        if held.is_empty() {
            return;
        }
        match stage {
            Stage::Beginning if self.tags == ThinkTags::OpenedByPrompt => self.emit_reasoning(&held, emit),
            Stage::Reasoning => self.emit_reasoning(&held, emit),
            _ => emit(DeltaKind::Text(held.into())),
        }
    }

    fn emit_reasoning(&self, text: &str, emit: &mut impl FnMut(DeltaKind)) {
        if !text.is_empty() && !self.has_reasoning {
            emit(DeltaKind::Reasoning(text.into()));
        }
    }

    /// Emits a text as far as it is decided. Returns the rest.
    fn split<'a>(&mut self, text: &'a str, emit: &mut impl FnMut(DeltaKind)) -> &'a str {
        let mut rest = text;
        if self.stage == Stage::Beginning {
            let tag = rest.trim_start();
            let is_near = rest.len() - tag.len() <= MOST_SPACE;
            match tag.strip_prefix(OPEN).filter(|_| is_near) {
                Some(after) => (self.stage, rest) = (Stage::Reasoning, after),
                None if is_near && OPEN.starts_with(tag) => return rest,
                None if self.tags == ThinkTags::OpenedByPrompt => self.stage = Stage::Reasoning,
                None => self.stage = Stage::Text,
            }
        }
        if self.stage == Stage::Reasoning {
            let closed = rest.split_once(CLOSE);
            let (reasoning, after) = closed.unwrap_or_else(|| split_before_tag(rest));
            self.emit_reasoning(reasoning, emit);
            if closed.is_none() {
                return after;
            }
            (self.stage, rest) = (Stage::AfterReasoning, after);
        }
        if self.stage == Stage::AfterReasoning {
            rest = rest.trim_start();
        }
        if !rest.is_empty() {
            self.stage = Stage::Text;
            emit(DeltaKind::Text(rest.into()));
        }
        ""
    }
}

/// Splits a text before its end, as far as that may be the beginning of a closing tag.
fn split_before_tag(text: &str) -> (&str, &str) {
    let begins_tag = |length: &usize| CLOSE.get(..*length).is_some_and(|begin| text.ends_with(begin));
    let length = (1..CLOSE.len()).rev().find(begins_tag).unwrap_or(0);
    text.split_at_checked(text.len() - length).unwrap_or((text, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Text as it is, reasoning in brackets.
    fn split_in(tags: ThinkTags, pieces: &[&str]) -> String {
        let (mut splitter, mut kinds) = (ThinkTagSplitter::new(tags), Vec::new());
        for piece in pieces {
            splitter.push(piece, &mut |kind| kinds.push(kind));
            assert!(splitter.held.len() <= CLOSE.len(), "no more than a tag is held back");
        }
        splitter.end(&mut |kind| kinds.push(kind));
        let shown = kinds.into_iter().map(|kind| match kind {
            DeltaKind::Text(text) => text.to_string(),
            DeltaKind::Reasoning(text) => format!("[{text}]"),
            other => panic!("{other:?}"),
        });
        shown.collect::<String>().replace("][", "")
    }

    #[test]
    fn law_s5_leading_reasoning_is_split_at_every_cut() {
        use ThinkTags::{AsText, Leading, OpenedByPrompt};
        for (tags, text, expected) in [
            (AsText, "<think>a</think>b", "<think>a</think>b"),
            (Leading, "<think>\na</think>\n\nb</think> <think>c", "[\na]b</think> <think>c"),
            (Leading, "\n\n<think>a</think>é", "[a]é"),
            (Leading, "   <think>a</think>", "   <think>a</think>"),
            (Leading, "  a", "  a"),
            (Leading, "\n", "\n"),
            (Leading, "<thin", "<thin"),
            (Leading, "<thin king", "<thin king"),
            (Leading, "Is <think>a</think> a tag?", "Is <think>a</think> a tag?"),
            (Leading, "<think>a < b </</think", "[a < b </</think]"),
            (Leading, "<think>é<</think>", "[é<]"),
            (Leading, "<think></think>", ""),
            (OpenedByPrompt, "a</think>\nb", "[a]b"),
            (OpenedByPrompt, "<think>a</think>b", "[a]b"),
            (OpenedByPrompt, "<th", "[<th]"),
            (OpenedByPrompt, "</think>b</think>", "b</think>"),
        ] {
            let letters: Vec<String> = text.chars().map(String::from).collect();
            let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
            assert_eq!(split_in(tags, &letters), expected, "{text:?}");
            for at in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
                assert_eq!(split_in(tags, &[&text[..at], &text[at..]]), expected, "{text:?} at {at}");
            }
        }
    }
}
