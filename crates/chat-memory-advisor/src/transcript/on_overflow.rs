/// What becomes of a turn that is larger than its memory's [window](crate::Window) all by itself, be it by what the
/// user said or by what its tools answered. What is stored is the same in any case.
///
/// It is looked at before each request that goes through memory: inside the tool loop before each round, outside it
/// once, when the turn begins. [`Refuse`](Self::Refuse) and [`Compact`](Self::Compact)
/// also fit the earlier turns again: each request has as much of them as fits beside the running turn then.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnOverflow {
    /// All of it is sent.
    #[default]
    Send,
    /// It fails before the model is asked, with an error of kind
    /// [`ContextOverflow`](advisor_core::ErrorKind::ContextOverflow). If it begins so large, nothing of it is stored.
    Refuse,
    /// Its oldest steps are left out of what is sent: answers with calls go together with their results. The last
    /// step and everything that is no step stay; if that is still too large, it fails as with
    /// [`Refuse`](Self::Refuse).
    Compact,
}
