//! Tests of a bounded store in memory, against a model of its evictions, and with concurrent turns.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::time::Duration;

use advisor_core::{ConversationKey, FinishReason, Message, Phase, TurnEnd, TurnId};
use advisor_testkit::{Answer, Gate, ScriptedModel};
use chat_memory_advisor::ChatMemoryAdvisor;
use conversation_store::{
    Batch, BatchKey, ConversationStore, EntryKind, FencingToken, InMemoryStore, Leases, NewEntry, Page,
    ReadRange, StoreError, Version,
};
use proptest::prelude::*;
use tokio::task::{JoinSet, yield_now};
use tokio::time::timeout;

use crate::support::{builder, read_until, words};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

fn bound(conversations: usize) -> NonZeroUsize {
    NonZeroUsize::new(conversations).unwrap()
}

fn key(number: usize) -> ConversationKey {
    ConversationKey::new(&format!("c{number}")).unwrap()
}

/// A turn of one message, which ends with it or stays open.
fn said(turn: &str, ends: bool) -> Batch {
    let turn = TurnId::new(turn).unwrap();
    let mut entries = vec![NewEntry::new(turn.clone(), EntryKind::Message(Message::user("x")))];
    entries.extend(ends.then(|| end_of(&turn)));
    Batch::new(BatchKey::new(turn, 0, "said"), entries)
}

fn end(turn: &str) -> Batch {
    let turn = TurnId::new(turn).unwrap();
    Batch::new(BatchKey::new(turn.clone(), 0, "end"), vec![end_of(&turn)])
}

fn end_of(turn: &TurnId) -> NewEntry {
    NewEntry::new(turn.clone(), EntryKind::TurnEnded(TurnEnd::Completed(FinishReason::Stop)))
}

async fn version(store: &InMemoryStore, key: &ConversationKey) -> Version {
    store.load(key, ReadRange::LastEntries(0)).await.unwrap().version
}

async fn listed(store: &InMemoryStore) -> Vec<ConversationKey> {
    store.list(&Page::first(key(0).tenant(), usize::MAX)).await.unwrap()
}

/// An operation on one of a few conversations.
#[derive(Debug, Clone, Copy)]
enum Operation {
    /// A turn, which ends at once or stays open.
    Say {
        ends: bool,
    },
    /// The end of the turn that was said last.
    End,
    Load,
    Delete,
    Acquire,
    Release,
    /// An append with an earlier fencing token of this conversation, `ago` grants ago.
    SayFenced {
        ago: usize,
    },
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        4 => any::<bool>().prop_map(|ends| Operation::Say { ends }),
        2 => Just(Operation::End),
        2 => Just(Operation::Load),
        1 => Just(Operation::Delete),
        3 => Just(Operation::Acquire),
        3 => Just(Operation::Release),
        3 => (0..4_usize).prop_map(|ago| Operation::SayFenced { ago }),
    ]
}

/// The expected state of a conversation for which the store has a place.
#[derive(Default)]
struct Known {
    entries: u64,
    open: Option<String>,
    held: bool,
    /// The step of the last use. `None` after a deletion, until it is used again to write: the first to be evicted.
    used: Option<usize>,
}

/// The reference model of a store with `most` places.
struct Model {
    most: usize,
    places: BTreeMap<usize, Known>,
    /// The granted fencing tokens of each conversation, including evicted ones.
    tokens: BTreeMap<usize, Vec<FencingToken>>,
}

impl Model {
    /// Evicts a conversation for a new one if necessary. Returns `false` if none can be evicted.
    fn make_room(&mut self, number: usize) -> bool {
        if self.places.contains_key(&number) || self.places.len() < self.most {
            return true;
        }
        let idle = self.places.iter().filter(|(_, known)| known.open.is_none() && !known.held);
        let Some((&oldest, _)) = idle.min_by_key(|(_, known)| known.used) else { return false };
        self.places.remove(&oldest);
        true
    }

    fn listed(&self) -> Vec<ConversationKey> {
        let there = self.places.iter().filter(|(_, known)| known.entries > 0);
        there.map(|(number, _)| key(*number)).collect()
    }
}

/// A store and its model, side by side.
struct Both {
    store: InMemoryStore,
    model: Model,
}

impl Both {
    fn with_most(most: usize) -> Self {
        let store = InMemoryStore::with_max_conversations(bound(most)).with_leases();
        Self { store, model: Model { most, places: BTreeMap::new(), tokens: BTreeMap::new() } }
    }

    async fn run(&mut self, step: usize, number: usize, operation: Operation) {
        let turn = format!("t{step}");
        match operation {
            Operation::Say { ends } => self.say(step, number, said(&turn, ends), ends).await,
            Operation::SayFenced { ago } => {
                let Some(tokens) = self.model.tokens.get(&number) else { return };
                let Some(&token) = tokens.iter().nth_back(ago) else { return };
                if ago == 0 {
                    // Whether the latest token is still valid depends on evictions, so it is not used here.
                    return;
                }
                let at = version(&self.store, &key(number)).await;
                self.touch(step, number);
                let refused = self.store.append(&key(number), at, said(&turn, true).with_token(token)).await;
                assert!(matches!(refused, Err(StoreError::Fenced)), "an old token wrote: {refused:?}");
            }
            Operation::End => {
                let known = self.model.places.get_mut(&number);
                let Some((known, open)) = known.and_then(|known| known.open.take().map(|open| (known, open)))
                else {
                    return;
                };
                known.entries += 1;
                known.used = Some(step);
                let at = Version::new(known.entries - 1);
                self.store.append(&key(number), at, end(&open)).await.unwrap();
            }
            Operation::Load => {
                self.store.load(&key(number), ReadRange::All).await.unwrap();
                self.touch(step, number);
            }
            Operation::Delete => {
                self.store.delete(&key(number)).await.unwrap();
                if let Some(known) = self.model.places.get_mut(&number) {
                    (known.entries, known.open, known.used) = (0, None, None);
                    if !known.held {
                        self.model.places.remove(&number);
                    }
                }
            }
            Operation::Acquire => self.acquire(step, number).await,
            Operation::Release => {
                let token = self.model.tokens.get(&number).and_then(|tokens| tokens.last());
                if let (Some(token), Some(known)) = (token, self.model.places.get_mut(&number)) {
                    self.store.release(&key(number), *token).await.unwrap();
                    known.held = false;
                }
            }
        }
    }

    fn touch(&mut self, step: usize, number: usize) {
        if let Some(used) = self.model.places.get_mut(&number).and_then(|known| known.used.as_mut()) {
            *used = step;
        }
    }

    async fn say(&mut self, step: usize, number: usize, batch: Batch, ends: bool) {
        let entries = self.model.places.get(&number).map_or(0, |known| known.entries);
        let count = u64::try_from(batch.entries.len()).unwrap();
        let turn = batch.key.turn.to_string();
        let outcome = self.store.append(&key(number), Version::new(entries), batch).await;
        if !self.model.make_room(number) {
            assert!(matches!(outcome, Err(StoreError::Full { .. })), "{outcome:?}");
            return;
        }
        assert_eq!(outcome.unwrap(), Version::new(entries + count));
        let known = self.model.places.entry(number).or_default();
        known.entries += count;
        known.open = (!ends).then_some(turn);
        known.used = Some(step);
    }

    async fn acquire(&mut self, step: usize, number: usize) {
        let outcome = self.store.acquire(&key(number), &TurnId::new("holder").unwrap(), HOUR, None).await;
        if self.model.places.get(&number).is_some_and(|known| known.held) {
            assert!(matches!(outcome, Err(StoreError::Locked { .. })), "{outcome:?}");
            self.touch(step, number);
            return;
        }
        if !self.model.make_room(number) {
            assert!(matches!(outcome, Err(StoreError::Full { .. })), "{outcome:?}");
            return;
        }
        let token = outcome.unwrap();
        let before = self.model.tokens.values().flatten().max();
        assert!(before.is_none_or(|before| *before < token), "a token of {token:?} after {before:?}");
        self.model.tokens.entry(number).or_default().push(token);
        let known = self.model.places.entry(number).or_default();
        (known.held, known.used) = (true, Some(step));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// The store keeps, evicts and refuses as the model does. An old fencing token never writes, even after an
    /// eviction.
    #[test]
    fn store_evicts_least_recently_used_idle_conversation(
        most in 1..4_usize,
        operations in prop::collection::vec((0..5_usize, operation()), 1..60),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let mut both = Both::with_most(most);
            for (step, (number, operation)) in operations.into_iter().enumerate() {
                both.run(step, number, operation).await;
                assert_eq!(listed(&both.store).await, both.model.listed(), "after {operation:?} of {number}");
            }
        });
    }
}

#[tokio::test]
async fn evicted_conversation_is_gone_for_earlier_reader() {
    let store = InMemoryStore::with_max_conversations(bound(1));
    let read = store.append(&key(0), Version::EMPTY, said("a", true)).await.unwrap();
    store.append(&key(1), Version::EMPTY, said("b", true)).await.unwrap();
    let late = store.append(&key(0), read, said("c", true)).await;
    assert!(matches!(late, Err(StoreError::Gone)), "{late:?}");
    // One that is refused takes nobody's place.
    assert_eq!(listed(&store).await, [key(1)]);
    // Nor is it taken for one of the same name that has come as far.
    store.append(&key(0), Version::EMPTY, said("d", true)).await.unwrap();
    let late = store.append(&key(0), read, said("e", true).with_last_turn(TurnId::new("a").unwrap())).await;
    assert!(matches!(late, Err(StoreError::Gone)), "{late:?}");
}

#[tokio::test]
async fn full_store_reports_limit_until_turn_ends() {
    let store = InMemoryStore::with_max_conversations(bound(2));
    let open = store.append(&key(0), Version::EMPTY, said("a", false)).await.unwrap();
    store.append(&key(1), Version::EMPTY, said("b", false)).await.unwrap();
    let refused = store.append(&key(2), Version::EMPTY, said("c", true)).await.unwrap_err();
    assert!(matches!(refused, StoreError::Full { limit: 2 }), "{refused:?}");
    assert!(refused.to_string().contains("2 conversations"), "{refused}");
    // A stored conversation can still continue.
    store.append(&key(0), open, end("a")).await.unwrap();
    store.append(&key(2), Version::EMPTY, said("c", true)).await.unwrap();
    assert_eq!(listed(&store).await, [key(1), key(2)]);
}

/// Abandoned conversations are closed and evicted when another conversation needs the place.
#[tokio::test]
async fn law_m6_conversations_that_were_dropped_make_room() {
    let store = InMemoryStore::with_max_conversations(bound(2));
    for store in [store, InMemoryStore::with_max_conversations(bound(2)).with_leases()] {
        dropped_conversations_make_room(store).await;
    }
}

async fn dropped_conversations_make_room(store: InMemoryStore) {
    let memory = ChatMemoryAdvisor::new(store.clone());
    let hanging = || Answer::new().text("Once").hang();
    let model = ScriptedModel::new([hanging(), hanging(), Answer::from_text("Yes.")]);
    let client = builder(&memory, Phase::Round, &model).build().unwrap();
    for number in 0..2 {
        let mut turn = client.prompt().user("Hi").conversation(key(number)).stream();
        read_until(&mut turn, "Once").await;
    }
    let answer = client.prompt().user("Hi").conversation(key(2)).call().await.unwrap();
    assert_eq!(answer.text(), "Yes.");
    let listed = listed(&store).await;
    assert_eq!((listed.len(), &listed[1]), (2, &key(2)), "one of them made room");
    let kept = memory.transcript(&listed[0]).await.unwrap();
    assert!(kept.last().unwrap().text().starts_with("Once"), "{}", words(&kept));
}

#[tokio::test(start_paused = true)]
async fn leased_conversation_is_not_evicted_until_lease_expires() {
    let store = InMemoryStore::with_max_conversations(bound(1)).with_leases();
    let turn = TurnId::new("a").unwrap();
    let token = store.acquire(&key(0), &turn, HOUR, None).await.unwrap();
    let refused = store.append(&key(1), Version::EMPTY, said("b", true)).await;
    assert!(matches!(refused, Err(StoreError::Full { limit: 1 })), "{refused:?}");
    tokio::time::advance(HOUR).await;
    store.append(&key(1), Version::EMPTY, said("b", true)).await.unwrap();
    assert!(matches!(store.renew(&key(0), token, HOUR).await, Err(StoreError::Fenced)));
    // Its token is as good as the one that was handed out last, as nobody was given it since.
    let next = store.acquire(&key(0), &turn, HOUR, None).await.unwrap();
    assert!(next > token);
}

/// Eight tasks with one conversation each share four places. No stored entry is lost or mixed, and every turn
/// that began ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_turns_stay_within_limit_and_all_end() {
    let store = InMemoryStore::with_max_conversations(bound(4));
    let mut tasks = JoinSet::new();
    for task in 0..8_usize {
        let store = store.clone();
        tasks.spawn(async move {
            let mut done = 0;
            while done < 200 {
                // Each conversation is used by two tasks.
                let key = key((task / 2) * 3 + done % 3);
                let turn = format!("{task}-{done}");
                let read = store.load(&key, ReadRange::LastEntries(0)).await.unwrap();
                if read.open_turn.is_some() {
                    // The other task's turn is running.
                    yield_now().await;
                    continue;
                }
                match store.append(&key, read.version, said(&turn, false)).await {
                    Ok(begun) => {
                        yield_now().await;
                        assert!(listed(&store).await.len() <= 4);
                        let read = store.load(&key, ReadRange::LastEntries(1)).await.unwrap();
                        assert_eq!((read.version, read.entries[0].turn.as_str()), (begun, &*turn));
                        store.append(&key, begun, end(&turn)).await.unwrap();
                        done += 1;
                    }
                    // The other task was faster, or all places are taken by turns that run.
                    Err(StoreError::Conflict { .. } | StoreError::Gone | StoreError::Full { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
                yield_now().await;
            }
        });
    }
    timeout(MINUTE, tasks.join_all()).await.unwrap();
    assert_eq!(listed(&store).await.len(), 4);
}

/// A conversation takes no new turn beyond its bound, but the turn that runs is brought to its end.
#[tokio::test]
async fn full_conversation_accepts_only_end_of_running_turn() {
    let store = InMemoryStore::new().with_max_entries(bound(3));
    let first = store.append(&key(0), Version::EMPTY, said("a", true)).await.unwrap();
    let second = store.append(&key(0), first, said("b", false)).await.unwrap();
    let refused = store.append(&key(0), second, said("c", true)).await.unwrap_err();
    assert!(matches!(refused, StoreError::ConversationFull { limit: 3 }), "{refused:?}");
    assert!(refused.to_string().contains("3 entries"), "{refused}");
    let ended = store.append(&key(0), second, end("b")).await.unwrap();
    assert_eq!(ended, Version::new(4));
    // The store recognises the stored batch, and other conversations are unchanged.
    assert_eq!(store.append(&key(0), first, said("b", false)).await.unwrap(), second);
    let refused = store.append(&key(0), ended, said("c", true)).await;
    assert!(matches!(refused, Err(StoreError::ConversationFull { .. })), "{refused:?}");
    store.append(&key(1), Version::EMPTY, said("c", true)).await.unwrap();
}

/// However many conversations a service has, the store keeps the most recently used ones, and those with a
/// running turn.
#[tokio::test]
async fn service_remembers_most_recently_used_conversations() {
    let store = InMemoryStore::with_max_conversations(bound(3));
    let memory = ChatMemoryAdvisor::new(store.clone());
    let gate = Gate::new();
    let slow = Answer::new().text("slow").gate(&gate).done();
    let model = ScriptedModel::new(std::iter::once(slow).chain((0..20).map(|_| Answer::from_text("hi"))));
    let client = builder(&memory, Phase::Round, &model).build().unwrap();
    let running = tokio::spawn(client.prompt().user("wait").conversation("c99").stream().call());
    timeout(MINUTE, gate.reached()).await.unwrap();
    for number in 0..20 {
        client.prompt().user("hello").conversation(key(number)).call().await.unwrap();
        assert!(listed(&store).await.len() <= 3);
    }
    gate.release();
    timeout(MINUTE, running).await.unwrap().unwrap().unwrap();
    let mut keys = listed(&store).await;
    keys.sort();
    assert_eq!(keys, [key(18), key(19), key(99)]);
    assert_eq!(words(&memory.transcript(&key(99)).await.unwrap()), "u:wait a:slow");
}
