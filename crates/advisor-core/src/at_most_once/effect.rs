//! `Effect`: pure, idempotent or at most once; the result texts for interrupted calls.

/// Side effects of a tool, which decide how an interrupted call is treated.
///
/// The loop never repeats a call on its own, for any declaration of its tool. A call that was interrupted by a
/// drop or a crash is answered by memory, and the model decides how to continue. The same holds when a turn is
/// submitted again under its id and continues. Calls come a second time only if a caller passes the answer of an
/// earlier run to the loop again. An advisor for a durable engine does so. Then the effect decides; see
/// [`StartedCalls`](crate::StartedCalls).
///
/// | the tool declares | before it runs | a call of a repeated answer |
/// | --- | --- | --- |
/// | nothing | nothing is written | is not run; the model reads [`OUTCOME_UNKNOWN`] |
/// | [`Pure`], [`Idempotent`] | nothing is written | is run again, under the same [`CallKey`] |
/// | [`AtMostOnce`] | start recorded | run unless start recorded; then the model reads [`VERIFY_BEFORE_RETRYING`] |
///
/// [`Pure`]: Self::Pure
/// [`Idempotent`]: Self::Idempotent
/// [`AtMostOnce`]: Self::AtMostOnce
/// [`CallKey`]: crate::CallKey
///
/// No effect is the default, since a tool without a declaration has promised nothing. [`Pure`](Self::Pure) or
/// [`Idempotent`](Self::Idempotent) as the default would run `send_email` twice. [`AtMostOnce`](Self::AtMostOnce)
/// would make every tool pay for a write that most do not need. Without a declaration, a call is not run again and
/// nothing is written for it.
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
    /// A run changes nothing: it reads or computes. Running it again only costs time.
    Pure,
    /// A run changes something; a second run under the same [`CallKey`](crate::CallKey) changes nothing more. The
    /// tool passes the key to the system that it changes, or sets something to a value.
    Idempotent,
    /// A run must not happen twice for one call. In a recorded turn, the start of the call is recorded before any
    /// tool of the round runs; if that fails, no tool runs. The call may not run at all: a crash after the record
    /// leaves a start without a run.
    AtMostOnce,
}

/// Result of a call whose outcome is unknown.
pub const OUTCOME_UNKNOWN: &str = "interrupted, outcome unknown";

/// Result of a started call with unknown outcome, if its tool must not run twice.
pub const VERIFY_BEFORE_RETRYING: &str = "interrupted after it was started, outcome unknown; verify before retrying: it may have taken effect, and calling again would do it a second time";
