//! `AwaitPoint`: the kinds of await points.

/// The kind of an await point: its leaf, and the work that it is about to do or has just done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AwaitPoint {
    /// Before the first poll of the turn.
    Beginning,
    /// After the reader has received a chunk.
    Reader,
    /// Before a store loads.
    BeforeLoad,
    /// After a store has loaded, before the caller learns of it.
    AfterLoad,
    /// Before a store appends.
    BeforeAppend,
    /// Before a store appends a batch that it has applied before. It reports success, even if others have
    /// written since: no conflict can occur.
    BeforeAppendAgain,
    /// After a store has appended, before the caller learns of it.
    AfterAppend,
    /// Before a store grants a lease.
    BeforeLease,
    /// After a store has granted a lease, before the caller learns of it.
    AfterLease,
    /// Before a store renews a lease.
    BeforeRenewal,
    /// After a store has renewed a lease, before the caller learns of it.
    AfterRenewal,
    /// Before a store releases a lease.
    BeforeLeaseEnds,
    /// After a store has released a lease, before the caller learns of it.
    AfterLeaseEnds,
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

impl AwaitPoint {
    /// Checks whether a leaf yields here, so that an accidental order becomes visible.
    pub(super) fn waits(self) -> bool {
        !matches!(self, Self::Beginning | Self::Reader | Self::ModelItem)
    }

    /// Checks whether this is a point of a store.
    pub(super) fn is_of_store(self) -> bool {
        let appends = matches!(self, Self::BeforeAppend | Self::BeforeAppendAgain | Self::AfterAppend);
        let leases = matches!(self, Self::BeforeLease | Self::AfterLease) || self.is_of_given_lease();
        appends || leases || matches!(self, Self::BeforeLoad | Self::AfterLoad)
    }

    /// Checks whether a turn continues when this fails. A lease that was not renewed is renewed a little later,
    /// and one that was not released expires.
    pub(super) fn is_of_given_lease(self) -> bool {
        let renews = matches!(self, Self::BeforeRenewal | Self::AfterRenewal);
        renews || matches!(self, Self::BeforeLeaseEnds | Self::AfterLeaseEnds)
    }
}
