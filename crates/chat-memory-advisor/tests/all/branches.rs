//! Tests of turns that branch off: their requests, the stored entries, and the older branch.

use advisor_core::{ChatClient, ErrorKind, Message, Phase, Result, TurnId, TurnStream};
use advisor_testkit::{Answer, FaultStore, StoreFault};
use chat_memory_advisor::{ChatMemoryAdvisor, ForkPoint, Window};
use conversation_store::{ConversationStore, EntryId, InMemoryStore, ReadRange, Version};
use futures::poll;

use crate::support::{ask, client, key, log_words, read_until, sent, turn, words};

fn memory() -> (ChatMemoryAdvisor, InMemoryStore) {
    let store = InMemoryStore::new();
    (ChatMemoryAdvisor::new(store.clone()), store)
}

fn id(name: &str) -> TurnId {
    TurnId::new(name).unwrap()
}

/// A turn with an id.
fn named(client: &ChatClient, name: &str, user: &str) -> TurnStream {
    client.prompt().user(user).conversation("c").turn(id(name)).stream()
}

/// A turn with an id that branches off.
fn branching(client: &ChatClient, name: &str, user: &str, from: ForkPoint) -> TurnStream {
    client.prompt().user(user).conversation("c").turn(id(name)).extension(from).stream()
}

async fn answered(turn: TurnStream) -> Result<String> {
    turn.call().await.map(|response| response.text())
}

async fn branch(store: &impl ConversationStore, tip: u64) -> String {
    log_words(&store.load_branch(&key(), EntryId(tip), ReadRange::All).await.unwrap().entries)
}

async fn log(store: &impl ConversationStore) -> String {
    log_words(&store.load(&key(), ReadRange::All).await.unwrap().entries)
}

async fn tips(store: &impl ConversationStore) -> Vec<u64> {
    store.branches(&key()).await.unwrap().into_iter().map(|tip| tip.0).collect()
}

fn calls(ids: &[&str]) -> Answer {
    Answer::from_calls(ids.iter().map(|id| (*id, "f", "{}")))
}

const PLACES: [Phase; 2] = [Phase::Round, Phase::Turn];

/// Three turns of one question each; the second one calls a tool. Entries 1 to 3, 4 to 8, 9 to 11.
fn answers(more: impl IntoIterator<Item = Answer>) -> Vec<Answer> {
    let three = [Answer::from_text("a"), calls(&["1"]), Answer::from_text("b"), Answer::from_text("c")];
    three.into_iter().chain(more).collect()
}

async fn three_turns(client: &ChatClient) {
    for (name, user) in [("one", "u"), ("two", "v"), ("three", "w")] {
        answered(named(client, name, user)).await.unwrap();
    }
}

const OLD: &str = "u:u a:a . u:v a(1) r1 a:b . u:w a:c .";

#[tokio::test]
async fn editing_first_of_three_turns_keeps_old_branch() {
    for place in PLACES {
        let (memory, store) = memory();
        let (client, model) = client(&memory, place, answers([calls(&["2"]), Answer::from_text("A")]));
        three_turns(&client).await;
        let edited = branching(&client, "edited", "U", ForkPoint::Before(id("one")));
        assert_eq!(answered(edited).await.unwrap(), "A", "{place:?}");
        assert_eq!(sent(&model, 4), "s:S u:U");
        assert_eq!(sent(&model, 5), "s:S u:U a(2) r2");
        assert_eq!(log(&store).await, "u:U a(2) r2 a:A .", "{place:?}");
        assert_eq!((branch(&store, 11).await.as_str(), tips(&store).await), (OLD, vec![11, 16]));
        assert_eq!(words(&memory.transcript(&key()).await.unwrap()), "u:U a(2) r2 a:A");
    }
}

#[tokio::test]
async fn regenerated_answer_keeps_one_question_on_each_branch() {
    for place in PLACES {
        for window in [Window::All, Window::Messages(3), Window::Turns(2), Window::Tokens(1)] {
            let (memory, store) = memory();
            let memory = memory.with_window(window);
            let (client, model) =
                client(&memory, place, answers([Answer::from_text("C"), Answer::from_text("d")]));
            three_turns(&client).await;
            let again = branching(&client, "again", "w", ForkPoint::Before(id("three")));
            assert_eq!(answered(again).await.unwrap(), "C");
            assert_eq!(branch(&store, 11).await, OLD);
            assert_eq!(log(&store).await, OLD.replace("a:c", "a:C"), "{place:?} {window:?}");
            assert_eq!(sent(&model, 4), sent(&model, 3), "{place:?} {window:?}: the same is asked");
            assert_eq!(ask(&client, "x").await.unwrap(), "d");
            assert!(sent(&model, 5).ends_with("u:x"));
            assert_eq!(log(&store).await, OLD.replace("a:c", "a:C") + " u:x a:d .");
        }
    }
}

/// A fork can cut a turn at any entry. On the new branch, that turn is closed as one that stopped there.
#[tokio::test]
async fn law_m1_branch_inside_turn_begins_with_valid_transcript() {
    let prefixes = [
        "",
        "u:u a:[interrupted]",
        "u:u a:a",
        "u:u a:a",
        "u:u a:a u:v a:[interrupted]",
        "u:u a:a u:v a(1) r1! a:[interrupted]",
        "u:u a:a u:v a(1) r1 a:[interrupted]",
        "u:u a:a u:v a(1) r1 a:b",
        "u:u a:a u:v a(1) r1 a:b",
        "u:u a:a u:v a(1) r1 a:b u:w a:[interrupted]",
        "u:u a:a u:v a(1) r1 a:b u:w a:c",
        "u:u a:a u:v a(1) r1 a:b u:w a:c",
    ];
    for place in PLACES {
        for (tip, prefix) in (0..).zip(prefixes) {
            let (memory, store) = memory();
            let (client, model) = client(&memory, place, answers([Answer::from_text("n")]));
            three_turns(&client).await;
            let off = branching(&client, "off", "x", ForkPoint::After(EntryId(tip)));
            assert_eq!(answered(off).await.unwrap(), "n");
            let expected = ["s:S", prefix, "u:x"].into_iter().filter(|part| !part.is_empty());
            assert_eq!(sent(&model, 4), expected.collect::<Vec<_>>().join(" "), "after {tip}");
            assert_eq!(branch(&store, 11).await, OLD, "after {tip}: the old branch is as it was");
            assert!(log(&store).await.ends_with("u:x a:n ."), "after {tip}");
        }
    }
}

#[tokio::test]
async fn an_old_branch_is_gone_on_with() {
    for place in PLACES {
        let (memory, store) = memory();
        let (client, model) = client(&memory, place, answers(["A", "d", "e"].map(Answer::from_text)));
        three_turns(&client).await;
        answered(branching(&client, "edited", "U", ForkPoint::Before(id("one")))).await.unwrap();
        let on = branching(&client, "on", "x", ForkPoint::After(EntryId(11)));
        assert_eq!(answered(on).await.unwrap(), "d");
        assert_eq!(sent(&model, 5), "s:S u:u a:a u:v a(1) r1 a:b u:w a:c u:x");
        assert_eq!(log(&store).await, format!("{OLD} u:x a:d ."));
        assert_eq!(tips(&store).await, [14, 17], "the old tip is none any more");
        // From now on it is the branch that turns go on with.
        ask(&client, "y").await.unwrap();
        assert!(sent(&model, 6).ends_with("u:x a:d u:y"));
        assert_eq!(branch(&store, 14).await, "u:U a:A .");
    }
}

#[tokio::test]
async fn shown_text_of_dropped_turn_stays_on_branch() {
    for place in PLACES {
        let (memory, store) = memory();
        let cut = Answer::new().text("so far").hang();
        let (client, model) = client(&memory, place, [Answer::from_text("a"), cut, Answer::from_text("n")]);
        answered(named(&client, "one", "u")).await.unwrap();
        let mut dropped = turn(&client, "v");
        read_until(&mut dropped, "so far").await;
        drop(dropped);
        let off = branching(&client, "off", "x", ForkPoint::Before(id("one")));
        assert_eq!(answered(off).await.unwrap(), "n");
        assert_eq!(sent(&model, 2), "s:S u:x");
        assert_eq!(log(&store).await, "u:x a:n .");
        assert_eq!(branch(&store, 5).await, "u:u a:a . u:v cut(so far)", "{place:?}");
    }
}

/// Law K4 on a branch: dropped anywhere, or failing at any operation of the store, the next turn is valid.
#[tokio::test]
async fn law_k4_a_turn_that_branches_off_can_stop_anywhere() {
    for place in PLACES {
        for operation in 0..12 {
            for fault in
                [StoreFault::Unavailable, StoreFault::AnswerLost, StoreFault::Conflict, StoreFault::HangAfter]
            {
                let store = FaultStore::new(InMemoryStore::new());
                let memory = ChatMemoryAdvisor::new(store.clone());
                let (first, _) = client(&memory, place, answers([]));
                three_turns(&first).await;
                let (again, _) = client(&memory, place, [calls(&["2"]), Answer::from_text("B")]);
                store.fail_at(store.operations() + operation, fault);
                let mut off = branching(&again, "off", "V", ForkPoint::Before(id("two")));
                let mut polls = 0;
                while polls < 200 && poll!(futures::StreamExt::next(&mut off)).is_pending() {
                    polls += 1;
                }
                let _ = poll_to_end(off).await;
                store.clear_faults();
                // Another process, which knows nothing of what was shown.
                let memory = ChatMemoryAdvisor::new(store.clone());
                let (next, model) = client(&memory, place, [Answer::from_text("n")]);
                assert_eq!(ask(&next, "x").await.unwrap(), "n", "{place:?} {operation} {fault:?}");
                let asked = sent(&model, 0);
                let on_branch = asked.contains("u:V");
                assert_ne!(on_branch, asked.contains("u:w"), "{asked}");
                assert_eq!(branch(&store, 11).await, OLD, "{place:?} {operation} {fault:?}");
                assert!(log(&store).await.ends_with("u:x a:n ."));
            }
        }
    }
}

/// Polls a turn until it ends or waits for something that never comes, then drops it.
async fn poll_to_end(mut turn: TurnStream) {
    for _ in 0..400 {
        match poll!(futures::StreamExt::next(&mut turn)) {
            std::task::Poll::Ready(None) => return,
            _ => tokio::task::yield_now().await,
        }
    }
}

#[tokio::test]
async fn the_same_branching_turn_again_is_answered_once() {
    for place in PLACES {
        let (memory, store) = memory();
        let (client, model) =
            client(&memory, place, answers([Answer::from_text("A"), Answer::from_text("n")]));
        three_turns(&client).await;
        let edited = || branching(&client, "edited", "U", ForkPoint::Before(id("one")));
        for _ in 0..2 {
            assert_eq!(answered(edited()).await.unwrap(), "A");
        }
        assert_eq!((model.prompts().len(), log(&store).await.as_str()), (5, "u:U a:A ."));
        // On another branch it is not found, and not asked twice either.
        answered(branching(&client, "on", "x", ForkPoint::After(EntryId(11)))).await.unwrap();
        let refused = answered(edited()).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::TurnIdReused);
        assert_eq!(model.prompts().len(), 6);
    }
}

#[tokio::test]
async fn dropped_branching_turn_resumes_without_second_question() {
    for place in PLACES {
        let (memory, store) = memory();
        let cut = Answer::new().text("so far").hang();
        let (client, model) = client(&memory, place, answers([cut, Answer::from_text("A")]));
        three_turns(&client).await;
        let edited = || branching(&client, "edited", "U", ForkPoint::Before(id("one")));
        let mut dropped = edited();
        read_until(&mut dropped, "so far").await;
        drop(dropped);
        assert_eq!(log(&store).await, "u:U");
        assert_eq!(answered(edited()).await.unwrap(), "A");
        assert_eq!(
            (sent(&model, 5).as_str(), log(&store).await.as_str()),
            ("s:S u:U", "u:U cut(so far) a:A ."),
            "{place:?}"
        );
        assert_eq!(branch(&store, 11).await, OLD);
    }
}

#[tokio::test]
async fn missing_fork_point_is_an_error() {
    for place in PLACES {
        let (memory, store) = memory();
        let (client, model) = client(&memory, place, answers([]));
        three_turns(&client).await;
        let before = log(&store).await;
        for from in [ForkPoint::Before(id("nobody")), ForkPoint::After(EntryId(12))] {
            let refused = answered(branching(&client, "off", "x", from.clone())).await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Configuration, "{from:?}");
        }
        assert_eq!((log(&store).await, model.prompts().len()), (before, 4));
        let version = store.load(&key(), ReadRange::LastEntries(0)).await.unwrap().version;
        assert_eq!(version, Version(11));
        // The conversation is free.
        let (next, _) = crate::support::client(&memory, place, [Answer::from_text("n")]);
        assert_eq!(ask(&next, "x").await.unwrap(), "n");
    }
}

/// A turn outside a short window is found in the log, on any branch.
#[tokio::test]
async fn branching_from_earlier_turn_of_older_branch_works() {
    let (memory, store) = memory();
    let memory = memory.with_window(Window::Turns(1));
    let (client, model) = client(&memory, Phase::Round, answers(["A", "n"].map(Answer::from_text)));
    three_turns(&client).await;
    answered(branching(&client, "edited", "U", ForkPoint::Before(id("one")))).await.unwrap();
    answered(branching(&client, "off", "x", ForkPoint::Before(id("three")))).await.unwrap();
    assert_eq!(sent(&model, 5), "s:S u:x", "the window is of the branch");
    assert_eq!(log(&store).await, "u:u a:a . u:v a(1) r1 a:b . u:x a:n .");
}

#[tokio::test]
async fn law_m2_turn_with_only_ephemeral_input_stays_on_branch() {
    for place in PLACES {
        let (memory, store) = memory();
        let (client, model) = client(&memory, place, answers([Answer::from_text("d")]));
        three_turns(&client).await;
        let hint = client.prompt().messages([Message::user("again").ephemeral()]).conversation("c");
        let again = hint.turn(id("again")).extension(ForkPoint::After(EntryId(3)));
        assert_eq!(again.call().await.unwrap().text(), "d");
        assert_eq!(sent(&model, 4), "s:S u:u a:a u:again");
        assert_eq!(log(&store).await, "u:u a:a . a:d .", "{place:?}");
        assert_eq!((branch(&store, 11).await.as_str(), tips(&store).await), (OLD, vec![11, 13]));
    }
}
