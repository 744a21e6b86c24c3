use advisor_core::Limit;

/// The treatment of a call whose round runs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Admission {
    /// The loop runs the call.
    Admitted,
    /// A limit denies the call.
    Denied(Limit),
    /// The call is left to the caller.
    ClientSide,
}
