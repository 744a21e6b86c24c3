//! `Admission`: whether a call runs, is denied or is client-side.

use advisor_core::Limit;

/// The treatment of a call whose round runs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Admission {
    /// The loop runs the call.
    Admitted,
    /// A limit denies the call.
    Denied(Limit),
    /// The limit on equal calls denies the call for the first time: the model is told, and may go on.
    Told(Limit),
    /// The call is left to the caller.
    ClientSide,
}
