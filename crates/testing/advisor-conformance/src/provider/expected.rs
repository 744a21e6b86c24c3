//! The outcome that the parts of an answer demand.

use advisor_core::{BlockKind, FinishReason, Usage};

use super::family::{AnswerPart, WireFamily};

/// A block of the answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ExpectedBlock {
    /// Text, reasoning or a refusal, in its pieces.
    Text(BlockKind, Vec<String>),
    /// A call with its name and its arguments.
    Call { name: String, arguments: String, complete: bool },
}

/// The way in which the answer ends.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ExpectedEnd {
    Completed(FinishReason),
    Truncated,
    Failed,
    Malformed,
}

/// The outcome of an answer.
#[derive(Debug, Clone)]
pub(super) struct Expected {
    pub(super) blocks: Vec<ExpectedBlock>,
    pub(super) end: ExpectedEnd,
    pub(super) usage: Option<Usage>,
}

impl Expected {
    pub(super) fn new(family: &dyn WireFamily, parts: &[AnswerPart]) -> Self {
        let mut expected = Self { blocks: Vec::new(), end: ExpectedEnd::Truncated, usage: None };
        for part in parts {
            expected.add(family, part);
        }
        if let ExpectedEnd::Completed(reason) = &mut expected.end
            && expected.blocks.is_empty()
        {
            *reason = FinishReason::Empty;
        }
        expected
    }

    fn add(&mut self, family: &dyn WireFamily, part: &AnswerPart) {
        match part {
            AnswerPart::Text(text) => self.add_text(BlockKind::Text, text),
            AnswerPart::Reasoning(text) => self.add_text(BlockKind::Reasoning, text),
            AnswerPart::Refusal(text) => self.add_text(BlockKind::Refusal, text),
            AnswerPart::Call { name, arguments, .. } => self.blocks.push(ExpectedBlock::Call {
                name: (*name).to_owned(),
                arguments: arguments.concat(),
                complete: true,
            }),
            AnswerPart::CutCall { name, arguments, .. } => self.blocks.push(ExpectedBlock::Call {
                name: (*name).to_owned(),
                arguments: (*arguments).to_owned(),
                complete: false,
            }),
            AnswerPart::Usage(usage) => {
                self.usage.get_or_insert_default().merge(&family.expressible(*usage));
            }
            AnswerPart::Finish(reason) => self.end = ExpectedEnd::Completed(reason.clone()),
            AnswerPart::Failure(_) => self.end = ExpectedEnd::Failed,
            AnswerPart::Malformed => self.end = ExpectedEnd::Malformed,
            AnswerPart::End | AnswerPart::Unknown => {}
        }
    }

    fn add_text(&mut self, kind: BlockKind, text: &str) {
        match self.blocks.last_mut() {
            Some(ExpectedBlock::Text(last, pieces)) if *last == kind => pieces.push(text.to_owned()),
            _ => self.blocks.push(ExpectedBlock::Text(kind, vec![text.to_owned()])),
        }
    }

    /// Returns the text of the answer.
    pub(super) fn text(&self) -> String {
        let pieces = self.blocks.iter().filter_map(|block| match block {
            ExpectedBlock::Text(BlockKind::Text, pieces) => Some(pieces.concat()),
            _ => None,
        });
        pieces.collect()
    }

    pub(super) fn has_calls(&self) -> bool {
        self.blocks.iter().any(|block| matches!(block, ExpectedBlock::Call { .. }))
    }
}
