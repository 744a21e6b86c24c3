//! Overwrites pages of an open file, and checks that each acknowledged entry is read or an error reports the
//! damage.

use std::fs::OpenOptions;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use advisor_core::ConversationKey;
use chat_memory_sqlite::SqliteStore;
use conversation_store::{ConversationStore, EntryKind, ReadRange, StoreError, Version};
use tokio::task::JoinSet;

use crate::support::{File, said};

const WRITERS: usize = 8;
const PAGE: usize = 4096;

/// The content that replaces a page.
#[derive(Debug, Clone, Copy)]
enum Pattern {
    Zeros,
    Noise,
    /// Its second half is lost, as of a write that was torn.
    Torn,
    /// Another page of the same file.
    Another,
    /// An earlier content of the page.
    Earlier,
}

/// Numbers that depend on the seed alone.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next()).unwrap() % bound
    }
}

/// The outcomes of one writer: acknowledged texts by their position, and errors.
struct Told {
    key: ConversationKey,
    written: Vec<(u64, String)>,
    errors: Vec<StoreError>,
}

impl Told {
    fn new(writer: usize) -> Self {
        let key = ConversationKey::new(&format!("conversation-{writer}")).unwrap();
        Self { key, written: Vec::new(), errors: Vec::new() }
    }

    /// Appends a text per round, one after the other, and keeps the outcomes.
    async fn write(mut self, store: SqliteStore, rounds: std::ops::Range<u32>) -> Self {
        let mut version = Version(self.written.last().map_or(0, |(seq, _)| *seq));
        for round in rounds {
            let length = if round % 7 == 3 { 9_000 } else { 40 };
            let text = format!("{} {round} ", self.key.conversation()).repeat(length / 20);
            match store.append(&self.key, version, said("t", round, &[&text])).await {
                Ok(next) => {
                    self.written.push((next.0, text));
                    version = next;
                }
                Err(error) => self.errors.push(error),
            }
        }
        self
    }

    /// Returns the acknowledged entries that cannot be read although no error reported the damage.
    async fn lost(&self, store: &SqliteStore) -> Vec<String> {
        if self.errors.iter().any(|error| matches!(error, StoreError::Corrupt { .. })) {
            return Vec::new();
        }
        let Ok(read) = store.load(&self.key, ReadRange::All).await else { return Vec::new() };
        let is_there = |(seq, text): &&(u64, String)| {
            let entry = read.entries.iter().find(|entry| entry.seq == *seq);
            entry.is_some_and(|entry| match &entry.kind {
                EntryKind::Corrupt(_) => true,
                kind => kind.as_message().is_some_and(|message| message.text() == *text),
            })
        };
        let lost = self.written.iter().filter(|written| !is_there(written));
        lost.map(|(seq, _)| format!("{} entry {seq} of {}", self.key.conversation(), read.version)).collect()
    }
}

/// Writes one after the other, so that the pages are the same each time.
async fn write_in_turn(store: &SqliteStore, told: Vec<Told>, rounds: std::ops::Range<u32>) -> Vec<Told> {
    let mut all = Vec::new();
    for told in told {
        all.push(told.write(store.clone(), rounds.clone()).await);
    }
    all
}

async fn write_all(store: &SqliteStore, told: Vec<Told>, rounds: std::ops::Range<u32>) -> Vec<Told> {
    let mut writers = JoinSet::new();
    for told in told {
        writers.spawn(told.write(store.clone(), rounds.clone()));
    }
    writers.join_all().await
}

/// Puts other bytes in the place of some pages of the file.
fn overwrite(path: &Path, earlier: &[u8], pattern: Pattern, numbers: &mut Numbers) -> Vec<usize> {
    let mut file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).unwrap();
    let pages = bytes.len() / PAGE;
    let mut overwritten = Vec::new();
    for _ in 0..=numbers.below(3) {
        // The first page is the header of the file.
        let page = 1 + numbers.below(pages - 1);
        let at = |page: usize| page * PAGE..(page + 1) * PAGE;
        let mut new = bytes[at(page)].to_vec();
        match pattern {
            Pattern::Zeros => new.fill(0),
            Pattern::Noise => new.fill_with(|| u8::try_from(numbers.below(256)).unwrap()),
            Pattern::Torn => new[PAGE / 2..].fill(0),
            Pattern::Another => new = bytes[at(1 + numbers.below(pages - 1))].to_vec(),
            Pattern::Earlier => match earlier.get(at(page)) {
                Some(old) => new = old.to_vec(),
                None => new.fill(0),
            },
        }
        file.seek(SeekFrom::Start(u64::try_from(page * PAGE).unwrap())).unwrap();
        file.write_all(&new).unwrap();
        overwritten.push(page);
    }
    overwritten
}

fn into_the_file(file: &File) {
    file.tamper("PRAGMA wal_checkpoint(TRUNCATE)");
}

async fn lost_without_an_error(pattern: Pattern, seed: u64) -> Vec<String> {
    let (file, mut numbers) = (File::new(), Numbers(seed));
    let store = file.open().await;
    let told = (0..WRITERS).map(Told::new).collect();
    let told = write_in_turn(&store, told, 0..10).await;
    into_the_file(&file);
    let earlier = std::fs::read(file.path()).unwrap();
    let told = write_in_turn(&store, told, 10..20).await;
    into_the_file(&file);
    overwrite(&file.path(), &earlier, pattern, &mut numbers);
    let told = write_all(&store, told, 20..30).await;
    let mut lost = Vec::new();
    for told in &told {
        lost.extend(told.lost(&store).await);
    }
    store.close().await;
    let Ok(store) = SqliteStore::open(file.path()).await else { return lost };
    for told in &told {
        lost.extend(told.lost(&store).await.into_iter().map(|lost| format!("reopened: {lost}")));
    }
    lost
}

/// Of 60 seeds per pattern, these and others. At the last four, appends were lost before the checks.
const SEEDS: [u64; 8] = [0, 1, 2, 3, 6, 26, 35, 51];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_entries_are_read_or_damage_is_reported() {
    for pattern in [Pattern::Zeros, Pattern::Noise, Pattern::Torn, Pattern::Another, Pattern::Earlier] {
        for seed in SEEDS {
            let lost = lost_without_an_error(pattern, seed).await;
            assert_eq!(lost, [] as [String; 0], "{pattern:?} {seed}");
        }
    }
}
