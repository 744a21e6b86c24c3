//! `EndTurn`: the extension with which an advisor ends the turn at a boundary of rounds.

use message_aggregator::Limit;

/// Asks the tool loop to end the turn at the next boundary of a round: an [extension](crate::Extensions) of the turn.
///
/// The loop starts no further tool and asks the model no more. Calls of the last answer get error results, and the turn
/// ends with this limit as its finish reason. An advisor that counts something, such as tokens, inserts it.
///
/// # Example
/// ```
/// use advisor_core::{EndTurn, Limit, Turn, TurnId};
///
/// let turn = Turn::new(TurnId::random());
/// turn.extensions().insert(EndTurn(Limit::Other("the budget of 10000 tokens".into())));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "it is a limit and nothing else")]
pub struct EndTurn(pub Limit);
