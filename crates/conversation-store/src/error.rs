use std::time::Duration;

use advisor_core::{BoxError, Error, ErrorKind, TurnId};

use crate::{EntryId, FencingToken, Version};

/// Why a store did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The conversation is not at the expected version. Nothing was written.
    #[error("the conversation is at version {current} in the store, not at the expected one; load it again")]
    Conflict {
        /// The version it is at.
        current: Version,
    },
    /// The batch's key was used for another batch. Nothing was written.
    #[error("the key of the batch was used for other content; every step of a turn is written once")]
    KeyReused,
    /// Another writer holds a newer lease. Nothing was written.
    #[error("another writer holds the conversation by now; end this turn")]
    Fenced,
    /// Another turn holds the conversation, or the same one somewhere else.
    #[error("turn `{turn}` holds the conversation; wait for its end, or at most {} ms", .remaining.as_millis())]
    Locked {
        /// The turn that holds it.
        turn: TurnId,
        /// Its fence, by which it can be interrupted.
        fence: FencingToken,
        /// How long it holds the conversation if it does not go on.
        remaining: Duration,
    },
    /// The conversation was deleted since it was loaded. Nothing was written.
    #[error("the conversation was deleted meanwhile; begin a new one")]
    Gone,
    /// The store cannot be used at the moment. Nothing was written.
    #[error("the store is not available{}", if *.retryable { "; try again later" } else { "" })]
    Unavailable {
        /// Whether the same may succeed later.
        retryable: bool,
        /// What went wrong.
        source: Option<BoxError>,
    },
    /// It is not known whether the batch was written. Appending it again under the same key tells.
    #[error("it is not known whether the batch was written; append it again under the same key")]
    OutcomeUnknown {
        /// What went wrong.
        source: Option<BoxError>,
    },
    /// The store has no place for another conversation. Nothing was written.
    #[error(
        "the store holds {limit} conversations, and each is held or in the middle of a turn; try again when one has \
         ended, or raise the store's bound"
    )]
    Full {
        /// How many conversations it may hold.
        limit: usize,
    },
    /// The conversation takes no further turn. Nothing was written.
    #[error("the conversation has {limit} entries or more; begin a new one, or raise the store's bound")]
    ConversationFull {
        /// At how many entries no turn begins any more.
        limit: usize,
    },
    /// An entry or the batch is larger than the store takes. Nothing was written.
    #[error(
        "the batch is larger than the store takes; shorten what is remembered or raise the store's bound"
    )]
    TooLarge,
    /// An entry is nested deeper than can be read again ([`EntryKind::MAX_DEPTH`](crate::EntryKind::MAX_DEPTH)).
    /// Nothing was written.
    #[error(
        "{kind} is nested deeper than {limit} levels of JSON, and could not be read again; make it flatter"
    )]
    TooDeep {
        /// What kind of entry it is.
        kind: &'static str,
        /// How deep its JSON form may be.
        limit: usize,
    },
    /// An entry could not be read again for another reason. Nothing was written.
    #[error("{kind} could not be read again: {what}")]
    Unreadable {
        /// What kind of entry it is.
        kind: &'static str,
        /// What is wrong with it.
        what: &'static str,
    },
    /// What holds the conversation together is damaged, so that nobody can tell its entries: its head, or
    /// more than a thousand entries that are missing in a row. A single entry that cannot be read is no
    /// error: it is read as [`EntryKind::Corrupt`](crate::EntryKind::Corrupt).
    #[error("the conversation is damaged in the store, from entry {seq} on; restore it there or delete it")]
    Corrupt {
        /// The number of the first entry that is missing; 0 if it is the head that is damaged.
        seq: u64,
        /// What went wrong.
        source: Option<BoxError>,
    },
    /// The entry that a branch was to follow or to end with does not exist. Nothing was written.
    #[error("the conversation has no entry {id}; load it again and name one that it has")]
    NoSuchEntry {
        /// The entry.
        id: EntryId,
    },
    /// The store cannot do this at all. Nothing was written.
    #[error("the store does not support {what}")]
    Unsupported {
        /// What it cannot do.
        what: &'static str,
    },
}

impl StoreError {
    /// The store cannot be used at the moment, and trying again later may succeed.
    pub fn unavailable(source: impl Into<BoxError>) -> Self {
        Self::Unavailable { retryable: true, source: Some(source.into()) }
    }

    /// It is not known whether the batch was written.
    pub fn outcome_unknown(source: impl Into<BoxError>) -> Self {
        Self::OutcomeUnknown { source: Some(source.into()) }
    }

    /// Returns the error of a turn whose conversation could not be loaded for this reason.
    #[must_use]
    pub fn into_load_error(self) -> Error {
        match self {
            Self::Gone | Self::Corrupt { .. } | Self::NoSuchEntry { .. } => self.into(),
            error => Error::new(ErrorKind::Store, "the conversation could not be loaded").with_source(error),
        }
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        let (kind, message) = match &error {
            StoreError::Conflict { current } => (
                ErrorKind::StoreConflict { current: current.as_u64() },
                "another writer changed the conversation meanwhile; begin the turn again",
            ),
            StoreError::Fenced => (ErrorKind::Fenced, "another turn holds the conversation by now"),
            StoreError::Locked { .. } => (
                ErrorKind::ConversationBusy,
                "another turn of this conversation is running; wait for its end or cancel it, then ask again",
            ),
            StoreError::Gone => (ErrorKind::Store, "the conversation was deleted meanwhile; begin a new one"),
            StoreError::NoSuchEntry { .. } => (
                ErrorKind::Configuration,
                "the turn was to branch off where the conversation has no entry; name one that it has",
            ),
            StoreError::Corrupt { .. } => {
                (ErrorKind::Store, "the store holds something of this conversation that cannot be read")
            }
            _ => (ErrorKind::NotPersisted, "what had to be remembered could not be stored"),
        };
        Self::new(kind, message).with_source(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_has_a_kind_that_says_what_can_be_done() {
        let kind = |error: StoreError| Error::from(error).kind();
        let conflict = StoreError::Conflict { current: Version::new(4) };
        assert_eq!(kind(conflict), ErrorKind::StoreConflict { current: 4 });
        assert_eq!(kind(StoreError::Gone), ErrorKind::Store);
        assert_eq!(kind(StoreError::Corrupt { seq: 2, source: None }), ErrorKind::Store);
        assert_eq!(kind(StoreError::KeyReused), ErrorKind::NotPersisted);
        assert_eq!(kind(StoreError::unavailable("down")), ErrorKind::NotPersisted);
        assert_eq!(StoreError::unavailable("down").into_load_error().kind(), ErrorKind::Store);
    }

    #[test]
    fn the_text_tells_whether_trying_again_helps() {
        assert!(StoreError::unavailable("x").to_string().ends_with("try again later"));
        let lasting = StoreError::Unavailable { retryable: false, source: None };
        assert!(!lasting.to_string().contains("again"));
    }
}
