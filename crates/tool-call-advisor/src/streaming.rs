//! `ToolCallStreaming`, the visibility modes, and `Filter`, which applies them to chunks.
//!
//! A mode filters what is shown, and has no other effect.

use advisor_core::{BlockDelta, BlockKind, Chunk};

/// The chunks of a running tool loop that are shown outside it.
///
/// | chunk | `TextOnly` | `FinalAnswerOnly` | `All` |
/// | --- | --- | --- | --- |
/// | text, reasoning, refusal, media, citation of a round before the last | live | – | live |
/// | the same of the last round | live | live when certain, else when it ends | live |
/// | tool-call blocks that the loop runs | – | – | live |
/// | tool-call blocks that it leaves to the caller | once decided | once decided | live |
/// | tool started, progress, finished, not started | – | – | live |
/// | round completed | yes | – | yes |
/// | usage | the last round's | – | each round's |
/// | attempt restarted, completed | yes | yes | yes |
///
/// A last round is certain when no tools are offered, the tool choice is none, or no further round is allowed. The
/// completed response always sums the usage of all rounds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums, reason = "the three modes are the columns of the table")]
pub enum ToolCallStreaming {
    /// Content for the user, live, without tool activity.
    #[default]
    TextOnly,
    /// Only the last round: its answer, then the loop's closing sentence if a limit or a cut-off answer ends the
    /// turn.
    FinalAnswerOnly,
    /// All chunks.
    All,
}

/// Filter that decides which chunks of a live round are shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Filter {
    pub(crate) mode: ToolCallStreaming,
    pub(crate) tool_events: bool,
    /// Whether the round is known to be the last one.
    pub(crate) certain: bool,
}

impl Filter {
    /// Returns whether a chunk of a live round is shown as it is.
    #[inline]
    pub(crate) fn shows(self, chunk: &Chunk) -> bool {
        match (self.mode, chunk) {
            (ToolCallStreaming::All, _) | (_, Chunk::AttemptRestarted { .. }) => true,
            (_, Chunk::Tool(_)) => self.tool_events,
            (_, Chunk::Usage { .. }) => false,
            (ToolCallStreaming::TextOnly, chunk) => !belongs_to_call(chunk),
            (ToolCallStreaming::FinalAnswerOnly, Chunk::RoundCompleted(_)) => false,
            (ToolCallStreaming::FinalAnswerOnly, chunk) => self.certain && !belongs_to_call(chunk),
        }
    }

    /// Returns whether the end of a round that another one follows is shown.
    pub(crate) fn shows_round_end(self) -> bool {
        self.mode != ToolCallStreaming::FinalAnswerOnly
    }

    /// Returns whether the last round's content, except calls, is shown only when the round ends.
    pub(crate) fn withheld_answer(self) -> bool {
        self.mode == ToolCallStreaming::FinalAnswerOnly && !self.certain
    }

    /// Returns whether calls that the loop does not run are shown only once that is decided.
    pub(crate) fn withheld_calls(self) -> bool {
        self.mode != ToolCallStreaming::All
    }

    /// Returns whether the last round's usage is shown only when the round ends.
    pub(crate) fn withheld_usage(self) -> bool {
        self.mode == ToolCallStreaming::TextOnly
    }
}

#[inline]
fn belongs_to_call(chunk: &Chunk) -> bool {
    match chunk {
        Chunk::Opened { head, .. } => head.kind == BlockKind::ToolCall,
        Chunk::Delta { delta, .. } => matches!(delta, BlockDelta::Arguments(_)),
        Chunk::Closed { content, .. } => content.kind() == BlockKind::ToolCall,
        _ => false,
    }
}
