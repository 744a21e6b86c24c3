//! `OnOverflow`: policy for a turn larger than the window: send, refuse or compact.

/// The policy for a running turn that alone is larger than its memory's [window](crate::Window), through user
/// messages or tool results. The stored messages are the same under every policy.
///
/// Memory applies it before each request: inside the tool loop before each round, outside it once, when the turn
/// begins. [`Refuse`](Self::Refuse) and [`Compact`](Self::Compact) also select the earlier turns again: each
/// request has as much of them as then fits beside the running turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnOverflow {
    /// Sends all of it.
    #[default]
    Send,
    /// Fails before the model is asked, with an error of kind
    /// [`ContextOverflow`](advisor_core::ErrorKind::ContextOverflow). If the turn is too large when it begins,
    /// nothing of it is stored. Results of approved calls, which have run, are stored with its input.
    Refuse,
    /// Leaves the oldest steps out of the request. A step is an answer with calls and their results. The last step
    /// and all messages outside of steps stay. If they are still too large, the turn fails as with
    /// [`Refuse`](Self::Refuse).
    Compact,
}
