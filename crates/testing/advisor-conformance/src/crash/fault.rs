//! `Fault` and `Injection`: the possible faults at an await point, and the chosen point.

use advisor_core::OnDrop;

use super::{AwaitPoint, Operation};
use advisor_testkit::StoreFault;

/// A stop of a turn or a failure of a leaf, at an await point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// The reader drops the turn while the leaf waits. [`OnDrop::FinishTurn`] needs a spawner and does not fit
    /// here.
    Drop(OnDrop),
    /// The turn is cancelled through its handle while the leaf waits; the reader continues to read.
    Cancel(OnDrop),
    /// The process is killed: the turn and all memory of the process are lost, and only the store remains.
    Kill,
    /// The store's operation fails. Before its effect: [`StoreFault::Unavailable`] and
    /// [`StoreFault::Conflict`]; after it: [`StoreFault::AnswerLost`].
    Store(StoreFault),
    /// The leaf fails: a model with a connection error, a tool with an error result, a hook with an error.
    Fail,
    /// The model's answer ends without its completion.
    CutOff,
    /// The leaf panics. The panic unwinds through the whole turn, except that of a tool.
    Panic,
}

impl Fault {
    /// Every fault.
    pub const ALL: [Self; 11] = [
        Self::Drop(OnDrop::KeepPartial),
        Self::Drop(OnDrop::Rollback),
        Self::Cancel(OnDrop::KeepPartial),
        Self::Cancel(OnDrop::Rollback),
        Self::Kill,
        Self::Store(StoreFault::Unavailable),
        Self::Store(StoreFault::Conflict),
        Self::Store(StoreFault::AnswerLost),
        Self::Fail,
        Self::CutOff,
        Self::Panic,
    ];

    /// Checks whether this stops the turn from outside, so that the leaf stays pending.
    #[must_use]
    pub fn is_stop(self) -> bool {
        matches!(self, Self::Drop(_) | Self::Cancel(_) | Self::Kill)
    }

    /// Checks whether this can happen at the point.
    #[must_use]
    pub fn can_happen_at(self, await_point: AwaitPoint) -> bool {
        let of_reader = matches!(await_point, AwaitPoint::Beginning | AwaitPoint::Reader);
        match self {
            Self::Drop(_) | Self::Cancel(_) | Self::Kill => true,
            Self::Store(StoreFault::Unavailable) => matches!(await_point, AwaitPoint::Before(_)),
            Self::Store(StoreFault::Conflict) => await_point == AwaitPoint::Before(Operation::Append),
            Self::Store(StoreFault::AnswerLost) => {
                matches!(await_point, AwaitPoint::After(operation) if operation != Operation::Load)
            }
            Self::Store(_) => false,
            Self::Fail => !of_reader && !await_point.is_of_store(),
            Self::CutOff => await_point == AwaitPoint::ModelItem,
            Self::Panic => !of_reader,
        }
    }
}

/// A fault at an await point of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Injection {
    /// The number of the point, counted from 0 as the turn passes them.
    pub point: usize,
    /// The fault at this point.
    pub fault: Fault,
}

impl Injection {
    /// Creates an injection of this fault at this point.
    #[must_use]
    pub fn new(point: usize, fault: Fault) -> Self {
        Self { point, fault }
    }
}
