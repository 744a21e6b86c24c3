//! `AnsweredBefore`: marks a turn that was answered when it was submitted before.

/// Marks a turn that was answered when it was submitted before: an [extension](crate::Extensions) of the turn.
///
/// A memory inserts it before it returns the stored answer. A tool loop then ends the turn with that answer and runs none
/// of its calls: those without a result in the answer's [transcript](crate::ChatResponse::transcript) are the caller's.
/// Whether they still wait, the memory knows ([`pending_calls`](crate::ChatClient::pending_calls)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "it is a mark and nothing else")]
pub struct AnsweredBefore;
