//! `ToolLimits` and `OnLimit`: bounds on rounds, calls, time and result size.

use std::collections::BTreeMap;
use std::time::Duration;

use advisor_core::{Error, ErrorKind, NestedBounds, Result, Text};
use tokio::time::Instant;

/// Limits of one turn's tool loop. Reaching one ends the turn with a typed finish reason and a valid transcript.
///
/// # Example
/// ```
/// use tool_call_advisor::ToolLimits;
///
/// let limits = ToolLimits { rounds: Some(10), ..ToolLimits::default() };
/// ```
#[must_use]
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "callers write it with `..ToolLimits::default()`")]
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
    /// Arguments are equal as JSON values, whatever the order of their names; long ones as text. Calls of other tools, or with
    /// other arguments, may be between. A polled tool whose result changes is not stopped by it.
    ///
    /// The first call beyond it does not run, and the model reads why. The next one is treated as `on_limit` says.
    pub same_calls: Option<u32>,
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
    /// What happens at a limit, except that of time.
    pub on_limit: OnLimit,
    /// Maximum number of turns around a turn inside a tool ([`Prompt::inside`](advisor_core::Prompt::inside)).
    /// Default: 4.
    pub depth: u32,
}

/// What happens at a limit: of rounds, of calls, or one that an advisor has set
/// ([`Turn::request_end`](advisor_core::Turn::request_end)). Calls beyond a limit never run and are answered with an error.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnLimit {
    /// The loop ends the turn with a closing sentence, after the calls within the limit have run.
    #[default]
    EndTurn,
    /// The model is asked once more, with the tool choice `None`, if a round is left; the last round of the limit is
    /// always such a round. Its answer ends the turn with the limit as finish reason.
    AnswerWithoutTools,
    /// At a limit on calls, the model reads the error and continues while rounds remain. At another one, as `EndTurn`.
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
            turn_timeout: None,
            result_bytes: 64 << 10,
            result_media_bytes: 16 << 20,
            on_limit: OnLimit::EndTurn,
            depth: 4,
        }
    }
}

impl ToolLimits {
    /// Returns the time at which a turn that begins now ends.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.turn_timeout.and_then(|time| Instant::now().checked_add(time))
    }

    /// Returns these limits within those that the turn around has left.
    ///
    /// # Errors
    /// If more turns are around than the limit allows.
    pub(crate) fn within(&self, outer: NestedBounds) -> Result<Self> {
        if outer.depth > self.depth {
            let message = format!(
                "turns inside tools are nested more than {} deep; raise `ToolLimits::depth`, or keep the tool from \
                 asking its own chain",
                self.depth
            );
            return Err(Error::new(ErrorKind::Tool, message));
        }
        let least = |own: Option<u32>, left: Option<u32>| own.into_iter().chain(left).min();
        let left = outer.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        Ok(Self {
            rounds: least(self.rounds, outer.rounds),
            calls: least(self.calls, outer.calls),
            turn_timeout: self.turn_timeout.into_iter().chain(left).min(),
            ..self.clone()
        })
    }

    pub(crate) fn calls_of(&self, tool: &str) -> Option<u32> {
        self.tools.get(tool).copied().unwrap_or(self.calls_per_tool)
    }
}
