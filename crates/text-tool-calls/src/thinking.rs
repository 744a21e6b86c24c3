//! `ThinkingSplitter`: separates reasoning between tags from text.

use advisor_core::Text;

/// Separates reasoning that a model writes into its text, between tags such as `<think>` and `</think>`.
///
/// Any split of the text gives the same pieces, if neighbouring ones are joined. Only the beginning of a tag is
/// held back: less than the longest tag. Reasoning may come several times. Without a closing tag, it goes on to the
/// end. White space right after the closing tag is left out.
///
/// # Example
/// ```
/// use text_tool_calls::{ThinkingSplitter, ThoughtPiece};
///
/// let mut splitter = ThinkingSplitter::new();
/// let mut pieces = Vec::new();
/// for text in ["<thi", "nk>Hm.</th", "ink>\n\nYes."] {
///     splitter.push(text, &mut pieces);
/// }
/// splitter.finish(&mut pieces);
/// assert_eq!(pieces, [ThoughtPiece::Reasoning("Hm.".into()), ThoughtPiece::Text("Yes.".into())]);
/// ```
#[derive(Debug, Clone)]
pub struct ThinkingSplitter {
    tags: Vec<(Text, Text)>,
    held: String,
    /// The closing tag, within reasoning.
    close: Option<Text>,
    /// Whether white space is left out, right after a closing tag.
    skips_space: bool,
}

/// A piece of a text with reasoning in it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "text or reasoning")]
pub enum ThoughtPiece {
    /// Text for the user.
    Text(String),
    /// Reasoning.
    Reasoning(String),
}

impl Default for ThinkingSplitter {
    fn default() -> Self {
        Self::new()
    }
}

impl ThinkingSplitter {
    /// Creates a splitter for the tags `think`, `thinking`, `thought` and `reasoning`.
    #[must_use]
    pub fn new() -> Self {
        Self::with_tags(
            ["think", "thinking", "thought", "reasoning"]
                .map(|name| (format!("<{name}>"), format!("</{name}>"))),
        )
    }

    /// Creates a splitter for other tags, each an opening and a closing one. Pairs with an empty tag are left out.
    pub fn with_tags<A: Into<Text>, B: Into<Text>>(tags: impl IntoIterator<Item = (A, B)>) -> Self {
        let tags = tags.into_iter().map(|(open, close)| (open.into(), close.into()));
        let tags =
            tags.filter(|(open, close): &(Text, Text)| !open.is_empty() && !close.is_empty()).collect();
        Self { tags, held: String::new(), close: None, skips_space: false }
    }

    /// Begins within reasoning, because the prompt has the opening tag already. It ends at the first closing tag in the
    /// list.
    #[must_use]
    pub fn within_reasoning(self) -> Self {
        Self { close: self.tags.first().map(|(_, close)| close.clone()), ..self }
    }

    /// Begins outside of reasoning, whatever the text before has ended with.
    pub(crate) fn outside_reasoning(self) -> Self {
        Self { close: None, ..self }
    }

    /// Reads a piece of the text, and appends its pieces as far as they are decided.
    pub fn push(&mut self, text: &str, pieces: &mut Vec<ThoughtPiece>) {
        let held = std::mem::take(&mut self.held) + text;
        let mut rest = held.as_str();
        loop {
            if self.skips_space {
                rest = rest.trim_start();
                self.skips_space = rest.is_empty();
            }
            let (before, tag, after) = self.split_at_tag(rest);
            self.emit(before, pieces);
            let Some(tag) = tag else {
                self.held = after.to_owned();
                return;
            };
            self.skips_space = self.close.is_some();
            self.close = match self.close.take() {
                Some(_) => None,
                None => self.tags.iter().find(|(open, _)| open == tag).map(|(_, close)| close.clone()),
            };
            rest = after;
        }
    }

    /// Ends the text. The rest that is held back is appended as text or as reasoning.
    pub fn finish(&mut self, pieces: &mut Vec<ThoughtPiece>) {
        let held = std::mem::take(&mut self.held);
        self.emit(&held, pieces);
    }

    /// Splits a text at the next tag that changes between text and reasoning. Without one, the rest may begin one.
    fn split_at_tag<'a>(&self, text: &'a str) -> (&'a str, Option<&'a str>, &'a str) {
        let tags: Vec<&str> = match &self.close {
            Some(close) => vec![close],
            None => self.tags.iter().map(|(open, _)| open.as_str()).collect(),
        };
        for (at, _) in text.char_indices() {
            let (before, from) = text.split_at_checked(at).unwrap_or_default();
            if let Some(tag) = tags.iter().find(|tag| from.starts_with(**tag)) {
                let (tag, after) = from.split_at_checked(tag.len()).unwrap_or_default();
                return (before, Some(tag), after);
            }
            if tags.iter().any(|tag| tag.starts_with(from)) {
                return (before, None, from);
            }
        }
        (text, None, "")
    }

    fn emit(&self, text: &str, pieces: &mut Vec<ThoughtPiece>) {
        if text.is_empty() {
            return;
        }
        match (pieces.last_mut(), self.close.is_some()) {
            (Some(ThoughtPiece::Text(last)), false) | (Some(ThoughtPiece::Reasoning(last)), true) => {
                last.push_str(text)
            }
            (_, false) => pieces.push(ThoughtPiece::Text(text.to_owned())),
            (_, true) => pieces.push(ThoughtPiece::Reasoning(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(mut splitter: ThinkingSplitter, pieces: &[&str]) -> Vec<ThoughtPiece> {
        let mut out = Vec::new();
        for piece in pieces {
            splitter.push(piece, &mut out);
            assert!(splitter.held.len() < "</reasoning>".len(), "less than the longest tag is held back");
        }
        splitter.finish(&mut out);
        out
    }

    /// Text as it is, reasoning in brackets.
    fn shown(pieces: &[ThoughtPiece]) -> String {
        let show = |piece: &ThoughtPiece| match piece {
            ThoughtPiece::Text(text) => text.clone(),
            ThoughtPiece::Reasoning(text) => format!("[{text}]"),
        };
        pieces.iter().map(show).collect()
    }

    #[test]
    fn law_s5_reasoning_is_separated_at_every_split() {
        let (outside, within) = (ThinkingSplitter::new(), ThinkingSplitter::new().within_reasoning());
        for (start, text, expected) in [
            (&outside, "<think>a</think>\n\nb", "[a]b"),
            (&outside, "x <thinking>a</think></thinking> b<thought>c</thought>", "x [a</think>]b[c]"),
            (&outside, "<think>a<think>b", "[a<think>b]"),
            (&outside, "<thin", "<thin"),
            (&outside, "<think>a</thi", "[a</thi]"),
            (&outside, "a < b </think> c", "a < b </think> c"),
            (&outside, "<think></think>é", "é"),
            (&within, "a</think>b<think>c</think>", "[a]b[c]"),
            (&within, "a", "[a]"),
        ] {
            let letters: Vec<String> = text.chars().map(String::from).collect();
            let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
            assert_eq!(shown(&split(start.clone(), &[text])), expected, "{text}");
            assert_eq!(shown(&split(start.clone(), &letters)), expected, "{text}");
            for at in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
                assert_eq!(
                    shown(&split(start.clone(), &[&text[..at], &text[at..]])),
                    expected,
                    "{text} at {at}"
                );
            }
        }
    }

    proptest! {
        #[test]
        fn law_s5_any_split_gives_the_same_pieces(
            tokens in prop::collection::vec(prop::sample::select(vec![
                "<think>", "</think>", "<think", "ing>", "</", "thought>", "<", " ", "a", "é", "<reasoning>", "</reasoning>",
            ]), 0..16),
            cut in any::<prop::sample::Index>(),
        ) {
            let text = tokens.concat();
            let at = text.floor_char_boundary(cut.index(text.len() + 1));
            prop_assert_eq!(split(ThinkingSplitter::new(), &[&text[..at], &text[at..]]), split(ThinkingSplitter::new(), &[&text]));
        }
    }
}
