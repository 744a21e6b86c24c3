use std::sync::Arc;

use advisor_core::{ConversationKey, Text, async_trait};

use crate::{Batch, BranchIndex, Entry, EntryId, Leases, ReadRange, Snapshot, StoreError, Version};

/// Keeps conversations: one append-only log of entries each. See the crate's docs for the words.
///
/// A window is a view at reading time; nothing is ever evicted at writing time. Whoever writes a store
/// runs the suite of the feature `conformance` on it.
///
/// # Ordering
/// - An append is one atomic batch: all its entries, in order, one after the other, or none. No reader
///   ever sees a part of it.
/// - The version of a conversation is the sequence number of its last entry; the first entry is number 1
///   and there are no gaps. An unknown conversation is empty, at version 0.
/// - The key is checked first: a batch whose key was applied before gives the version that it led to and
///   changes nothing, whatever `expected` says. The same key with other entries is
///   [`StoreError::KeyReused`].
/// - Then the fence, then the version: a batch is applied only at the version it expects, and behind an entry of the
///   [turn](Batch::last_turn) it names, if it names one. Then the parent, which must exist.
/// - Who has been told of an append sees it in every later load.
/// - The entries of a turn stand together: nothing needs to be read to find them but the end of the log.
///
/// # Branches
/// Versions count the entries of the whole log, in the order in which they were written. Each entry follows
/// the one before it, except the first of a batch that names a [parent](Batch::parent). A branch is a view: the
/// entries on the path from its tip back through parents. [`load`](Self::load) reads the branch of the last
/// entry that was written, [`load_branch`](Self::load_branch) any other; what is said of views holds for the
/// path. The parent belongs to what a batch says: the same key with another parent is
/// [`StoreError::KeyReused`].
///
/// # What is acknowledged can be read
/// A batch with an entry that could not be read again is refused as a whole, as [`StoreError::TooDeep`] or
/// [`StoreError::Unreadable`], before anything is written. [`Batch::written`] checks that, and [`Batch::validate`] for
/// stores that write no bytes.
///
/// # Damage
/// An entry that cannot be read, or is missing, harms nothing else: it is given in its place as
/// [`EntryKind::Corrupt`](crate::EntryKind::Corrupt), stays in the store as it is, and all that is said of the others, of versions, views and the
/// open turn holds as if it could be read. A batch of which an entry cannot be read any more is recognised by
/// its key and the rest. [`LogReader`](crate::LogReader) is how a store does that.
///
/// # Cancellation
/// A dropped `append` has either been applied as a whole, or will be, or never will. A store whose work
/// goes on after the drop may apply it late, but never after a later append has moved the version.
///
/// # Errors
/// [`StoreError::Conflict`] with the current version, if it is not the expected one; [`StoreError::Gone`]
/// if a version above 0 is expected of a conversation that does not exist, so that a conversation
/// deleted in the middle of a turn is not brought back by it, or if the last entry is of another turn than the batch
/// says, so that one which was begun anew is not taken for it; [`StoreError::NoSuchEntry`] for a parent or a tip
/// that does not exist; [`StoreError::Corrupt`] if more is damaged than entries. Only
/// [`StoreError::OutcomeUnknown`] leaves open whether something was written.
///
/// # Example
/// ```
/// use advisor_core::{ConversationKey, Message, TurnId};
/// use conversation_store::{Batch, BatchKey, ConversationStore, EntryKind, InMemoryStore, NewEntry, Version, ReadRange};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = InMemoryStore::new();
/// let key = ConversationKey::new("c1")?;
/// let turn = TurnId::mint();
/// let said = NewEntry::new(turn.clone(), EntryKind::Message(Message::user("Hello")));
/// let batch = Batch::new(BatchKey::new(turn, 0, "input"), vec![said]);
/// let version = store.append(&key, Version::EMPTY, batch.clone()).await?;
/// // The same batch again changes nothing.
/// assert_eq!(store.append(&key, Version::EMPTY, batch).await?, version);
/// assert_eq!(store.load(&key, ReadRange::All).await?.entries.len(), 1);
/// # Ok(()) }
/// ```
#[async_trait]
pub trait ConversationStore: Send + Sync + 'static {
    /// Reads the end of a conversation, its version and its open turn, all of one moment: those of the branch
    /// that was written last.
    async fn load(&self, key: &ConversationKey, view: ReadRange) -> Result<Snapshot, StoreError>;

    /// The same of the branch whose tip is this entry, which may be any; the version is that of the whole
    /// conversation.
    ///
    /// Left out, it reads the whole log in pages.
    async fn load_branch(
        &self,
        key: &ConversationKey,
        tip: EntryId,
        view: ReadRange,
    ) -> Result<Snapshot, StoreError> {
        let log = whole(self, key).await?;
        if log.last().map_or(0, |last| last.seq) < tip.as_u64() {
            return Err(StoreError::NoSuchEntry { id: tip });
        }
        Ok(Snapshot::from_branch(&log, tip, view))
    }

    /// Reads so many entries of the log after this one, whatever their branch, in the order in which they were
    /// written. Fewer than asked for means that there are no more.
    ///
    /// It costs what it gives, however long the conversation is: the way to show or to copy a long one.
    async fn read(
        &self,
        key: &ConversationKey,
        after: EntryId,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError>;

    /// The tips of the branches, in the order in which they were written; the last one is that of
    /// [`load`](Self::load). It costs as much as there are branches.
    ///
    /// Left out, it reads the whole log in pages.
    async fn branches(&self, key: &ConversationKey) -> Result<Vec<EntryId>, StoreError> {
        let log = whole(self, key).await?;
        let forks: BranchIndex = log.iter().filter_map(|entry| Some((entry.seq, entry.parent?))).collect();
        Ok(forks.tips(log.last().map_or(0, |last| last.seq)))
    }

    /// Appends a batch at the expected version and gives the version that it led to.
    async fn append(
        &self,
        key: &ConversationKey,
        expected: Version,
        batch: Batch,
    ) -> Result<Version, StoreError>;

    /// Removes a conversation with all that belongs to it. One that does not exist is removed already.
    async fn delete(&self, key: &ConversationKey) -> Result<(), StoreError>;

    /// The conversations of a tenant, ordered by their ids. Fewer than asked for means that there are no more.
    async fn list(&self, page: &Page) -> Result<Vec<ConversationKey>, StoreError>;

    /// What hands out leases of conversations, where several processes share the store.
    fn leases(&self) -> Option<&dyn Leases> {
        None
    }
}

/// All entries of a log.
async fn whole<S: ConversationStore + ?Sized>(
    store: &S,
    key: &ConversationKey,
) -> Result<Vec<Entry>, StoreError> {
    const PAGE: usize = 1_000;
    let mut log: Vec<Entry> = Vec::new();
    loop {
        let after = EntryId::new(log.last().map_or(0, |last| last.seq));
        let page = store.read(key, after, PAGE).await?;
        let more = page.len() == PAGE;
        log.extend(page);
        if !more {
            return Ok(log);
        }
    }
}

/// A part of the list of a tenant's conversations.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Page {
    /// The tenant.
    pub tenant: Text,
    /// The last conversation of the page before; absent, the list begins.
    pub after: Option<ConversationKey>,
    /// The most conversations to give.
    pub limit: usize,
}

impl Page {
    /// The first page of a tenant's list.
    pub fn first(tenant: impl Into<Text>, limit: usize) -> Self {
        Self { tenant: tenant.into(), after: None, limit }
    }

    /// The page that begins after this conversation.
    #[must_use]
    pub fn after(self, last: ConversationKey) -> Self {
        Self { after: Some(last), ..self }
    }

    /// The id after which the page begins within the tenant, as bytes are ordered; `None`, if nothing can be on the
    /// page. It is for stores.
    #[must_use]
    pub fn begins_after(&self) -> Option<&str> {
        // The order is that of tenants, then of conversations; a tenant that no key can have has none.
        ConversationKey::in_tenant(&self.tenant, "any").ok()?;
        match &self.after {
            Some(after) if after.tenant() > &*self.tenant => None,
            Some(after) if after.tenant() == &*self.tenant => Some(after.conversation()),
            _ => Some(""),
        }
    }
}

/// A shared store is a store.
#[async_trait]
impl<S: ConversationStore + ?Sized> ConversationStore for Arc<S> {
    async fn load(&self, key: &ConversationKey, view: ReadRange) -> Result<Snapshot, StoreError> {
        (**self).load(key, view).await
    }

    async fn load_branch(
        &self,
        key: &ConversationKey,
        tip: EntryId,
        view: ReadRange,
    ) -> Result<Snapshot, StoreError> {
        (**self).load_branch(key, tip, view).await
    }

    async fn read(
        &self,
        key: &ConversationKey,
        after: EntryId,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        (**self).read(key, after, limit).await
    }

    async fn branches(&self, key: &ConversationKey) -> Result<Vec<EntryId>, StoreError> {
        (**self).branches(key).await
    }

    async fn append(
        &self,
        key: &ConversationKey,
        expected: Version,
        batch: Batch,
    ) -> Result<Version, StoreError> {
        (**self).append(key, expected, batch).await
    }

    async fn delete(&self, key: &ConversationKey) -> Result<(), StoreError> {
        (**self).delete(key).await
    }

    async fn list(&self, page: &Page) -> Result<Vec<ConversationKey>, StoreError> {
        (**self).list(page).await
    }

    fn leases(&self) -> Option<&dyn Leases> {
        (**self).leases()
    }
}
