//! `ConversationStore`, the contract with ordering, damage and error rules; `Page` for lists, with their order.

use std::cmp::Ordering;
use std::sync::Arc;

use advisor_core::{ConversationKey, Text, async_trait};

use crate::{Batch, BranchIndex, Entry, EntryId, Leases, ReadRange, Result, Snapshot, StoreError, Version};

/// A store of conversations: one append-only log of entries for each. The crate's docs define the terms.
///
/// A window is applied when a log is read; nothing is evicted when it is written. Every store must pass
/// `store_conformance!` of the crate `advisor-conformance`.
///
/// # Ordering
/// - An append is one atomic batch: either all its entries are written, consecutively and in order, or none. No
///   reader ever sees a part of it.
/// - The version of a conversation is the sequence number of its last entry. The first entry has number 1, and
///   there are no gaps. An unknown conversation is empty, at version 0.
/// - The key is checked first. A batch whose key was applied before returns the version of that append and changes
///   nothing, for any `expected`. The same key with other entries is [`StoreError::KeyReused`].
/// - The fencing token is checked next. It must not be lower than the highest one that was issued for the
///   conversation or written with, also before a deletion.
/// - Existence is checked next, then the version: a batch is applied only at the version that it expects. If it
///   names a [turn](Batch::last_turn), the last entry must belong to that turn. The parent is checked last; it must
///   exist. [`admit`](crate::admit) is this order as a function, which every store calls.
/// - A batch without entries is checked like any other, then changes nothing: it returns the version, begins no
///   conversation, and uses neither its key nor its token.
/// - After an append is acknowledged, every later load includes it.
/// - The entries of a turn are consecutive on their branch, so a store finds the last turn at the end of the log.
///
/// # Branches
/// Versions count the entries of the whole log, in the order in which they were written. Each entry follows the
/// one before it, except the first of a batch that names a [parent](Batch::parent). A branch is the path from its
/// last entry, the tip, back through parents. [`load`](Self::load) reads the branch of the entry that was written
/// last; [`load_branch`](Self::load_branch) reads any other. Read ranges count along that path. The parent is part
/// of a batch's content: the same key with another parent is [`StoreError::KeyReused`].
///
/// # Validation
/// A batch is refused as a whole, before anything is written, if one of its entries could not be read back. The
/// error is [`StoreError::TooDeep`] or [`StoreError::Unreadable`]. [`Batch::written`] checks this.
///
/// # Damage
/// A damaged or missing entry does not affect the others. It is returned in its place as
/// [`EntryKind::Corrupt`](crate::EntryKind::Corrupt) and stays unchanged in the store. Other entries, versions,
/// read ranges and the open turn are reported as if it were readable. A batch with a damaged entry is still
/// recognised by its key and its other entries. [`LogReader`](crate::LogReader) implements this for stores.
///
/// # Cancellation
/// A dropped `append` has been applied as a whole, or will be, or never will. A store whose work continues after
/// the drop may apply it late, but never after a later append has moved the version.
///
/// # Errors
/// - [`StoreError::Conflict`], with the current version, if the version is not the expected one.
/// - [`StoreError::Gone`] if the batch expects a version above 0 or names a last turn, and the conversation does
///   not exist. An append therefore never recreates a conversation that was deleted during a turn.
/// - [`StoreError::Gone`] also if the last entry belongs to another turn than the batch names: the conversation
///   was deleted and started again.
/// - [`StoreError::NoSuchEntry`] for a parent or a tip that does not exist.
/// - [`StoreError::Corrupt`] if the damage goes beyond single entries.
/// - [`StoreError::OutcomeUnknown`] is the only error after which the batch may or may not have been written.
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
/// let turn = TurnId::random();
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
    /// Reads the end of a conversation, its version and its open turn, in one consistent snapshot. It reads the
    /// branch that was written last.
    async fn load(&self, key: &ConversationKey, range: ReadRange) -> Result<Snapshot>;

    /// Reads the branch that ends with `tip`, which may be any entry. Up to [`EntryId::BEGINNING`], the branch is
    /// empty. The snapshot's version is that of the whole conversation.
    ///
    /// The default implementation reads the whole log in pages.
    async fn load_branch(&self, key: &ConversationKey, tip: EntryId, range: ReadRange) -> Result<Snapshot> {
        let log = whole(self, key).await?;
        if log.last().map_or(0, |last| last.seq) < tip.0 {
            return Err(StoreError::NoSuchEntry { id: tip });
        }
        Ok(Snapshot::from_branch(&log, tip, range))
    }

    /// Reads up to `limit` entries after `after`, of all branches, in the order in which they were written. Fewer
    /// than `limit` entries mean that the log has no more.
    ///
    /// The cost depends on the entries returned, not on the length of the conversation. It suits showing or
    /// copying a long one.
    async fn read(&self, key: &ConversationKey, after: EntryId, limit: usize) -> Result<Vec<Entry>>;

    /// Returns the last entries of all branches, in the order in which they were written. The last one is the tip
    /// that [`load`](Self::load) reads. The cost grows with the number of branches.
    ///
    /// The default implementation reads the whole log in pages.
    async fn branches(&self, key: &ConversationKey) -> Result<Vec<EntryId>> {
        let log = whole(self, key).await?;
        let forks: BranchIndex = log.iter().filter_map(|entry| Some((entry.seq, entry.parent?))).collect();
        Ok(forks.tips(log.last().map_or(0, |last| last.seq)))
    }

    /// Appends a batch at the expected version and returns the resulting version.
    async fn append(&self, key: &ConversationKey, expected: Version, batch: Batch) -> Result<Version>;

    /// Removes a conversation with everything that belongs to it. Succeeds if it does not exist.
    async fn delete(&self, key: &ConversationKey) -> Result;

    /// Lists the conversations of a tenant, in the [order](ListOrder) of their ids. Fewer than the limit mean that
    /// the list has no more.
    async fn list(&self, page: &Page) -> Result<Vec<ConversationKey>>;

    /// Returns the leases of conversations, if several processes can share the store.
    fn leases(&self) -> Option<&dyn Leases> {
        None
    }
}

/// Reads all entries of a log, in pages.
async fn whole<S: ConversationStore + ?Sized>(store: &S, key: &ConversationKey) -> Result<Vec<Entry>> {
    const PAGE: usize = 1_000;
    let mut log: Vec<Entry> = Vec::new();
    loop {
        let after = EntryId(log.last().map_or(0, |last| last.seq));
        let page = store.read(key, after, PAGE).await?;
        let more = page.len() == PAGE;
        log.extend(page);
        if !more {
            return Ok(log);
        }
    }
}

/// One page of the list of a tenant's conversations.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Page {
    /// The tenant.
    pub tenant: Text,
    /// The last conversation of the previous page; `None` for the first page.
    pub after: Option<ConversationKey>,
    /// The maximum number of conversations.
    pub limit: usize,
    /// The order of the list.
    pub order: ListOrder,
}

/// The order of a list of conversations: by the bytes of their ids. Ids that begin with a time, such as UUIDs of
/// version 7, are in the order of their creation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a store must serve each of them")]
pub enum ListOrder {
    /// From the lowest id.
    #[default]
    Ascending,
    /// From the highest id.
    Descending,
}

impl Page {
    /// Creates the first page of a tenant's list, in ascending order.
    pub fn first(tenant: impl Into<Text>, limit: usize) -> Self {
        Self { tenant: tenant.into(), after: None, limit, order: ListOrder::default() }
    }

    /// Returns the id after which the page begins, in its order: an empty one if it begins with the tenant's list, and
    /// `None` if the page is empty. For store implementations.
    #[must_use]
    pub fn start(&self) -> Option<&str> {
        // Keys are ordered by tenant, then by conversation. A tenant that is not a valid part of a key has no
        // conversations.
        ConversationKey::in_tenant(&self.tenant, "any").ok()?;
        let Some(after) = &self.after else { return Some("") };
        match (after.tenant().cmp(&*self.tenant), self.order) {
            (Ordering::Equal, _) => Some(after.conversation()),
            (Ordering::Less, ListOrder::Ascending) | (Ordering::Greater, ListOrder::Descending) => Some(""),
            _ => None,
        }
    }
}

/// Forwards to the shared store.
#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl<S: ConversationStore + ?Sized> ConversationStore for Arc<S> {
    async fn load(&self, key: &ConversationKey, range: ReadRange) -> Result<Snapshot> {
        (**self).load(key, range).await
    }

    async fn load_branch(&self, key: &ConversationKey, tip: EntryId, range: ReadRange) -> Result<Snapshot> {
        (**self).load_branch(key, tip, range).await
    }

    async fn read(&self, key: &ConversationKey, after: EntryId, limit: usize) -> Result<Vec<Entry>> {
        (**self).read(key, after, limit).await
    }

    async fn branches(&self, key: &ConversationKey) -> Result<Vec<EntryId>> {
        (**self).branches(key).await
    }

    async fn append(&self, key: &ConversationKey, expected: Version, batch: Batch) -> Result<Version> {
        (**self).append(key, expected, batch).await
    }

    async fn delete(&self, key: &ConversationKey) -> Result {
        (**self).delete(key).await
    }

    async fn list(&self, page: &Page) -> Result<Vec<ConversationKey>> {
        (**self).list(page).await
    }

    fn leases(&self) -> Option<&dyn Leases> {
        (**self).leases()
    }
}
