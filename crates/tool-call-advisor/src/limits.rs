use std::collections::BTreeMap;
use std::time::Duration;

use advisor_core::Text;

use crate::truncate::ResultBounds;

/// Bounds of one turn's tool loop. Reaching one ends the turn with a typed finish reason and a valid transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolLimits {
    /// How often the model is asked. Default: 25. Absent: as often as it likes.
    pub rounds: Option<u32>,
    /// Tool calls in all. Default: 150. Absent: any number.
    pub calls: Option<u32>,
    /// Calls of one tool. Default: 40. Absent: any number.
    pub calls_per_tool: Option<u32>,
    /// Calls of particular tools, in place of `calls_per_tool`; `None` is any number.
    pub tools: BTreeMap<Text, Option<u32>>,
    /// Wall time of the turn, from the loop's beginning on. Default: absent.
    ///
    /// It cuts short what the model, tools and advisors inside the loop do, and is looked at between rounds.
    /// Hooks and recorders are always waited for.
    pub total_time: Option<Duration>,
    /// Bytes of the text of one result. Default: 64 KiB. Text that is too long is cut in its middle.
    ///
    /// JSON in a result is kept as JSON up to 100 levels of nesting, and as its text beyond.
    pub result_bytes: usize,
    /// Bytes of the media of one result. Default: 16 MiB.
    ///
    /// Media counts as its bytes, or those of its URL or file id, with its type and name. A note stands for media
    /// that does not fit, and says how large it was.
    pub result_media_bytes: usize,
    /// What a bound on calls does.
    pub on_call_limit: OnCallLimit,
}

/// What happens to calls beyond a bound on calls. They never run, and are answered with an error.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnCallLimit {
    /// The turn ends after the calls within the bound have run.
    #[default]
    EndTurn,
    /// The model reads the error and goes on, as long as it has rounds.
    TellModel,
}

impl Default for ToolLimits {
    fn default() -> Self {
        Self {
            rounds: Some(25),
            calls: Some(150),
            calls_per_tool: Some(40),
            tools: BTreeMap::new(),
            total_time: None,
            result_bytes: 64 << 10,
            result_media_bytes: 16 << 20,
            on_call_limit: OnCallLimit::EndTurn,
        }
    }
}

impl ToolLimits {
    /// The same bounds with this many rounds.
    #[must_use]
    pub fn with_rounds(self, rounds: u32) -> Self {
        Self { rounds: Some(rounds), ..self }
    }

    /// The same bounds with this many calls in all.
    #[must_use]
    pub fn with_calls(self, calls: u32) -> Self {
        Self { calls: Some(calls), ..self }
    }

    /// The same bounds with this many calls of each tool.
    #[must_use]
    pub fn with_calls_per_tool(self, calls: u32) -> Self {
        Self { calls_per_tool: Some(calls), ..self }
    }

    /// The same bounds with another number of calls for one tool; `None` is any number.
    #[must_use]
    pub fn with_calls_of(mut self, tool: impl Into<Text>, calls: Option<u32>) -> Self {
        self.tools.insert(tool.into(), calls);
        self
    }

    /// The same bounds with this much time for the turn.
    #[must_use]
    pub fn with_total_time(self, time: Duration) -> Self {
        Self { total_time: Some(time), ..self }
    }

    /// The same bounds with this many bytes for the text of a result.
    #[must_use]
    pub fn with_result_bytes(self, bytes: usize) -> Self {
        Self { result_bytes: bytes, ..self }
    }

    /// The same bounds with this many bytes for the media of a result.
    #[must_use]
    pub fn with_result_media_bytes(self, bytes: usize) -> Self {
        Self { result_media_bytes: bytes, ..self }
    }

    /// The same bounds, with what reaching one on calls does.
    #[must_use]
    pub fn with_on_call_limit(self, on_call_limit: OnCallLimit) -> Self {
        Self { on_call_limit, ..self }
    }

    pub(crate) fn of_result(&self) -> ResultBounds {
        ResultBounds { text: self.result_bytes, media: self.result_media_bytes }
    }

    pub(crate) fn calls_of(&self, tool: &str) -> Option<u32> {
        self.tools.get(tool).copied().unwrap_or(self.calls_per_tool)
    }
}
