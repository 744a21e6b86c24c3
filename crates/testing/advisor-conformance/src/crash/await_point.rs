//! `AwaitPoint`: the kinds of await points.

/// The kind of an await point: its leaf, and the work that it is about to do or has just done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AwaitPoint {
    /// Before the first poll of the turn.
    Beginning,
    /// After the reader has received a chunk.
    Reader,
    /// Before an operation of a store.
    Before(Operation),
    /// After an operation of a store, before the caller learns of it.
    After(Operation),
    /// The model was asked.
    Model,
    /// Before the model's next item, or its end.
    ModelItem,
    /// After a tool was started, before its effect.
    ToolStarted,
    /// After the effect of a tool, before its answer.
    ToolEnding,
    /// A hook of the loop.
    Hook(&'static str),
    /// A leaf of the test's own, by its name, such as an advisor that waits, or a timer.
    Other(&'static str),
}

/// An operation of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// Reads entries or branches.
    Load,
    /// Appends a batch.
    Append,
    /// Appends a batch that was applied before. It reports success, even if others have written since: no conflict
    /// can occur.
    AppendAgain,
    /// Grants a lease.
    Acquire,
    /// Renews a lease.
    Renew,
    /// Releases a lease.
    Release,
}

impl AwaitPoint {
    /// Checks whether a leaf yields here, so that an accidental order becomes visible.
    pub(super) fn waits(self) -> bool {
        !matches!(self, Self::Beginning | Self::Reader | Self::ModelItem)
    }

    /// Checks whether this is a point of a store.
    pub(super) fn is_of_store(self) -> bool {
        matches!(self, Self::Before(_) | Self::After(_))
    }

    /// Checks whether a turn continues when this fails. A lease that was not renewed is renewed a little later,
    /// and one that was not released expires.
    pub(super) fn is_of_given_lease(self) -> bool {
        let of_given = |operation| matches!(operation, Operation::Renew | Operation::Release);
        matches!(self, Self::Before(operation) | Self::After(operation) if of_given(operation))
    }
}
