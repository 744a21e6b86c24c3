//! `StoreAround` and `Around`: a store with code of the test around each operation.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use advisor_core::{ConversationKey, TurnId};
use async_trait::async_trait;
use conversation_store::{
    Batch, ConversationStore, Entry, EntryId, FencingToken, Leases, Page, ReadRange, Snapshot, StoreError,
    Version,
};
use futures::future::BoxFuture;

/// A store with a test's own code around each operation: see [`Around`]. Clones share everything.
///
/// # Example
/// ```
/// use std::sync::Arc;
/// use advisor_core::{ConversationKey, TurnId, async_trait};
/// use advisor_testkit::{Around, Asked, StoreAround, Work};
/// use conversation_store::{Batch, BatchKey, ConversationStore, InMemoryStore, StoreError, Version};
///
/// /// A read-only store.
/// struct ReadOnly;
///
/// #[async_trait]
/// impl Around for ReadOnly {
///     async fn around(&self, asked: Asked<'_>, work: Work<'_>) -> Result<Option<Version>, StoreError> {
///         match asked {
///             Asked::Append(_) | Asked::Delete => Err(StoreError::unavailable("nobody may write")),
///             _ => work.await,
///         }
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let store = StoreAround::with(Arc::new(InMemoryStore::new()), ReadOnly);
/// let key = ConversationKey::new("c").unwrap();
/// let batch = Batch::new(BatchKey::new(TurnId::random(), 0, "input"), Vec::new());
/// assert!(store.append(&key, Version::EMPTY, batch).await.is_err());
/// # }
/// ```
pub struct StoreAround<S: ?Sized, A> {
    /// The wrapped store.
    pub inner: Arc<S>,
    /// The code around it.
    pub around: Arc<A>,
}

/// The code around each operation of a store.
#[async_trait]
pub trait Around: Send + Sync + 'static {
    /// Runs the operation by awaiting `work`, or fails instead. An error becomes the result of the operation;
    /// the store's answer is then lost.
    ///
    /// # Errors
    /// Those of the store, and others of the test.
    ///
    /// # Cancellation
    /// The future is dropped together with that of the operation.
    async fn around(&self, asked: Asked<'_>, work: Work<'_>) -> Result<Option<Version>, StoreError>;

    /// Returns the range that is loaded in place of the requested one.
    fn range(&self, requested: ReadRange) -> ReadRange {
        requested
    }

    /// Changes what a load returns.
    fn show(&self, _snapshot: &mut Snapshot) {}

    /// Returns whether the store supports leases, if the wrapped one does.
    fn hands_out_leases(&self) -> bool {
        true
    }
}

/// An operation of a store.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Asked<'a> {
    /// Loads a conversation or a branch of it.
    Load,
    /// Reads a page of all entries.
    Read,
    /// Lists the heads of the branches.
    Branches,
    /// Appends this batch.
    Append(&'a Batch),
    /// Deletes a conversation.
    Delete,
    /// Lists conversations.
    List,
    /// Acquires a lease.
    Acquire,
    /// Renews a lease.
    Renew,
    /// Releases a lease.
    Release,
}

/// The work of the wrapped store. A load and an append return the version of the conversation.
pub type Work<'a> = BoxFuture<'a, Result<Option<Version>, StoreError>>;

impl<S: ConversationStore + ?Sized, A: Around> StoreAround<S, A> {
    /// Wraps a store.
    pub fn with(store: Arc<S>, around: A) -> Self {
        Self { inner: store, around: Arc::new(around) }
    }

    async fn ask<T: Send>(
        &self,
        asked: Asked<'_>,
        work: impl Future<Output = Result<T, StoreError>> + Send,
        version: fn(&T) -> Option<Version>,
    ) -> Result<T, StoreError> {
        let mut answer = None;
        let work = async {
            let answered = answer.insert(work.await?);
            Ok(version(answered))
        };
        self.around.around(asked, Box::pin(work)).await?;
        answer.ok_or_else(|| StoreError::unavailable("the code around the store did not call it"))
    }

    fn shown(&self, loaded: Result<Snapshot, StoreError>) -> Result<Snapshot, StoreError> {
        let mut snapshot = loaded?;
        self.around.show(&mut snapshot);
        Ok(snapshot)
    }

    fn leases_of_inner(&self) -> Result<&dyn Leases, StoreError> {
        self.inner.leases().ok_or(StoreError::Unsupported { what: "leases" })
    }
}

fn of_snapshot(snapshot: &Snapshot) -> Option<Version> {
    Some(snapshot.version)
}

fn none<T>(_: &T) -> Option<Version> {
    None
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl<S: ConversationStore + ?Sized, A: Around> ConversationStore for StoreAround<S, A> {
    async fn load(&self, key: &ConversationKey, range: ReadRange) -> Result<Snapshot, StoreError> {
        let work = self.inner.load(key, self.around.range(range));
        self.shown(self.ask(Asked::Load, work, of_snapshot).await)
    }

    async fn load_branch(
        &self,
        key: &ConversationKey,
        tip: EntryId,
        range: ReadRange,
    ) -> Result<Snapshot, StoreError> {
        let work = self.inner.load_branch(key, tip, self.around.range(range));
        self.shown(self.ask(Asked::Load, work, of_snapshot).await)
    }

    async fn read(
        &self,
        key: &ConversationKey,
        after: EntryId,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        self.ask(Asked::Read, self.inner.read(key, after, limit), none).await
    }

    async fn branches(&self, key: &ConversationKey) -> Result<Vec<EntryId>, StoreError> {
        self.ask(Asked::Branches, self.inner.branches(key), none).await
    }

    async fn append(
        &self,
        key: &ConversationKey,
        expected: Version,
        batch: Batch,
    ) -> Result<Version, StoreError> {
        let asked = batch.clone();
        let work = self.inner.append(key, expected, batch);
        self.ask(Asked::Append(&asked), work, |version| Some(*version)).await
    }

    async fn delete(&self, key: &ConversationKey) -> Result<(), StoreError> {
        self.ask(Asked::Delete, self.inner.delete(key), none).await
    }

    async fn list(&self, page: &Page) -> Result<Vec<ConversationKey>, StoreError> {
        self.ask(Asked::List, self.inner.list(page), none).await
    }

    fn leases(&self) -> Option<&dyn Leases> {
        (self.around.hands_out_leases() && self.inner.leases().is_some()).then_some(self)
    }
}

#[async_trait]
impl<S: ConversationStore + ?Sized, A: Around> Leases for StoreAround<S, A> {
    async fn acquire(
        &self,
        key: &ConversationKey,
        turn: &TurnId,
        ttl: Duration,
        takeover_from: Option<FencingToken>,
        waits: bool,
    ) -> Result<FencingToken, StoreError> {
        let work = self.leases_of_inner()?.acquire(key, turn, ttl, takeover_from, waits);
        self.ask(Asked::Acquire, work, none).await
    }

    async fn renew(
        &self,
        key: &ConversationKey,
        token: FencingToken,
        ttl: Duration,
    ) -> Result<(), StoreError> {
        self.ask(Asked::Renew, self.leases_of_inner()?.renew(key, token, ttl), none).await
    }

    async fn release(&self, key: &ConversationKey, token: FencingToken) -> Result<(), StoreError> {
        self.ask(Asked::Release, self.leases_of_inner()?.release(key, token), none).await
    }
}

impl<S: ?Sized, A> Clone for StoreAround<S, A> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), around: Arc::clone(&self.around) }
    }
}

impl<S: ?Sized, A: fmt::Debug> fmt::Debug for StoreAround<S, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreAround").field("around", &self.around).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use conversation_store::InMemoryStore;

    use super::*;
    use crate::{FaultStore, StoreFault};

    fn key() -> ConversationKey {
        ConversationKey::new("c").unwrap()
    }

    #[tokio::test]
    async fn reading_entries_and_branches_fails_as_loading_does() {
        let store = FaultStore::new(InMemoryStore::new());
        for operation in 0..2 {
            store.fail_at(operation, StoreFault::Unavailable);
        }
        assert!(store.read(&key(), EntryId::BEGINNING, 9).await.is_err());
        assert!(store.branches(&key()).await.is_err());
        assert_eq!((store.operations(), store.pending_faults()), (2, 0));
    }

    /// An `Around` that never runs the operation.
    struct Forgets;

    #[async_trait]
    impl Around for Forgets {
        async fn around(&self, _: Asked<'_>, _: Work<'_>) -> Result<Option<Version>, StoreError> {
            Ok(None)
        }
    }

    #[tokio::test]
    async fn store_that_was_not_called_gives_no_answer() {
        let store = StoreAround::with(Arc::new(InMemoryStore::new()), Forgets);
        assert!(matches!(store.load(&key(), ReadRange::All).await, Err(StoreError::Unavailable { .. })));
    }
}
