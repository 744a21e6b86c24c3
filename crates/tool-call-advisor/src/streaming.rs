use advisor_core::{BlockDelta, BlockKind, Chunk};

/// What those outside the tool loop see of its rounds while they run.
///
/// | chunk | `TextOnly` | `FinalAnswerOnly` | `All` |
/// | --- | --- | --- | --- |
/// | text, reasoning, refusal, media, citation of a round that goes on | live | – | live |
/// | the same of the last round | live | live when certain, else at once at its end | live |
/// | tool-call blocks that the loop runs | – | – | live |
/// | tool-call blocks that it does not run | when that is decided | when that is decided | live |
/// | tool started, progress, finished | – | – | live |
/// | round completed | yes | – | yes |
/// | usage | the last round's | – | each round's |
/// | attempt restarted, completed | yes | yes | yes |
///
/// A last round is certain when no tools are offered, the tool choice is none, or no further round is
/// allowed. The completed response always sums the usage of all rounds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums, reason = "the three modes are the columns of the table")]
pub enum ToolCallStreaming {
    /// What the user reads, as it comes.
    #[default]
    TextOnly,
    /// Nothing but the last round: its answer, and behind it the closing sentence of the loop if a limit or a cut ends the turn.
    FinalAnswerOnly,
    /// Everything.
    All,
}

/// What of a live round comes out at once, given the mode.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Filter {
    pub(crate) mode: ToolCallStreaming,
    pub(crate) tool_events: bool,
    /// The round is known to be the last one.
    pub(crate) certain: bool,
}

impl Filter {
    /// Whether a chunk of a live round comes out as it is.
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

    /// Whether tools tell what they do while they run.
    pub(crate) fn shows_tools(self) -> bool {
        self.tool_events || self.mode == ToolCallStreaming::All
    }

    /// Whether it is shown that a round ended and another one follows.
    pub(crate) fn shows_round_end(self) -> bool {
        self.mode != ToolCallStreaming::FinalAnswerOnly
    }

    /// Whether the last round's answer, calls apart, has still to be shown when it ends.
    pub(crate) fn withheld_answer(self) -> bool {
        self.mode == ToolCallStreaming::FinalAnswerOnly && !self.certain
    }

    /// Whether calls that the loop does not run have still to be shown when that is decided.
    pub(crate) fn withheld_calls(self) -> bool {
        self.mode != ToolCallStreaming::All
    }

    /// Whether the last round's usage has still to be shown when it ends.
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
