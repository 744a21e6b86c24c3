//! `Call`: the parts of a call in JSON that have arrived.

/// A call in JSON.
#[derive(Debug, Default)]
pub(super) struct Call {
    /// The offset of its object in the bytes that were not consumed yet.
    pub(super) start: usize,
    pub(super) name: Option<String>,
    pub(super) id: Option<String>,
    /// The arguments that were not emitted yet.
    pub(super) arguments: String,
    pub(super) has_arguments: bool,
    /// Whether a key or a list marks the object as a call.
    pub(super) is_explicit: bool,
}
