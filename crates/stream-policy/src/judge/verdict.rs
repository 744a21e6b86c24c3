//! `Verdict`: allow, deny, replace, or end the answer.

use advisor_core::{Block, FinishReason, Text};

/// The decision about one block.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Verdict {
    /// The block is emitted unchanged.
    Allow,
    /// The block is left out, and the policy's denial text takes its place.
    Deny {
        /// The reason, for the denial text. It may be empty.
        explanation: Text,
    },
    /// These blocks, of any kind, take its place. Without any, it is left out.
    ///
    /// A call among them is run by the tool loop. It gets an id if it has none; in place of another call, it gets that
    /// call's id. One block stands exactly where the replaced one stood. Several stand behind blocks that policies
    /// nearer to the model have added there.
    Replace(Vec<Block>),
    /// The answer ends without the block, for this reason. Text that streamed while the judge worked stays in it.
    ///
    /// For an end with a closing text, deny the block under [`OnDeny::EndAnswer`](crate::OnDeny::EndAnswer).
    ///
    /// The response lacks its id, its model and its token counts if the model has not ended: they come last.
    ///
    /// Calls that were emitted earlier run unless the reason [vetoes](FinishReason::vetoes_calls) them, as
    /// [`FinishReason::ContentFilter`] does.
    EndAnswer(FinishReason),
}

impl Verdict {
    /// Denies a block for this reason.
    pub fn deny(explanation: impl Into<Text>) -> Self {
        Self::Deny { explanation: explanation.into() }
    }

    /// Replaces a block by a text.
    pub fn replace_with_text(text: impl Into<String>) -> Self {
        Self::Replace(vec![Block::text(text)])
    }
}
