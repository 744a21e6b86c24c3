use std::collections::BTreeMap;

use advisor_core::{BlockDelta, BlockId, BlockKind, Chunk};

use crate::thinking::{ThinkStart, ThinkingSplitter};

/// The reasoning in the parallel answers of a model.
pub(super) struct Thoughts {
    /// The splitter of an answer's first text.
    splitter: ThinkingSplitter,
    answers: BTreeMap<u32, AnswerThoughts>,
    /// The answers of the provider's own blocks of reasoning.
    own_blocks: BTreeMap<BlockId, u32>,
}

/// The reasoning in one answer: the provider's own, and that between tags in the text.
pub(super) struct AnswerThoughts {
    /// The splitter of the next text block.
    splitter: ThinkingSplitter,
    /// The provider's own reasoning so far.
    own: String,
    /// How many bytes of it the text has repeated.
    repeated: usize,
}

impl Thoughts {
    pub(super) fn new(splitter: ThinkingSplitter) -> Self {
        Self { splitter, answers: BTreeMap::new(), own_blocks: BTreeMap::new() }
    }

    /// Notes the provider's own reasoning in a chunk.
    pub(super) fn note(&mut self, chunk: &Chunk) {
        match chunk {
            Chunk::Opened { block, head } if head.kind == BlockKind::Reasoning => {
                self.own_blocks.insert(*block, head.choice);
            }
            Chunk::Delta { block, delta: BlockDelta::Reasoning(text) } => {
                if let Some(choice) = self.own_blocks.get(block).copied() {
                    self.of(choice).own.push_str(text);
                }
            }
            Chunk::AttemptRestarted { .. } => {
                self.answers.clear();
                self.own_blocks.clear();
            }
            _ => {}
        }
    }

    /// Returns the reasoning of the answer with this number.
    pub(super) fn of(&mut self, choice: u32) -> &mut AnswerThoughts {
        let splitter = &self.splitter;
        self.answers.entry(choice).or_insert_with(|| AnswerThoughts {
            splitter: splitter.clone(),
            own: String::new(),
            repeated: 0,
        })
    }
}

impl AnswerThoughts {
    /// Returns the splitter of the next text block.
    pub(super) fn splitter(&self) -> ThinkingSplitter {
        self.splitter.clone()
    }

    /// Notes the end of a text block, with its splitter.
    ///
    /// If the provider sends reasoning of its own between the pieces of a text, each one ends a text block. Reasoning
    /// in the text then goes on in the next block.
    pub(super) fn end_text(&mut self, splitter: ThinkingSplitter) {
        self.splitter = if self.own.is_empty() { splitter.with_start(ThinkStart::Text) } else { splitter };
    }

    /// Checks whether reasoning in the text repeats the provider's own. White space does not matter.
    pub(super) fn repeats(&mut self, reasoning: &str) -> bool {
        let own = self.own.get(self.repeated..).unwrap_or_default();
        let mut letters = own.char_indices().filter(|(_, letter)| !letter.is_whitespace());
        let mut end = 0;
        for letter in reasoning.chars().filter(|letter| !letter.is_whitespace()) {
            match letters.next() {
                Some((at, own)) if own == letter => end = at + own.len_utf8(),
                _ => return false,
            }
        }
        self.repeated += end;
        !self.own.is_empty()
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
        let answer = thoughts.of(0);
        for (reasoning, repeats) in [
            ("\nThey", true),
            (" gre", true),
            ("at", false),
            ("et me.\n", true),
            (" Why?", false),
            ("\n", true),
        ] {
            assert_eq!(answer.repeats(reasoning), repeats, "{reasoning:?}");
        }
        assert!(!thoughts.of(1).repeats("They"), "another answer has none of its own");
        thoughts.note(&Chunk::AttemptRestarted { round: 1 });
        assert!(!thoughts.of(0).repeats("They"));
    }

    #[test]
    fn reasoning_goes_on_in_the_next_text_between_pieces_of_the_providers() {
        let next = |thoughts: &mut Thoughts| {
            let (mut splitter, mut pieces) = (thoughts.of(0).splitter(), Vec::new());
            splitter.push("<think>a", &mut pieces);
            splitter.finish(&mut pieces);
            thoughts.of(0).end_text(splitter);
            pieces.clear();
            thoughts.of(0).splitter().push("b", &mut pieces);
            pieces
        };
        assert_eq!(next(&mut with_own(&["a"])), [ThoughtPiece::Reasoning("b".into())]);
        assert_eq!(next(&mut with_own(&[])), [ThoughtPiece::Text("b".into())]);
        let from_start = ThinkingSplitter::new().with_start(ThinkStart::Reasoning);
        assert_eq!(next(&mut Thoughts::new(from_start)), [ThoughtPiece::Text("b".into())]);
    }
}
