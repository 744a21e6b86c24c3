//! `Opening`: whether a text begins with a call.

/// Whether a text begins with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening {
    /// Depends on what follows.
    Undecided,
    /// This many bytes are text.
    No(usize),
    /// It is JSON without a call in it; its first bytes are text, and so is the rest of it.
    Data(usize),
    Yes,
}
