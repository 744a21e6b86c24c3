use std::fmt;

/// Where an await point is: which leaf, and what it is about to do or has just done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Place {
    /// Nothing of the turn has happened yet: its first poll is to come.
    Beginning,
    /// The reader has been given a chunk.
    Reader,
    /// A store was asked to load and has not done so.
    BeforeLoad,
    /// A store has loaded, and nobody knows it yet.
    AfterLoad,
    /// A store was asked to append, and nothing is written.
    BeforeAppend,
    /// A store was asked to append a batch that it has applied before. It says so, even if others have written since:
    /// there is no conflict here.
    BeforeAppendAgain,
    /// A store has appended, and nobody knows it yet.
    AfterAppend,
    /// A store was asked for a lease and has given none.
    BeforeLease,
    /// A store has given a lease, and nobody knows it yet.
    AfterLease,
    /// A store is to renew a lease.
    BeforeRenewal,
    /// A store has renewed a lease, and nobody knows it yet.
    AfterRenewal,
    /// A store is to take a lease back.
    BeforeLeaseEnds,
    /// A store has done so, and nobody knows it yet.
    AfterLeaseEnds,
    /// The model was asked.
    Model,
    /// The model's next item, or its end, is to come.
    ModelItem,
    /// A tool was started and has had no effect.
    ToolStarted,
    /// A tool has had its effect and not answered yet.
    ToolEnding,
    /// A hook of the loop.
    Hook(&'static str),
    /// A leaf of the test's own, by its name: an advisor that waits for something, a timer.
    Other(&'static str),
}

impl Place {
    /// Whether a leaf lets others run here, so that an order that is only accidental shows.
    pub(super) fn waits(self) -> bool {
        !matches!(self, Self::Beginning | Self::Reader | Self::ModelItem)
    }

    /// Whether a store passes it.
    pub(super) fn is_of_store(self) -> bool {
        let appends = matches!(self, Self::BeforeAppend | Self::BeforeAppendAgain | Self::AfterAppend);
        let leases = matches!(self, Self::BeforeLease | Self::AfterLease) || self.is_of_given_lease();
        appends || leases || matches!(self, Self::BeforeLoad | Self::AfterLoad)
    }

    /// Whether a turn goes on when this fails: a lease that was not renewed is renewed a little later, and one that was
    /// not given back ends with its time.
    pub(super) fn is_of_given_lease(self) -> bool {
        let renews = matches!(self, Self::BeforeRenewal | Self::AfterRenewal);
        renews || matches!(self, Self::BeforeLeaseEnds | Self::AfterLeaseEnds)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Beginning => f.write_str("before the first poll"),
            Self::Reader => f.write_str("reader, after a chunk"),
            Self::BeforeLoad => f.write_str("store, before it loads"),
            Self::AfterLoad => f.write_str("store, after it loaded"),
            Self::BeforeAppend => f.write_str("store, before it appends"),
            Self::BeforeAppendAgain => f.write_str("store, before it appends again"),
            Self::AfterAppend => f.write_str("store, after it appended"),
            Self::BeforeLease => f.write_str("store, before it gives a lease"),
            Self::AfterLease => f.write_str("store, after it gave a lease"),
            Self::BeforeRenewal => f.write_str("store, before it renews a lease"),
            Self::AfterRenewal => f.write_str("store, after it renewed a lease"),
            Self::BeforeLeaseEnds => f.write_str("store, before it takes back a lease"),
            Self::AfterLeaseEnds => f.write_str("store, after it took back a lease"),
            Self::Model => f.write_str("model, asked"),
            Self::ModelItem => f.write_str("model, before an item"),
            Self::ToolStarted => f.write_str("tool, started"),
            Self::ToolEnding => f.write_str("tool, about to answer"),
            Self::Hook(name) => write!(f, "hook {name}"),
            Self::Other(name) => f.write_str(name),
        }
    }
}
