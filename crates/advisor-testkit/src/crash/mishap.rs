use advisor_core::OnDrop;

use super::Place;
use crate::StoreFault;

/// What happens to a turn at an await point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mishap {
    /// The reader drops the turn while the leaf waits. [`OnDrop::FinishTurn`] needs a spawner and is not for this.
    Drop(OnDrop),
    /// Someone cancels the turn by its handle while the leaf waits; the reader reads on.
    Cancel(OnDrop),
    /// The process is killed: the turn and everything in memory is gone, only the store is left.
    Kill,
    /// The store's operation goes wrong. At a place before its effect: [`StoreFault::Unavailable`] and
    /// [`StoreFault::Conflict`]; after it: [`StoreFault::AnswerLost`].
    Store(StoreFault),
    /// The leaf fails: a model with an error of its connection, a tool with an error result, a hook with an error.
    Fail,
    /// The model's answer ends without its completion.
    CutOff,
    /// The leaf panics, and the panic unwinds through the whole turn unless it is a tool's.
    Panic,
}

impl Mishap {
    /// Every mishap.
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

    /// Those in which nothing fails by itself: someone drops, cancels or kills.
    pub const STOPS: [Self; 5] = [
        Self::Drop(OnDrop::KeepPartial),
        Self::Drop(OnDrop::Rollback),
        Self::Cancel(OnDrop::KeepPartial),
        Self::Cancel(OnDrop::Rollback),
        Self::Kill,
    ];

    /// Those in which a leaf fails by itself.
    pub const FAULTS: [Self; 6] = [
        Self::Store(StoreFault::Unavailable),
        Self::Store(StoreFault::Conflict),
        Self::Store(StoreFault::AnswerLost),
        Self::Fail,
        Self::CutOff,
        Self::Panic,
    ];

    /// Whether someone stops the turn, so that the leaf stays pending.
    #[must_use]
    pub fn is_stop(self) -> bool {
        matches!(self, Self::Drop(_) | Self::Cancel(_) | Self::Kill)
    }

    /// Whether this can happen there.
    #[must_use]
    pub fn can_happen_at(self, place: Place) -> bool {
        let of_reader = matches!(place, Place::Beginning | Place::Reader);
        match self {
            Self::Drop(_) | Self::Cancel(_) | Self::Kill => true,
            Self::Store(StoreFault::Unavailable) => {
                let before_append = matches!(place, Place::BeforeAppend | Place::BeforeAppendAgain);
                let before_lease =
                    matches!(place, Place::BeforeLease | Place::BeforeRenewal | Place::BeforeLeaseEnds);
                before_append || before_lease || place == Place::BeforeLoad
            }
            Self::Store(StoreFault::Conflict) => place == Place::BeforeAppend,
            Self::Store(StoreFault::AnswerLost) => {
                let after_lease =
                    matches!(place, Place::AfterLease | Place::AfterRenewal | Place::AfterLeaseEnds);
                after_lease || place == Place::AfterAppend
            }
            Self::Store(_) => false,
            Self::Fail => !of_reader && !place.is_of_store(),
            Self::CutOff => place == Place::ModelItem,
            Self::Panic => !of_reader,
        }
    }
}

/// A mishap at an await point of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Strike {
    /// The point, counted from 0 as the turn passes them.
    pub point: usize,
    /// What happens there.
    pub mishap: Mishap,
}

impl Strike {
    /// This mishap at this point.
    #[must_use]
    pub fn new(point: usize, mishap: Mishap) -> Self {
        Self { point, mishap }
    }
}
