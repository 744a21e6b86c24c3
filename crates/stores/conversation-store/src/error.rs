//! `StoreError` and its conversion into the core `Error`.

use std::time::Duration;

use advisor_core::{BoxError, Error, ErrorKind, TurnId};

use crate::{EntryId, FencingToken, Version};

/// The reason why a store operation failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The conversation is not at the expected version. Nothing was written.
    #[error("the conversation is at version {current} in the store, not at the expected one; load it again")]
    Conflict {
        /// The current version.
        current: Version,
    },
    /// The batch's key was used for a batch with other content. Nothing was written.
    #[error("the key of the batch was used for other content; every step of a turn is written once")]
    KeyReused,
    /// Another writer holds a newer lease. Nothing was written.
    #[error("another writer holds the conversation by now; end this turn")]
    Fenced,
    /// A lease holds the conversation: of another turn, or of the same turn elsewhere.
    #[error("turn `{turn}` holds the conversation; wait for its end, or at most {} ms", .remaining.as_millis())]
    Locked {
        /// The turn that holds it.
        turn: TurnId,
        /// The token of that lease, with which it can be taken over. If no lease holds it, but other turns wait before
        /// this one, the last one that was issued.
        token: FencingToken,
        /// The time until the lease expires, unless it is renewed.
        remaining: Duration,
    },
    /// The conversation was deleted since it was loaded, or started again since. Nothing was written.
    #[error("the conversation was deleted meanwhile; begin a new one")]
    Gone,
    /// The store is unavailable. Nothing was written.
    #[error("the store is not available{}", if *.retryable { "; try again later" } else { "" })]
    Unavailable {
        /// Whether a retry may succeed later.
        retryable: bool,
        /// The cause.
        source: Option<BoxError>,
    },
    /// The batch may or may not have been written. Appending it again under the same key resolves this.
    #[error("it is not known whether the batch was written; append it again under the same key")]
    OutcomeUnknown {
        /// The cause.
        source: Option<BoxError>,
    },
    /// An entry or the batch is larger than the store accepts. Nothing was written.
    #[error("the batch is larger than the store takes; shorten the stored messages")]
    TooLarge,
    /// An entry is nested too deeply to be read back ([`EntryKind::MAX_DEPTH`](crate::EntryKind::MAX_DEPTH)).
    /// Nothing was written.
    #[error(
        "{kind} is nested deeper than {limit} levels of JSON, and could not be read again; make it flatter"
    )]
    TooDeep {
        /// The kind of the entry.
        kind: &'static str,
        /// The maximum depth of its JSON form.
        limit: usize,
    },
    /// An entry could not be read back for another reason. Nothing was written.
    #[error("{kind} could not be read again: {what}")]
    Unreadable {
        /// The kind of the entry.
        kind: &'static str,
        /// The problem.
        what: &'static str,
    },
    /// The structure of the conversation is damaged: the store's record of it, or more than a thousand consecutive
    /// entries are missing. A single unreadable entry is not an error; it is read as
    /// [`EntryKind::Corrupt`](crate::EntryKind::Corrupt).
    #[error("the conversation is damaged in the store{}; restore it there or delete it", from_entry(*.seq))]
    Corrupt {
        /// The number of the first missing entry; `None` if the damage is not in the entries.
        seq: Option<u64>,
        /// The cause.
        source: Option<BoxError>,
    },
    /// The parent or the tip of a branch does not exist. Nothing was written.
    #[error("the conversation has no entry {id}; load it again and name one that it has")]
    NoSuchEntry {
        /// The parent or tip.
        id: EntryId,
    },
    /// The store does not support the operation. Nothing was written.
    #[error("the store does not support {what}")]
    Unsupported {
        /// The unsupported feature.
        what: &'static str,
    },
}

/// The result of an operation of a store.
pub type Result<T = (), E = StoreError> = std::result::Result<T, E>;

fn from_entry(seq: Option<u64>) -> String {
    seq.map(|seq| format!(", from entry {seq} on")).unwrap_or_default()
}

impl StoreError {
    /// Creates a retryable `Unavailable` error.
    pub fn unavailable(source: impl Into<BoxError>) -> Self {
        Self::Unavailable { retryable: true, source: Some(source.into()) }
    }

    /// Creates an `OutcomeUnknown` error.
    pub fn outcome_unknown(source: impl Into<BoxError>) -> Self {
        Self::OutcomeUnknown { source: Some(source.into()) }
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        let (kind, message) = match &error {
            StoreError::Conflict { current } => (
                ErrorKind::StoreConflict { current: current.0 },
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
            _ => (ErrorKind::NotPersisted, "messages of the turn could not be stored"),
        };
        Self::new(kind, message).with_source(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_store_error_maps_to_actionable_kind() {
        let kind = |error: StoreError| Error::from(error).kind();
        let conflict = StoreError::Conflict { current: Version(4) };
        assert_eq!(kind(conflict), ErrorKind::StoreConflict { current: 4 });
        assert_eq!(kind(StoreError::Gone), ErrorKind::Store);
        assert_eq!(kind(StoreError::Corrupt { seq: Some(2), source: None }), ErrorKind::Store);
        assert_eq!(kind(StoreError::KeyReused), ErrorKind::NotPersisted);
        assert_eq!(kind(StoreError::unavailable("down")), ErrorKind::NotPersisted);
    }

    #[test]
    fn error_text_says_whether_to_retry() {
        assert!(StoreError::unavailable("x").to_string().ends_with("try again later"));
        let lasting = StoreError::Unavailable { retryable: false, source: None };
        assert!(!lasting.to_string().contains("again"));
    }

    #[test]
    fn damage_is_located_only_if_it_is_in_entries() {
        let text = |seq| StoreError::Corrupt { seq, source: None }.to_string();
        assert!(text(Some(3)).contains("in the store, from entry 3 on;"));
        assert!(text(None).contains("in the store;"));
    }
}
