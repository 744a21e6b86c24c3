//! `ToolLimits` and `OnCallLimit`: bounds on rounds, calls, time and result size.

use std::collections::BTreeMap;
use std::time::Duration;

use advisor_core::Text;

use crate::truncate::ResultBounds;

/// Limits of one turn's tool loop. Reaching one ends the turn with a typed finish reason and a valid transcript.
#[must_use]
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolLimits {
    /// Maximum number of requests to the model. Default: 25. `None`: unlimited.
    pub rounds: Option<u32>,
    /// Maximum number of tool calls in total. Default: 150. `None`: unlimited.
    ///
    /// Calls about which a person has decided ([`Decisions`](advisor_core::Decisions)) count in the turn that continues
    /// after them.
    pub calls: Option<u32>,
    /// Maximum number of calls of one tool. Default: 40. `None`: unlimited.
    pub calls_per_tool: Option<u32>,
    /// Limits for particular tools, in place of `calls_per_tool`; `None` means unlimited.
    pub tools: BTreeMap<Text, Option<u32>>,
    /// Maximum number of calls of one tool with equal arguments in a row of which none has brought another result. Calls
    /// of the same answer have none yet. Default: 10. `None`: unlimited.
    ///
    /// Arguments are equal as JSON values, whatever the order of their names. Calls of other tools, or with other
    /// arguments, may be between. A polled tool whose result changes is not stopped by it.
    ///
    /// The first call beyond it does not run, and the model reads why. The next one is treated as `on_call_limit` says.
    pub same_calls: Option<u32>,
    /// Limits for particular tools, in place of `same_calls`, such as for one that waits long for a change; `None` means
    /// unlimited.
    pub same_calls_of_tools: BTreeMap<Text, Option<u32>>,
    /// Maximum duration of the turn, from the start of the loop, or of approved calls that run before it. Default: `None`, unlimited.
    ///
    /// It interrupts the model, tools and advisors inside the loop, and is checked between rounds. Hooks and
    /// recorders are always awaited to their end.
    pub turn_timeout: Option<Duration>,
    /// Maximum bytes of the text of one result. Default: 64 KiB. Longer text is cut in its middle.
    ///
    /// JSON in a result stays JSON up to 100 levels of nesting. Deeper JSON becomes text.
    pub result_bytes: usize,
    /// Maximum bytes of the media of one result. Default: 16 MiB.
    ///
    /// Media counts as its bytes, or those of its URL or file id, plus its type and name. Media that does not fit
    /// is replaced by a note with its size.
    pub result_media_bytes: usize,
    /// The reaction of the loop when a limit on calls is reached.
    pub on_call_limit: OnCallLimit,
    /// The end of a turn at a limit, except that of time.
    pub on_limit: OnLimit,
    /// Maximum number of turns around a turn inside a tool ([`Prompt::inside`](advisor_core::Prompt::inside)).
    /// Default: 4.
    pub depth: u32,
}

/// The end of a turn at a limit: of rounds, of calls, or one that an advisor has set
/// ([`Turn::request_end`](advisor_core::Turn::request_end)).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnLimit {
    /// The loop ends the turn with a closing sentence.
    #[default]
    EndTurn,
    /// The model is asked once more, with the tool choice `None`, if a round is left; the last round of the limit is
    /// always such a round. Its answer ends the turn with the limit as finish reason.
    AnswerWithoutTools,
}

/// The reaction of the loop when a limit on calls is reached. Calls beyond it never run and are answered with an
/// error.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnCallLimit {
    /// The turn ends after the calls within the limit have run.
    #[default]
    EndTurn,
    /// The model reads the error and continues while rounds remain.
    TellModel,
}

impl Default for ToolLimits {
    fn default() -> Self {
        Self {
            rounds: Some(25),
            calls: Some(150),
            calls_per_tool: Some(40),
            tools: BTreeMap::new(),
            same_calls: Some(10),
            same_calls_of_tools: BTreeMap::new(),
            turn_timeout: None,
            result_bytes: 64 << 10,
            result_media_bytes: 16 << 20,
            on_call_limit: OnCallLimit::EndTurn,
            on_limit: OnLimit::EndTurn,
            depth: 4,
        }
    }
}

impl ToolLimits {
    /// Sets the number of rounds.
    pub fn with_rounds(self, rounds: u32) -> Self {
        Self { rounds: Some(rounds), ..self }
    }

    /// Sets the number of calls in total.
    pub fn with_calls(self, calls: u32) -> Self {
        Self { calls: Some(calls), ..self }
    }

    /// Sets the number of calls of each tool.
    pub fn with_calls_per_tool(self, calls: u32) -> Self {
        Self { calls_per_tool: Some(calls), ..self }
    }

    /// Sets the number of calls of one tool; `None` means unlimited.
    pub fn with_calls_of(mut self, tool: impl Into<Text>, calls: Option<u32>) -> Self {
        self.tools.insert(tool.into(), calls);
        self
    }

    /// Sets the number of calls of one tool with equal arguments in a row without another result; `None` means unlimited.
    pub fn with_same_calls(self, calls: Option<u32>) -> Self {
        Self { same_calls: calls, ..self }
    }

    /// Sets the number of calls of one tool with equal arguments in a row without another result; `None` means unlimited.
    pub fn with_same_calls_of(mut self, tool: impl Into<Text>, calls: Option<u32>) -> Self {
        self.same_calls_of_tools.insert(tool.into(), calls);
        self
    }

    /// Sets the maximum duration of the turn.
    pub fn with_turn_timeout(self, timeout: Duration) -> Self {
        Self { turn_timeout: Some(timeout), ..self }
    }

    /// Sets the bytes for the text of a result.
    pub fn with_result_bytes(self, bytes: usize) -> Self {
        Self { result_bytes: bytes, ..self }
    }

    /// Sets the bytes for the media of a result.
    pub fn with_result_media_bytes(self, bytes: usize) -> Self {
        Self { result_media_bytes: bytes, ..self }
    }

    /// Sets the reaction of the loop when a limit on calls is reached.
    pub fn with_on_call_limit(self, on_call_limit: OnCallLimit) -> Self {
        Self { on_call_limit, ..self }
    }

    /// Sets the end of a turn at a limit.
    pub fn with_on_limit(self, on_limit: OnLimit) -> Self {
        Self { on_limit, ..self }
    }

    /// Sets the number of turns around a turn inside a tool.
    pub fn with_depth(self, depth: u32) -> Self {
        Self { depth, ..self }
    }

    pub(crate) fn of_result(&self) -> ResultBounds {
        ResultBounds { text: self.result_bytes, media: self.result_media_bytes }
    }

    pub(crate) fn same_calls_of(&self, tool: &str) -> Option<u32> {
        self.same_calls_of_tools.get(tool).copied().unwrap_or(self.same_calls)
    }

    pub(crate) fn calls_of(&self, tool: &str) -> Option<u32> {
        self.tools.get(tool).copied().unwrap_or(self.calls_per_tool)
    }
}
