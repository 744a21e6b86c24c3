//! Tests of `export` and `import`.

use futures::{FutureExt, TryStreamExt};
use proptest::prelude::*;
use tokio::io::BufReader;

use super::*;
use crate::tests::{any_log, user};
use crate::{Entry, EntryId, EntryKind, InMemoryStore, ReadRange, StoreError, export};

fn key() -> ConversationKey {
    ConversationKey::new("c").unwrap()
}

/// Creates a store with this log, one batch per turn.
async fn holding(log: &[Entry]) -> InMemoryStore {
    let store = InMemoryStore::new();
    let mut version = Version::EMPTY;
    for entry in log {
        let key_of_batch = BatchKey::new(entry.turn.clone(), 0, format!("{}", entry.seq));
        let batch = Batch::new(key_of_batch, vec![NewEntry::new(entry.turn.clone(), entry.kind.clone())]);
        version = store.append(&key(), version, Batch { parent: entry.parent, ..batch }).await.unwrap();
    }
    store
}

async fn exported(store: &InMemoryStore) -> String {
    export(store.clone(), key()).try_collect().await.unwrap()
}

async fn log_of(store: &InMemoryStore) -> Vec<Entry> {
    store.read(&key(), EntryId::BEGINNING, usize::MAX).await.unwrap()
}

/// Three turns and a branch, with an unknown and a damaged entry.
fn branched() -> Vec<Entry> {
    let unknown = r#"{"format":9,"kind":"mood","seq":5,"turn":7,"parent":"x","value":1.5}"#;
    let kinds = [
        ("a", EntryKind::from(user("u\u{0}\n\u{2028}"))),
        ("a", EntryKind::Unknown(serde_json::from_str(unknown).unwrap())),
        ("b", EntryKind::Corrupt(b"half an en".into())),
        ("c", EntryKind::Corrupt(vec![0xFF, 0, 1])),
        ("d", EntryKind::Corrupt(Vec::new())),
    ];
    let mut log = crate::tests::log(&kinds.map(|(turn, kind)| (turn, vec![kind])));
    log[3].parent = Some(EntryId(2));
    log[4].parent = Some(EntryId::BEGINNING);
    log
}

proptest! {
    #[test]
    fn import_restores_the_export(log in any_log(), chunk in 1..40_usize) {
        let round_trip = async {
            let (store, other) = (holding(&log).await, InMemoryStore::new());
            let lines = exported(&store).await;
            let slow = BufReader::with_capacity(chunk, lines.as_bytes());
            let imported = import(&other, slow, None).await.unwrap();
            assert_eq!(imported, Imported { key: key(), entries: log.len() as u64 });
            assert_eq!(log_of(&other).await, log_of(&store).await);
        };
        round_trip.now_or_never().unwrap();
    }
}

#[tokio::test]
async fn unknown_and_damaged_entries_and_branches_export_unchanged() {
    let (store, other) = (holding(&branched()).await, InMemoryStore::new());
    let lines = exported(&store).await;
    assert_eq!(lines.lines().count(), 6);
    import(&other, lines.as_bytes(), None).await.unwrap();
    assert_eq!(log_of(&other).await, branched());
    assert_eq!(exported(&other).await, lines);
    for range in [ReadRange::All, ReadRange::LastTurns(1)] {
        assert_eq!(other.load(&key(), range).await.unwrap(), store.load(&key(), range).await.unwrap());
    }
}

/// A long conversation: 400 turns of three entries, and one of a thousand.
fn long() -> Vec<Entry> {
    let turns = (0..400).map(|turn| (format!("t{turn}"), vec![EntryKind::from(user("u")); 3]));
    let turns: Vec<_> = turns.chain([("long".into(), vec![EntryKind::from(user("x")); 1_000])]).collect();
    crate::tests::log(&turns.iter().map(|(turn, kinds)| (turn.as_str(), kinds.clone())).collect::<Vec<_>>())
}

#[tokio::test]
async fn repeated_import_is_idempotent_and_resumes_cut_one() {
    let (log, store) = (long(), InMemoryStore::new());
    let lines = exported(&holding(&log).await).await;
    for cut in [1, 2, 70, 71, 999, 1_500, 2_200] {
        let part: String = lines.split_inclusive('\n').take(cut).collect();
        let found = cut as u64 - 1;
        let refused = import(&store, part.as_bytes(), None).await;
        assert!(
            matches!(refused, Err(ImportError::Cut { entries: 2_200, found: got }) if got == found),
            "{refused:?}"
        );
        let there = log_of(&store).await;
        assert!(there.len() as u64 <= found && there == log[..there.len()]);
    }
    for _ in 0..2 {
        import(&store, lines.as_bytes(), None).await.unwrap();
        assert_eq!(log_of(&store).await, log);
    }
    // This also holds when the conversation has continued since.
    let turn = crate::tests::turn("on");
    let on = NewEntry::new(turn.clone(), user("on").into());
    let batch = Batch::new(BatchKey::new(turn, 0, "input"), vec![on]);
    store.append(&key(), Version(2_200), batch).await.unwrap();
    import(&store, lines.as_bytes(), None).await.unwrap();
    assert_eq!(log_of(&store).await.len(), 2_201);
}

#[tokio::test]
async fn a_conversation_that_holds_something_else_is_refused() {
    let lines = exported(&holding(&branched()).await).await;
    for other in [crate::tests::log(&[("z", vec![user("z").into()])]), long(), branched()] {
        let store = holding(&other).await;
        let refused = import(&store, lines.as_bytes(), None).await.unwrap_err();
        assert!(matches!(&refused, ImportError::OtherContent { key: of } if *of == key()), "{refused:?}");
        assert_eq!(log_of(&store).await, other, "it is left as it is");
        let renamed = ConversationKey::in_tenant("acme", "copy").unwrap();
        let imported = import(&store, lines.as_bytes(), Some(renamed.clone())).await.unwrap();
        assert_eq!(imported.key, renamed);
        assert_eq!(store.read(&renamed, EntryId::BEGINNING, 9).await.unwrap(), branched());
    }
    // The second import has other content under the same keys.
    let store = InMemoryStore::new();
    import(&store, lines.as_bytes(), None).await.unwrap();
    let changed = lines.replace("half an en", "half another");
    let refused = import(&store, changed.as_bytes(), None).await;
    assert!(matches!(refused, Err(ImportError::OtherContent { .. })), "{refused:?}");
}

#[tokio::test]
async fn lines_that_cannot_be_used_are_named() {
    let lines = exported(&holding(&branched()).await).await;
    let with = |line: usize, new: &str| {
        let mut all: Vec<_> = lines.lines().collect();
        all[line] = new;
        all.join("\n")
    };
    let good = lines.lines().nth(3).unwrap();
    for (text, line) in [
        (with(2, "secret"), 3),
        (with(2, "{\"secret\":1}"), 3),
        (with(2, good), 3),
        (with(3, &good.replace("\"turn\":\"b\"", "\"turn\":\"no turn\"")), 4),
        (with(4, &lines.lines().nth(4).unwrap().replace("\"parent\":2", "\"parent\":4")), 5),
        (format!("{lines}\n\n{good}"), 9),
        (with(0, &lines.lines().next().unwrap().replace("\"c\"", "\"no\\u0000key\"")), 1),
    ] {
        let refused = import(&InMemoryStore::new(), text.as_bytes(), None).await.unwrap_err();
        assert!(matches!(refused, ImportError::Line { line: at, .. } if at == line), "{line}: {refused:?}");
        assert!(!format!("{refused:?} {refused}").contains("secret"));
        assert!(refused.to_string().contains(&format!("line {line} ")), "{refused}");
    }
    for text in ["", "secret", "{}", &with(0, good), &lines.replace(FORMAT, "other")] {
        let refused = import(&InMemoryStore::new(), text.as_bytes(), None).await;
        assert!(matches!(refused, Err(ImportError::NoHeader)), "{text}: {refused:?}");
    }
    let newer = lines.replace("\"version\":1", "\"version\":2");
    let refused = import(&InMemoryStore::new(), newer.as_bytes(), None).await;
    assert!(matches!(refused, Err(ImportError::Newer { found: 2, known: 1 })), "{refused:?}");
    let spaced = lines.replace('\n', "\r\n\n");
    assert_eq!(import(&InMemoryStore::new(), spaced.as_bytes(), None).await.unwrap().entries, 5);
}

#[tokio::test]
async fn invalid_utf8_is_refused_even_in_unknown_field() {
    let lines = exported(&holding(&branched()).await).await;
    for (line, refusal) in [(0, "line 1 "), (2, "line 3 ")] {
        let mut all: Vec<Vec<u8>> = lines.lines().map(|line| line.as_bytes().to_vec()).collect();
        let end = all[line].len() - 1;
        all[line].splice(end..end, *b",\"later\":\"\xff\"");
        let refused = import(&InMemoryStore::new(), all.join(&b'\n').as_slice(), None).await.unwrap_err();
        assert!(refused.to_string().contains(refusal), "{refused}");
    }
}

#[tokio::test]
async fn law_r1_a_line_without_an_end_is_refused() {
    // The endless line must be refused at the bound, or the import would never end.
    let header = b"{\"format\":\"advisor-conversation\",\"version\":1,\"tenant\":\"default\",\"conversation\":\"c\",\"entries\":1}\n";
    let endless = AsyncReadExt::chain(&header[..], BufReader::new(tokio::io::repeat(b'x')));
    let refused = import(&InMemoryStore::new(), endless, None).await;
    assert!(matches!(refused, Err(ImportError::Line { line: 2, .. })), "{refused:?}");
}

#[tokio::test]
async fn export_reads_lazily_and_ends_at_deletion() {
    let store = holding(&long()).await;
    let mut export = std::pin::pin!(export(store.clone(), key()));
    let mut lines = Vec::new();
    for _ in 0..10 {
        lines.push(export.try_next().await.unwrap().unwrap());
    }
    store.delete(&key()).await.unwrap();
    let outcome = export.try_for_each(|_| async { Ok(()) }).await;
    assert!(matches!(outcome, Err(StoreError::Gone)), "{outcome:?}");
    let nothing: Vec<_> = self::export(store, key()).try_collect().await.unwrap();
    assert_eq!(nothing.len(), 1, "a header");
}

#[tokio::test]
async fn lines_of_another_tenant_do_not_choose_where_they_go() {
    let lines = exported(&holding(&branched()).await).await;
    let forged = lines.replacen("\"tenant\":\"default\"", "\"tenant\":\"acme\"", 1);
    assert_ne!(forged, lines);
    let store = InMemoryStore::new();
    let refused = import(&store, forged.as_bytes(), None).await.unwrap_err();
    assert!(matches!(&refused, ImportError::OtherTenant { tenant } if tenant == "acme"), "{refused:?}");
    let named = ConversationKey::in_tenant("acme", "c").unwrap();
    assert!(store.read(&named, EntryId::BEGINNING, 9).await.unwrap().is_empty());
    let imported = import(&store, forged.as_bytes(), Some(named.clone())).await.unwrap();
    assert_eq!(imported.key, named);
}
