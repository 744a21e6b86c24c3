/// What running a tool does to the world, and so what may become of a call that was cut off.
///
/// A call is run once and never again by itself, whatever its tool says: one that was cut off by a drop or a crash
/// is answered by memory, and the model decides what to do about it. So it is also when a turn is submitted again under
/// its id and goes on. Only where someone repeats the answer of an earlier run to the loop, such as an advisor in front
/// of a durable engine ([`StartedCalls`](crate::StartedCalls)), do calls come a second time; then the effect decides.
///
/// | the tool says | before it runs | a call of an answer that is repeated |
/// | --- | --- | --- |
/// | nothing | nothing is written | is not run; the model reads [`OUTCOME_UNKNOWN`] |
/// | [`Pure`](Self::Pure), [`Idempotent`](Self::Idempotent) | nothing is written | is run again, under the same [`CallKey`](crate::CallKey) |
/// | [`AtMostOnce`](Self::AtMostOnce) | its start is recorded | is run if its start is not recorded; otherwise the model reads [`VERIFY_BEFORE_RETRYING`] |
///
/// A tool that says nothing has promised nothing, so no default stands in for its word: [`Pure`](Self::Pure) or
/// [`Idempotent`](Self::Idempotent) as the default would run `send_email` twice, and
/// [`AtMostOnce`](Self::AtMostOnce) would make every tool pay for a write that most do not need.
/// What is left is what is right without knowing more: it is not run again, and nothing is written for it.
///
/// # Example
/// ```
/// use advisor_core::{Effect, ToolDefinition};
/// use serde_json::json;
///
/// let charge = ToolDefinition::new("charge", "Charges the customer's card.", json!({"type": "object"}));
/// assert_eq!(charge.effect, None);
/// let charge = charge.with_effect(Effect::AtMostOnce);
/// assert_eq!(charge.effect, Some(Effect::AtMostOnce));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Effect {
    /// It changes nothing: it looks something up or computes. Running it again costs time and nothing else.
    Pure,
    /// It changes something, and doing so again under the same [`CallKey`](crate::CallKey) changes nothing more:
    /// the tool hands the key to the system that it changes, or sets something to a value.
    Idempotent,
    /// It must not run twice for one call. Where the turn is recorded, the start of its call is recorded before
    /// any tool of the round runs; if that fails, no tool runs. It may run not at all: a crash between the two leaves
    /// a start without a run.
    AtMostOnce,
}

/// What a call is answered with if nobody knows what became of it.
pub const OUTCOME_UNKNOWN: &str = "interrupted, outcome unknown";

/// What a call of a tool that must not run twice is answered with if it was started, and nobody knows what became of it.
pub const VERIFY_BEFORE_RETRYING: &str = "interrupted after it was started, outcome unknown; verify before retrying: it may have taken effect, and calling again would do it a second time";
