//! `LastAnswer`: marks that the tool loop asks for the last answer of a turn, without tools.

/// Tells that a tool loop asks for the last answer of the turn, without tools: an [extension](crate::Extensions) of the turn.
///
/// The loop inserts it before that round. An advisor that lets no call of the model pass after
/// [`EndTurn`](crate::EndTurn), such as a budget, lets one answer pass then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "it is a mark and nothing else")]
pub struct LastAnswer;
