//! `Thoughts`: the reasoning in the text and the provider's own; leaves out what both have.

use std::collections::BTreeSet;

use advisor_core::{BlockDelta, BlockId, BlockKind, Chunk};

use crate::thinking::ThinkingSplitter;

/// The reasoning in an answer: the provider's own, and that between tags in the text.
pub(super) struct Thoughts {
    /// The splitter of the answer's first text block.
    first: ThinkingSplitter,
    /// The splitter of the next text block.
    splitter: ThinkingSplitter,
    /// The provider's own blocks of reasoning.
    own_blocks: BTreeSet<BlockId>,
    /// The provider's own reasoning so far.
    own: String,
    /// The number of its bytes that earlier stretches of reasoning in the text have repeated.
    repeated: usize,
    stretch: Stretch,
}

/// The open stretch of reasoning in the text, compared with the provider's own.
enum Stretch {
    /// It repeats these bytes of the provider's own, and this text is held back.
    Repeats {
        bytes: usize,
        held: String,
    },
    Differs,
}

impl Default for Stretch {
    fn default() -> Self {
        Self::Repeats { bytes: 0, held: String::new() }
    }
}

impl Thoughts {
    pub(super) fn new(splitter: ThinkingSplitter) -> Self {
        Self {
            first: splitter.clone(),
            splitter,
            own_blocks: BTreeSet::new(),
            own: String::new(),
            repeated: 0,
            stretch: Stretch::default(),
        }
    }

    /// Notes the provider's own reasoning in a chunk.
    pub(super) fn note(&mut self, chunk: &Chunk) {
        match chunk {
            Chunk::Opened { block, head } if head.kind == BlockKind::Reasoning => {
                self.own_blocks.insert(*block);
            }
            Chunk::Delta { block, delta: BlockDelta::Reasoning(text) } if self.own_blocks.contains(block) => {
                self.own.push_str(text);
            }
            Chunk::AttemptRestarted { .. } => *self = Self::new(self.first.clone()),
            _ => {}
        }
    }

    /// Returns the splitter of the next text block.
    pub(super) fn splitter(&self) -> ThinkingSplitter {
        self.splitter.clone()
    }

    /// Notes the end of a text block, with its splitter.
    ///
    /// If the provider sends reasoning of its own between the pieces of a text, each one ends a text block. Reasoning
    /// in the text then goes on in the next block.
    pub(super) fn end_text(&mut self, splitter: ThinkingSplitter) {
        self.splitter = if self.own.is_empty() { splitter.outside_reasoning() } else { splitter };
    }

    /// Returns the reasoning in the text that does not repeat the provider's own. White space does not matter.
    ///
    /// Text that may repeat it is held back, and returned once it differs. So the result does not depend on the split
    /// of the text into pieces.
    pub(super) fn unrepeated(&mut self, reasoning: &str) -> String {
        let Stretch::Repeats { bytes, held } = &mut self.stretch else { return reasoning.to_owned() };
        if self.own.is_empty() {
            return reasoning.to_owned();
        }
        held.push_str(reasoning);
        let own = self.own.get(self.repeated + *bytes..).unwrap_or_default();
        let mut letters = own.char_indices().filter(|(_, letter)| !letter.is_whitespace());
        let mut end = 0;
        for letter in reasoning.chars().filter(|letter| !letter.is_whitespace()) {
            match letters.next() {
                Some((at, own)) if own == letter => end = at + own.len_utf8(),
                _ => {
                    let held = std::mem::take(held);
                    self.stretch = Stretch::Differs;
                    return held;
                }
            }
        }
        *bytes += end;
        String::new()
    }

    /// Notes the end of a stretch of reasoning. The text that is held back is a repetition.
    pub(super) fn end_reasoning(&mut self) {
        if let Stretch::Repeats { bytes, .. } = std::mem::take(&mut self.stretch) {
            self.repeated += bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use advisor_core::BlockHead;

    use super::*;
    use crate::thinking::ThoughtPiece;

    /// The reasoning of an answer with these pieces of reasoning of its own.
    fn with_own(pieces: &[&str]) -> Thoughts {
        let (mut thoughts, block) = (Thoughts::new(ThinkingSplitter::new()), BlockId::new(1, 0));
        thoughts.note(&Chunk::Opened { block, head: BlockHead::new(BlockKind::Reasoning) });
        for piece in pieces {
            thoughts.note(&Chunk::Delta { block, delta: BlockDelta::Reasoning((*piece).into()) });
        }
        thoughts
    }

    #[test]
    fn only_text_from_provider_is_a_repetition() {
        let mut thoughts = with_own(&["They greet", " me."]);
        for (reasoning, unrepeated) in
            [("\nThey gre", ""), ("at", "at"), ("et me.\n", ""), (" Why?", " Why?"), ("\n", "")]
        {
            assert_eq!(thoughts.unrepeated(reasoning), unrepeated, "{reasoning:?}");
            thoughts.end_reasoning();
        }
        thoughts.note(&Chunk::AttemptRestarted { round: 1 });
        assert_eq!(thoughts.unrepeated("They"), "They");
    }

    #[test]
    fn law_s5_repetition_is_the_same_at_every_cut() {
        for (reasoning, unrepeated) in [
            ("They gripe.", "They gripe."),
            ("They\n greet me.", ""),
            ("They greet me. Why?", "They greet me. Why?"),
        ] {
            for cut in 0..=reasoning.len() {
                let (left, right) = reasoning.split_at(cut);
                let mut thoughts = with_own(&["They greet me."]);
                let both = thoughts.unrepeated(left) + &thoughts.unrepeated(right);
                assert_eq!(both, unrepeated, "{left:?} and {right:?}");
            }
        }
    }

    #[test]
    fn reasoning_goes_on_in_the_next_text_between_pieces_of_the_providers() {
        let next = |thoughts: &mut Thoughts| {
            let (mut splitter, mut pieces) = (thoughts.splitter(), Vec::new());
            splitter.push("<think>a", &mut pieces);
            splitter.finish(&mut pieces);
            thoughts.end_text(splitter);
            pieces.clear();
            thoughts.splitter().push("b", &mut pieces);
            pieces
        };
        assert_eq!(next(&mut with_own(&["a"])), [ThoughtPiece::Reasoning("b".into())]);
        assert_eq!(next(&mut with_own(&[])), [ThoughtPiece::Text("b".into())]);
        let from_start = ThinkingSplitter::new().within_reasoning();
        assert_eq!(next(&mut Thoughts::new(from_start)), [ThoughtPiece::Text("b".into())]);
    }
}
