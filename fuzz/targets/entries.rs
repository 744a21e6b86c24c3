//! Checks that any stored or exported data is read or refused at its position, and that read data is written
//! unchanged.
//!
//! The input is a letter that selects its form, then the rest, which the function of that form describes.
#![no_main]

use advisor_core::{ConversationKey, TurnId};
use advisor_fuzz::{Script, log, wait_for};
use conversation_store::{
    Batch, BatchKey, ConversationStore, Entry, EntryId, EntryKind, ImportError, InMemoryStore, LogReader,
    NewEntry, Segment, StoreError, Version, export, import,
};
use futures::TryStreamExt;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|script: &[u8]| {
    let mut script = Script::new(script);
    match script.letter(b"kerid") {
        Some(b'k') => check_kind(script.rest()),
        Some(b'e') => check_entry(script.rest()),
        Some(b'r') => check_rows(&mut script),
        Some(b'i') => wait_for(check_import(script.rest())),
        _ => wait_for(check_damaged_line(&mut script)),
    }
});

/// `k`: the JSON of an entry's kind.
fn check_kind(json: &[u8]) {
    let Ok(kind) = serde_json::from_slice::<EntryKind>(json) else { return };
    let written = serde_json::to_string(&kind).expect("what was read can be written");
    let again: EntryKind = serde_json::from_str(&written).expect("what was written can be read");
    assert_eq!(again, kind, "{written}");
    assert_eq!(serde_json::to_string(&again).ok().as_ref(), Some(&written));
    if matches!(kind, EntryKind::Unknown(_)) {
        assert_eq!(value(written.as_bytes()), value(json), "an unknown kind is written as it came");
    }
}

/// `e`: the JSON of a whole entry.
fn check_entry(json: &[u8]) {
    let Ok(entry) = serde_json::from_slice::<Entry>(json) else { return };
    let written = serde_json::to_string(&entry).expect("what was read can be written");
    assert_eq!(serde_json::from_str::<Entry>(&written).ok().as_ref(), Some(&entry), "{written}");
    if matches!(entry.kind, EntryKind::Unknown(_)) {
        let said = |json| value(json).and_then(|mut entry| entry.get_mut("entry").map(Value::take));
        assert_eq!(said(written.as_bytes()), said(json), "an unknown kind is written as it came");
    }
}

/// `r`: rows of a store. First come the declared segments: the number of skipped entries and the length of
/// each; a length of 0 ends them. Then come rows: the number of skipped numbers, and a turn and a kind in
/// quotes.
fn check_rows(script: &mut Script<'_>) {
    let (mut segments, mut last) = (Vec::new(), 0);
    loop {
        let (skipped, length) = (script.number() as u64, script.number() as u64);
        if length == 0 || segments.len() == 8 {
            break;
        }
        let first = last + 1 + skipped;
        last = first + length - 1;
        let parent = (skipped > 0).then(|| EntryId(first / 2));
        segments.push(Segment { first, last, parent });
    }
    let numbers: Vec<u64> = segments.iter().flat_map(|part| part.first..=part.last).collect();
    let mut reader = LogReader::new(segments);
    let mut rows = Vec::new();
    let mut left = numbers.as_slice();
    while let Some((seq, rest)) =
        left.split_at_checked(script.number()).and_then(|(_, rest)| rest.split_first())
    {
        left = rest;
        let (turn, kind) = (script.quoted(), script.quoted());
        match reader.row(*seq, turn.as_bytes(), kind.as_bytes()) {
            Ok(()) => rows.push((*seq, turn, kind)),
            Err(error) => return assert!(matches!(error, StoreError::Corrupt { .. }), "{error}"),
        }
        if script.rest().is_empty() {
            break;
        }
    }
    let Ok(entries) = reader.finish() else { return };
    assert!(entries.iter().map(|entry| entry.seq).eq(numbers), "every number has an entry");
    for entry in &entries {
        let row = rows.iter().find(|(seq, ..)| *seq == entry.seq);
        assert_eq!(entry.kind, as_stored(row), "entry {}", entry.seq);
        if let Some(turn) = row.and_then(|(_, turn, _)| TurnId::new(turn).ok()) {
            assert_eq!(entry.turn, turn);
        }
    }
}

/// Returns the content of a row: its bytes if it cannot be read, and no bytes if it is missing.
fn as_stored(row: Option<&(u64, String, String)>) -> EntryKind {
    let Some((_, turn, kind)) = row else { return EntryKind::Corrupt(Vec::new()) };
    let read = TurnId::new(turn).ok().and_then(|_| serde_json::from_str(kind).ok());
    read.unwrap_or_else(|| EntryKind::Corrupt(kind.as_bytes().to_vec()))
}

/// `i`: lines of an export.
async fn check_import(lines: &[u8]) {
    let store = InMemoryStore::new();
    let renamed = ConversationKey::new("copy").expect("a short name");
    let bad = first_bad_line(lines);
    match import(&store, lines, Some(renamed.clone())).await {
        Ok(imported) => {
            assert_eq!(bad, None, "a line that is no JSON was imported");
            let there =
                store.read(&renamed, EntryId::BEGINNING, usize::MAX).await.expect("a store in memory");
            assert_eq!(there.len() as u64, imported.entries);
            let written = exported(&store, &renamed).await;
            let other = InMemoryStore::new();
            let again =
                import(&other, written.as_bytes(), None).await.expect("what was exported is imported");
            assert_eq!(again, imported);
            assert_eq!(exported(&other, &renamed).await, written, "what is written again reads the same");
        }
        Err(ImportError::Line { line, .. }) => {
            assert!(line <= lines.split(|byte| *byte == b'\n').count() as u64);
            assert!(bad.is_none_or(|bad| line <= bad), "line {line} is refused, but {bad:?} is no JSON");
        }
        Err(ImportError::NoHeader | ImportError::Newer { .. } | ImportError::Cut { .. }) => {}
        Err(error) => panic!("nothing else can go wrong: {error}"),
    }
}

/// `d`: a log that is exported and one of its lines cut.
async fn check_damaged_line(script: &mut Script<'_>) {
    let (place, length) = (script.number(), script.number());
    let log = log(script);
    let key = ConversationKey::new("c").expect("a short name");
    let store = holding(&log, &key).await;
    let whole = exported(&store, &key).await;
    let copy = InMemoryStore::new();
    import(&copy, whole.as_bytes(), None).await.expect("what was exported is imported");
    let there = copy.read(&key, EntryId::BEGINNING, usize::MAX).await.expect("a store in memory");
    assert_eq!(there, log, "what is imported is what was exported");

    let mut lines: Vec<&str> = whole.lines().collect();
    let at = place % lines.len();
    // Something is left of the line, but not its last brace.
    let length = 1 + length % (lines[at].len() - 1);
    let Some(cut) = lines[at].get(..length) else { return };
    lines[at] = cut;
    let refused = import(&InMemoryStore::new(), lines.join("\n").as_bytes(), None).await;
    match refused {
        Err(ImportError::NoHeader) => assert_eq!(at, 0),
        Err(ImportError::Line { line, .. }) => assert_eq!(line, at as u64 + 1, "the damaged line is named"),
        other => panic!("line {} is damaged: {other:?}", at + 1),
    }
}

/// The number of the first line that is neither blank nor JSON.
fn first_bad_line(lines: &[u8]) -> Option<u64> {
    let is_bad = |line: &[u8]| !line.trim_ascii().is_empty() && value(line).is_none();
    let place = lines.split(|byte| *byte == b'\n').position(is_bad)?;
    Some(place as u64 + 1)
}

fn value(json: &[u8]) -> Option<Value> {
    serde_json::from_slice(json).ok()
}

async fn exported(store: &InMemoryStore, key: &ConversationKey) -> String {
    export(store.clone(), key.clone()).try_collect().await.expect("a store in memory")
}

async fn holding(log: &[Entry], key: &ConversationKey) -> InMemoryStore {
    let store = InMemoryStore::new();
    let entries = log.iter().map(|entry| NewEntry::new(entry.turn.clone(), entry.kind.clone())).collect();
    let name = BatchKey::new(TurnId::new("all").expect("a short name"), 0, "all");
    store.append(key, Version::EMPTY, Batch::new(name, entries)).await.expect("a store in memory");
    store
}
