//! `DecisionProblem`: the reason why decisions about calls cannot be applied.

use serde::{Deserialize, Serialize};

/// The reason why the decisions of a turn cannot be applied, in an error of kind
/// [`Approval`](crate::ErrorKind::Approval). Nothing has run, and the calls wait as before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DecisionProblem {
    /// A call waits, and has neither a decision nor a result.
    Missing,
    /// A call has two decisions.
    Duplicate,
    /// A call has a decision and a result.
    WithResult,
    /// A decision was made for another tool or other arguments than those of its call.
    OtherCall,
    /// A decision has expired.
    Expired,
    /// The turn that continues has the id of the turn that asked.
    SameTurn,
    /// The tool of an approved call is not among those of the request.
    UnknownTool,
    /// The tool of an approved call runs at the client.
    ClientSide,
    /// An approved call is incomplete.
    Incomplete,
    /// The arguments of an approved call do not fit its tool.
    Arguments,
    /// The policy denies the arguments that a person has changed.
    Policy,
    /// A problem that was read from JSON and that this version does not know.
    #[default]
    #[serde(other)]
    Unknown,
}
