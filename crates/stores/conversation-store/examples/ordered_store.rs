//! A whole store on an ordered map of bytes, as embedded databases offer it: the example of the page
//! "Writing a store". The map here is in memory; its lock stands for the transaction of a database.
//!
//! `cargo test -p conversation-store --example ordered_store` runs the suite on it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use advisor_core::{ConversationKey, async_trait};
use conversation_store::{
    Admission, AppliedBatch, Batch, BatchKey, BranchIndex, ConversationStore, Entry, EntryId, FencingToken,
    ListOrder, LogReader, LogState, Page, ReadRange, Result, Segment, Snapshot, StoreError, Version,
    WrittenEntry, admit,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// The largest batch in bytes.
const LARGEST: usize = 16 << 20;

/// The store. With a database, this is its handle.
#[derive(Debug, Default)]
struct OrderedStore(Mutex<Map>);

/// Four kinds of keys: each begins with a letter and the conversation's name.
///
/// | key | value |
/// | --- | --- |
/// | `c` tenant `\0` conversation `\0` | a `Head`, also of a deleted conversation that had a token |
/// | `e` tenant `\0` conversation `\0` number | a `Row`: one entry; the number is big-endian, so that keys are in order |
/// | `f` tenant `\0` conversation `\0` number | the parent of an entry that does not follow the one before it |
/// | `b` tenant `\0` conversation `\0` key of a batch | the versions before and after the batch |
type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// What an append has to know of a conversation.
#[derive(Default, Serialize, Deserialize)]
struct Head {
    version: u64,
    token: Option<u64>,
    last_turn: String,
}

/// An entry as written.
#[derive(Serialize, Deserialize)]
struct Row {
    turn: String,
    body: String,
}

fn name(kind: u8, key: &ConversationKey) -> Vec<u8> {
    // Neither part of a key contains U+0000, so no two names are equal, and none is the beginning of another.
    [&[kind], key.tenant().as_bytes(), b"\0", key.conversation().as_bytes(), b"\0"].concat()
}

fn numbered(kind: u8, key: &ConversationKey, number: u64) -> Vec<u8> {
    [name(kind, key), number.to_be_bytes().to_vec()].concat()
}

fn batch_name(key: &ConversationKey, batch: &BatchKey) -> Vec<u8> {
    [name(b'b', key), batch.to_string().into_bytes()].concat()
}

fn read<T: DeserializeOwned>(map: &Map, name: &[u8]) -> Result<Option<T>> {
    let damaged = |error: serde_json::Error| StoreError::Corrupt { seq: None, source: Some(error.into()) };
    map.get(name).map(|value| serde_json::from_slice(value)).transpose().map_err(damaged)
}

fn write<T: Serialize>(map: &mut Map, name: Vec<u8>, value: &T) -> Result {
    map.insert(name, serde_json::to_vec(value).map_err(StoreError::unavailable)?);
    Ok(())
}

/// Returns the forks after one entry, up to another.
fn forks(map: &Map, key: &ConversationKey, after: u64, last: u64) -> BranchIndex {
    if last <= after {
        return BranchIndex::default();
    }
    let range = numbered(b'f', key, after.saturating_add(1))..=numbered(b'f', key, last);
    let number = |bytes: &[u8]| bytes.last_chunk().map(|number| u64::from_be_bytes(*number));
    let forks = map.range(range).filter_map(|(name, parent)| Some((number(name)?, number(parent)?)));
    forks.map(|(first, parent)| (first, EntryId(parent))).collect()
}

/// Reads the entries of these segments. A row that cannot be read becomes a damaged entry in its place.
fn entries(map: &Map, key: &ConversationKey, segments: Vec<Segment>) -> Result<Vec<Entry>> {
    let mut log = LogReader::new(segments.clone());
    for Segment { first, last, .. } in segments {
        for seq in first..=last {
            let Some(value) = map.get(&numbered(b'e', key, seq)) else { continue };
            match serde_json::from_slice::<Row>(value) {
                Ok(row) => log.row(seq, row.turn.as_bytes(), row.body.as_bytes())?,
                Err(_) => log.damaged_row(seq, b"", value)?,
            }
        }
    }
    log.finish()
}

/// Compares a batch with the one that was applied under its key.
fn applied(
    map: &Map,
    key: &ConversationKey,
    batch: &BatchKey,
    entries: &[WrittenEntry<'_>],
) -> Result<Option<AppliedBatch>> {
    let Some((before, after)) = read::<(u64, u64)>(map, &batch_name(key, batch))? else { return Ok(None) };
    let first = before.saturating_add(1);
    let mut same_entries = true;
    for (seq, new) in (first..=after).zip(entries) {
        let row = read::<Row>(map, &numbered(b'e', key, seq)).ok().flatten();
        // A damaged row does not make it another batch.
        same_entries &= row.is_none_or(|row| new.matches_row(row.turn.as_bytes(), row.body.as_bytes()));
    }
    let path = forks(map, key, before, first).path(EntryId(first));
    let parent = path.last().filter(|part| part.first == first).and_then(|part| part.parent);
    Ok(Some(AppliedBatch { before: Version(before), after: Version(after), parent, same_entries }))
}

impl OrderedStore {
    /// Begins the transaction.
    fn map(&self) -> MutexGuard<'_, Map> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl ConversationStore for OrderedStore {
    async fn append(&self, key: &ConversationKey, expected: Version, batch: Batch) -> Result<Version> {
        let entries = batch.written(LARGEST)?;
        let map = &mut *self.map();
        let head: Head = read(map, &name(b'c', key))?.unwrap_or_default();
        let state = LogState {
            version: Version(head.version),
            token: head.token.map(FencingToken),
            last_turn: head.last_turn.as_bytes(),
            applied: applied(map, key, &batch.key, &entries)?,
        };
        if let Admission::Done(version) = admit(&state, expected, &batch)? {
            return Ok(version);
        }
        // From here to the end is what a database commits at once.
        let after = expected.after(entries.len());
        if let Some(parent) = batch.fork_at(expected) {
            let fork = numbered(b'f', key, head.version.saturating_add(1));
            map.insert(fork, parent.0.to_be_bytes().to_vec());
        }
        for (seq, entry) in (head.version.saturating_add(1)..).zip(&entries) {
            let row = Row { turn: entry.turn.into(), body: entry.body.clone() };
            write(map, numbered(b'e', key, seq), &row)?;
        }
        write(map, batch_name(key, &batch.key), &(head.version, after.0))?;
        let head = Head {
            version: after.0,
            token: batch.token.map(|token| token.0).or(head.token),
            last_turn: entries.last().map_or(head.last_turn, |last| last.turn.into()),
        };
        write(map, name(b'c', key), &head)?;
        Ok(after)
    }

    async fn load(&self, key: &ConversationKey, range: ReadRange) -> Result<Snapshot> {
        // It reads the whole log. A store for long conversations reads the end of it: see the page.
        let map = self.map();
        let head: Head = read(&map, &name(b'c', key))?.unwrap_or_default();
        let forks = forks(&map, key, 0, head.version);
        let log = entries(&map, key, forks.range(0, head.version))?;
        Ok(Snapshot::from_log(&log, range))
    }

    async fn read(&self, key: &ConversationKey, after: EntryId, limit: usize) -> Result<Vec<Entry>> {
        let map = self.map();
        let head: Head = read(&map, &name(b'c', key))?.unwrap_or_default();
        let after = after.0;
        let last = after.saturating_add(u64::try_from(limit).unwrap_or(u64::MAX)).min(head.version);
        if last <= after {
            return Ok(Vec::new());
        }
        entries(&map, key, forks(&map, key, after, last).range(after, last))
    }

    async fn delete(&self, key: &ConversationKey) -> Result {
        let map = &mut *self.map();
        let head: Head = read(map, &name(b'c', key))?.unwrap_or_default();
        for kind in *b"cefb" {
            let prefix = name(kind, key);
            map.retain(|name, _| !name.starts_with(&prefix));
        }
        // The token stays: a writer that lost its lease must not begin the conversation again.
        match head.token {
            Some(_) => write(map, name(b'c', key), &Head { token: head.token, ..Head::default() }),
            None => Ok(()),
        }
    }

    async fn list(&self, page: &Page) -> Result<Vec<ConversationKey>> {
        let Some(after) = page.start() else { return Ok(Vec::new()) };
        let map = self.map();
        let prefix = [b"c", page.tenant.as_bytes(), b"\0"].concat();
        let mut keys = Vec::new();
        for (name, _) in map.range(prefix.clone()..).take_while(|(name, _)| name.starts_with(&prefix)) {
            let conversation = name.get(prefix.len()..name.len().saturating_sub(1)).unwrap_or_default();
            let conversation = String::from_utf8_lossy(conversation);
            let is_behind = match page.order {
                ListOrder::Ascending => *conversation > *after,
                ListOrder::Descending => after.is_empty() || *conversation < *after,
            };
            if is_behind && read::<Head>(&map, name)?.is_some_and(|head| head.version > 0) {
                keys.push(
                    ConversationKey::in_tenant(&page.tenant, &conversation)
                        .map_err(StoreError::unavailable)?,
                );
            }
        }
        if page.order == ListOrder::Descending {
            keys.reverse();
        }
        keys.truncate(page.limit);
        Ok(keys)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let (store, key) = (OrderedStore::default(), ConversationKey::new("c1")?);
    let log = store.load(&key, ReadRange::All).await?;
    assert_eq!(log.version, Version::EMPTY);
    Ok(())
}

#[cfg(test)]
mod conformance {
    advisor_conformance::store_conformance!(super::OrderedStore::default());
}
