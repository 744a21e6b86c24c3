//! Checks the log at the end of a schedule: turns in one piece, nothing lost, and no call started twice.

use advisor_tests::prelude::*;

use crate::schedules::leaves::{Seen, chain, yielding};

pub(crate) fn key() -> ConversationKey {
    ConversationKey::new("c").unwrap()
}

pub(crate) fn turn_id(number: usize) -> TurnId {
    TurnId::new(&format!("t{number}")).unwrap()
}

pub(crate) fn said_in(number: usize) -> String {
    format!("say {number}")
}

/// The log, which has no gaps.
pub(crate) async fn log_of(store: &InMemoryStore) -> Vec<Entry> {
    let log = store.read(&key(), EntryId::BEGINNING, usize::MAX).await.unwrap();
    assert!(log.iter().map(|entry| entry.seq).eq(1..=log.len() as u64), "M3: {log:?}");
    let version = store.load(&key(), ReadRange::All).await.unwrap().version;
    assert_eq!(version.0, log.len() as u64, "M3");
    log
}

/// Checks the log at the end. Each turn is in one piece, each input is stored once, and all acknowledged turns
/// are stored. No call was started twice. Another process can continue at once, with a valid request.
pub(crate) async fn check(store: &InMemoryStore, acknowledged: &[usize], seen: &Seen) {
    let log = log_of(store).await;
    let mut turns: Vec<_> = log.iter().map(|entry| &entry.turn).collect();
    turns.dedup();
    let different: BTreeSet<_> = turns.iter().collect();
    assert_eq!(different.len(), turns.len(), "M3: turns are mixed: {log:?}");
    for turn in different {
        let inputs = of_turn(&log, turn).filter(|entry| said(entry, Role::User).is_some());
        assert_eq!(inputs.count(), 1, "K4: the input of {turn}: {log:?}");
    }
    for number in acknowledged {
        let own: Vec<_> = of_turn(&log, &turn_id(*number)).collect();
        assert_eq!(said(own[0], Role::User), Some(said_in(*number)), "O6");
        let answer = format!("Done: {}", said_in(*number));
        let ended = |pair: &[&Entry]| {
            said(pair[0], Role::Assistant).is_some_and(|text| text == answer)
                && matches!(pair[1].kind, EntryKind::TurnEnded(TurnEnd::Completed(_)))
        };
        assert!(own.windows(2).any(ended), "O6: what was answered in {number} is lost: {log:?}");
    }
    for (call, times) in &*seen.starts.lock().unwrap() {
        assert_eq!(*times, 1, "T5: {call} was started {times} times: {log:?}");
    }
    // A copy, as leases of turns that were dropped are still to end.
    let copy = InMemoryStore::new();
    copy_log(&log, &copy).await;
    let memory = ChatMemoryAdvisor::new(yielding(copy));
    let next = chain(&memory, Phase::Round, seen).prompt().user("next").conversation(key());
    assert_eq!(next.call().await.unwrap().text(), "Done: next", "M6");
}

async fn copy_log(log: &[Entry], to: &InMemoryStore) {
    use advisor_chain::memory::store::{Batch, BatchKey, NewEntry, Version};
    if let Some(first) = log.first() {
        let entries = log.iter().map(|entry| NewEntry::new(entry.turn.clone(), entry.kind.clone())).collect();
        let batch = Batch::new(BatchKey::new(first.turn.clone(), 0, "copy"), entries);
        to.append(&key(), Version::EMPTY, batch).await.unwrap();
    }
}

fn of_turn<'a>(log: &'a [Entry], turn: &TurnId) -> impl Iterator<Item = &'a Entry> {
    log.iter().filter(move |entry| entry.turn == *turn)
}

fn said(entry: &Entry, role: Role) -> Option<String> {
    entry.kind.as_message().filter(|message| message.role() == role).map(Message::text)
}
