//! The same turn submitted again, under its id: it is answered once, its user message is stored once.

use std::time::Duration;

use advisor_core::{
    ChatClient, Error, ErrorKind, FinishReason, OnDrop, Phase, Result, Spawner, TurnId, TurnStream,
};
use advisor_testkit::{Answer, FaultStore, Gate, ScriptedModel, StoreFault};
use chat_memory_advisor::{ChatMemoryAdvisor, Window};
use conversation_store::{ConversationStore, InMemoryStore, ReadRange};
use futures::stream::FusedStream;
use futures::{StreamExt, poll};
use tokio::time::{advance, timeout};

use crate::store::{Watched, test_store};
use crate::support::{ask, builder, client, key, log_words, read_until, sent, turn};

fn memory() -> (ChatMemoryAdvisor, InMemoryStore) {
    let store = InMemoryStore::new();
    (ChatMemoryAdvisor::new(store.clone()), store)
}

/// Begins the turn with the id "once".
fn once(client: &ChatClient, user: &str) -> TurnStream {
    client.prompt().user(user).conversation("c").turn(TurnId::new("once").unwrap()).stream()
}

async fn ask_once(client: &ChatClient, user: &str) -> Result<String> {
    once(client, user).call().await.map(|response| response.text())
}

async fn log(store: &InMemoryStore) -> String {
    log_words(&store.load(&key(), ReadRange::All).await.unwrap().entries)
}

fn calls(ids: &[&str]) -> Answer {
    Answer::from_calls(ids.iter().map(|id| (*id, "f", "{}")))
}

fn hanging(text: &str) -> Answer {
    Answer::new().text(text).hang()
}

fn broken() -> Error {
    Error::new(ErrorKind::Connection, "broken")
}

#[tokio::test]
async fn answered_turn_repeats_answer_without_model_or_store() {
    for place in [Phase::Round, Phase::Turn] {
        let (memory, store) = memory();
        let (client, model) =
            client(&memory, place, [calls(&["1"]), Answer::from_text("yes"), Answer::from_text("no")]);
        assert_eq!(ask_once(&client, "q").await.unwrap(), "yes");
        let before = log(&store).await;
        let mut again = once(&client, "q");
        let mut shown = String::new();
        while let Some(chunk) = again.next().await {
            let chunk = chunk.unwrap();
            shown.push_str(chunk.text().unwrap_or_default());
            if let Some(response) = chunk.completed() {
                assert_eq!((response.text().as_str(), &response.finish.reason), ("yes", &FinishReason::Stop));
            }
        }
        assert_eq!(shown, "yes", "{place:?}");
        assert_eq!(ask(&client, "other").await.unwrap(), "no");
        assert_eq!(ask_once(&client, "q").await.unwrap(), "yes", "also when the conversation has gone on");
        assert_eq!(model.calls(), 3);
        assert!(log(&store).await.starts_with(&before));
        assert_eq!(log(&store).await.matches("u:q").count(), 1);
    }
}

#[tokio::test]
async fn a_turn_that_is_running_is_waited_for() {
    for place in [Phase::Round, Phase::Turn] {
        let (memory, store) = memory();
        let gate = Gate::new();
        let slow = Answer::new().text("a").gate(&gate).text("b").finish(FinishReason::Stop);
        let (client, model) = client(&memory, place, [slow]);
        let mut first = once(&client, "q");
        read_until(&mut first, "a").await;
        let mut second = once(&client, "q");
        let mut given_up = once(&client, "q");
        assert!(poll!(second.next()).is_pending() && poll!(given_up.next()).is_pending());
        drop(given_up);
        gate.release();
        let (first, second) = futures::join!(first.call(), second.call());
        assert_eq!((first.unwrap().text(), second.unwrap().text()), ("ab".into(), "ab".into()));
        assert_eq!(model.calls(), 1);
        assert_eq!(log(&store).await, "u:q a:ab .", "{place:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn turn_of_other_process_is_awaited_or_resumed() {
    for dies in [false, true] {
        let store = InMemoryStore::new().with_leases();
        let memories = [ChatMemoryAdvisor::new(store.clone()), ChatMemoryAdvisor::new(store.clone())];
        let gate = Gate::new();
        let slow = Answer::new().text("a").gate(&gate).text("b").finish(FinishReason::Stop);
        let (one, _) = client(&memories[0], Phase::Round, [slow]);
        let (other, model) = client(&memories[1], Phase::Round, [Answer::from_text("cd")]);
        let mut first = once(&one, "q");
        read_until(&mut first, "a").await;
        let mut second = Box::pin(ask_once(&other, "q"));
        assert!(timeout(Duration::from_secs(5), &mut second).await.is_err());
        if dies {
            std::mem::forget(first);
            advance(Duration::from_secs(31)).await;
            assert_eq!(second.await.unwrap(), "cd");
            assert_eq!(log(&store).await, "u:q a:cd .");
        } else {
            gate.release();
            assert_eq!(first.call().await.unwrap().text(), "ab");
            assert_eq!(second.await.unwrap(), "ab");
            assert_eq!(model.calls(), 0);
        }
    }
}

/// Another process has continued the turn before this one writes the end of its run.
#[tokio::test]
async fn law_k3_dropped_run_hides_no_answer_of_other_process() {
    for (on_drop, place) in [(OnDrop::Rollback, Phase::Round), (OnDrop::KeepPartial, Phase::Turn)] {
        let (one, store) = memory();
        let other = ChatMemoryAdvisor::new(store.clone());
        let hanging = Answer::new().text("a").gate(&Gate::new()).finish(FinishReason::Stop);
        let (first, model) = client(&one, place, [calls(&["1"]), hanging, Answer::from_text("next")]);
        let (second, _) = client(&other, place, [Answer::from_text("yes")]);
        let mut dropped = once(&first, "q").with_on_drop(on_drop);
        read_until(&mut dropped, "a").await;
        drop(dropped);
        assert_eq!(ask_once(&second, "q").await.unwrap(), "yes");
        let answered = log(&store).await;
        assert_eq!(answered, "u:q a(1) r1 a:yes .", "{on_drop:?}");
        one.close_unfinished().await.unwrap();
        assert_eq!(log(&store).await, answered);
        assert_eq!(ask_once(&first, "q").await.unwrap(), "yes");
        assert_eq!(ask(&first, "2").await.unwrap(), "next");
        assert_eq!(sent(&model, 2), "s:S u:q a(1) r1 a:yes u:2");
    }
}

/// A dropped run ends only itself. Its lease was released, although its end could not be written.
#[tokio::test]
async fn law_k3_unfinished_run_never_ends_run_holding_its_lease() {
    let store = FaultStore::new(InMemoryStore::new().with_leases());
    let [one, other] = [(); 2].map(|()| ChatMemoryAdvisor::new(store.clone()));
    let gate = Gate::new();
    let slow = |gate: &Gate| Answer::new().text("a").gate(gate).text("b").finish(FinishReason::Stop);
    let (sender, mut left) = tokio::sync::mpsc::unbounded_channel();
    let model = ScriptedModel::new([slow(&Gate::new())]);
    let spawner = Spawner::new(move |work| sender.send(work).unwrap());
    let first = builder(&one, Phase::Round, &model).spawner(spawner).build().unwrap();
    let (second, _) = client(&other, Phase::Round, [slow(&gate)]);
    let mut dropped = once(&first, "q");
    read_until(&mut dropped, "a").await;
    drop(dropped);
    store.fail_at(store.operations(), StoreFault::Unavailable);
    left.recv().await.unwrap().await;
    assert_eq!(store.pending_faults(), 0, "the close failed, and the lease was given back");
    let mut running = once(&second, "q");
    read_until(&mut running, "a").await;
    // Once more here, where it waits for the other process.
    let mut waiting = once(&first, "q");
    for _ in 0..5 {
        assert!(poll!(waiting.next()).is_pending());
    }
    drop(waiting);
    left.recv().await.unwrap().await;
    one.close_unfinished().await.unwrap();
    gate.release();
    assert_eq!(running.call().await.unwrap().text(), "ab");
    assert_eq!(log_words(&store.load(&key(), ReadRange::All).await.unwrap().entries), "u:q a:ab .");
}

/// Without leases, only the written entries distinguish one run of a turn from another.
#[tokio::test]
async fn unfinished_run_does_not_end_run_continued_elsewhere() {
    for (place, mode) in [
        (Phase::Round, OnDrop::KeepPartial),
        (Phase::Round, OnDrop::Rollback),
        (Phase::Turn, OnDrop::KeepPartial),
        (Phase::Turn, OnDrop::Rollback),
    ] {
        let store = InMemoryStore::new();
        let [one, other] = [(); 2].map(|()| ChatMemoryAdvisor::new(store.clone()));
        let gate = Gate::new();
        let last = Answer::new().text("b").gate(&gate).text("c").finish(FinishReason::Stop);
        let (first, _) = client(&one, place, [hanging("a")]);
        let (second, _) = client(&other, place, [calls(&["1"]), last]);
        let mut dropped = once(&first, "q").with_on_drop(mode);
        read_until(&mut dropped, "a").await;
        drop(dropped);
        let mut running = once(&second, "q");
        read_until(&mut running, "b").await;
        let before = log(&store).await;
        one.close_unfinished().await.unwrap();
        assert_eq!(log(&store).await, before, "{place:?} {mode:?}");
        gate.release();
        assert_eq!(running.call().await.unwrap().text(), "bc", "{place:?} {mode:?}");
        assert_eq!(log(&store).await, format!("{before} a:bc ."), "{place:?} {mode:?}");
    }
}

/// The turn is submitted again, and stops while the end of its first run is being written.
#[tokio::test]
async fn law_k3_shown_text_survives_rerun_that_never_begins() {
    // An answer that is lost once is asked for again.
    let faults = [
        vec![StoreFault::Unavailable],
        vec![StoreFault::HangBefore],
        vec![StoreFault::HangAfter],
        vec![StoreFault::AnswerLost; 2],
    ];
    for fault in faults {
        let store = FaultStore::new(InMemoryStore::new());
        let memory = ChatMemoryAdvisor::new(store.clone());
        let (client, model) = client(&memory, Phase::Round, [hanging("so far"), Answer::from_text("next")]);
        let mut dropped = once(&client, "q");
        read_until(&mut dropped, "so far").await;
        drop(dropped);
        fault.iter().for_each(|fault| store.fail_at(store.operations() + 1, *fault));
        let mut again = once(&client, "q");
        let mut polls = 0;
        while polls < 10 && !again.is_terminated() {
            polls += 1;
            let _ = poll!(again.next());
        }
        assert_eq!(store.pending_faults(), 0);
        drop(again);
        store.clear_faults();
        ask(&client, "next").await.unwrap();
        assert_eq!(sent(&model, 1), "s:S u:q a:so far [interrupted] u:next", "{fault:?}");
        let log = log_words(&store.load(&key(), ReadRange::All).await.unwrap().entries);
        assert_eq!(log, "u:q cut(so far) u:next a:next .", "{fault:?}");
    }
}

#[tokio::test]
async fn law_k3_turn_with_unknown_last_write_is_rolled_back() {
    for (operation, fault) in [1, 2, 3, 4]
        .into_iter()
        .flat_map(|operation| [StoreFault::HangBefore, StoreFault::HangAfter].map(|fault| (operation, fault)))
    {
        let store = FaultStore::new(InMemoryStore::new());
        let memory = ChatMemoryAdvisor::new(store.clone());
        let (client, model) = client(&memory, Phase::Round, [calls(&["1"]), Answer::from_text("yes")]);
        store.fail_at(operation, fault);
        let mut dropped = once(&client, "q").with_on_drop(OnDrop::Rollback);
        for _ in 0..100 {
            let _ = poll!(dropped.next());
            tokio::task::yield_now().await;
        }
        assert_eq!(store.pending_faults(), 0);
        drop(dropped);
        let rest = ScriptedModel::new([Answer::from_text("next")]);
        let next = builder(&memory, Phase::Round, &rest).build().unwrap();
        assert_eq!(ask(&next, "2").await.unwrap(), "next", "after {} requests", model.calls());
        assert_eq!(sent(&rest, 0), "s:S u:2", "{operation} {fault:?}");
    }
}

#[tokio::test]
async fn failed_turn_is_retried_without_second_user_message() {
    for place in [Phase::Round, Phase::Turn] {
        let (memory, store) = memory();
        let answers = [
            Answer::new().text("so f").error(broken()),
            Answer::refused(broken()),
            Answer::from_text("yes"),
            Answer::from_text("next"),
        ];
        let (client, model) = client(&memory, place, answers);
        for _ in 0..2 {
            assert_eq!(ask_once(&client, "q").await.unwrap_err().kind(), ErrorKind::Connection);
        }
        assert_eq!(ask_once(&client, "q").await.unwrap(), "yes");
        assert_eq!(ask(&client, "v").await.unwrap(), "next");
        assert_eq!(sent(&model, 2), "s:S u:q", "what was shown of the attempt that failed is void");
        assert_eq!(sent(&model, 3), "s:S u:q a:yes u:v");
        assert_eq!(log(&store).await, "u:q failed(so f) failed() a:yes . u:v a:next .", "{place:?}");
    }
}

#[tokio::test]
async fn law_k4_interrupted_turn_resumes_where_it_stopped() {
    for place in [Phase::Round, Phase::Turn] {
        for crashed in [false, true] {
            let (memory, store) = memory();
            let answers = [calls(&["1"]), Answer::new().text("so f").hang()];
            let (first, _) = client(&memory, place, answers);
            let mut cut = once(&first, "q");
            read_until(&mut cut, "so f").await;
            if crashed {
                std::mem::forget(cut);
            } else {
                drop(cut);
            }
            // A process that begins anew knows nothing of the turn but what is stored.
            let memory = if crashed { ChatMemoryAdvisor::new(store.clone()) } else { memory };
            let (second, model) =
                client(&memory, place, [calls(&["1"]), Answer::from_text("yes"), Answer::from_text("next")]);
            assert_eq!(ask_once(&second, "q").await.unwrap(), "yes");
            assert_eq!(ask(&second, "v").await.unwrap(), "next");
            assert_eq!(sent(&model, 0), "s:S u:q a(1) r1");
            assert_eq!(sent(&model, 1), "s:S u:q a(1) r1 a(1) r1");
            assert_eq!(sent(&model, 2), "s:S u:q a(1) r1 a(1) r1 a:yes u:v");
            let cut = if crashed { "" } else { " cut(so f)" };
            let expected = format!("u:q a(1) r1{cut} a(1) r1 a:yes . u:v a:next .");
            assert_eq!(log(&store).await, expected, "{place:?} {crashed}");
        }
    }
}

#[tokio::test]
async fn turn_outside_window_is_recognized() {
    let (memory, store) = memory();
    let memory = memory.with_window(Window::Turns(1));
    let answers = ["yes", "1", "2", "3"].map(Answer::from_text);
    let (client, model) = client(&memory, Phase::Round, answers);
    ask_once(&client, "q").await.unwrap();
    for user in ["1", "2", "3"] {
        ask(&client, user).await.unwrap();
    }
    let before = log(&store).await;
    assert_eq!(ask_once(&client, "q").await.unwrap(), "yes");
    assert_eq!(ask_once(&client, "r").await.unwrap_err().kind(), ErrorKind::TurnIdReused);
    assert_eq!((model.calls(), log(&store).await), (4, before));
    let mut next = turn(&client, "4");
    assert_eq!(next.next().await.unwrap().unwrap_err().kind(), ErrorKind::Provider { status: None });
}

/// The close of a dropped turn is still being written when the turn is submitted again.
#[tokio::test]
async fn a_turn_goes_on_beside_what_closes_it() {
    for slow in 0..12 {
        let store = test_store();
        let memory = ChatMemoryAdvisor::new(store.clone());
        let spawner = Spawner::tokio(tokio::runtime::Handle::current());
        let model = ScriptedModel::new([Answer::new().text("so f").hang(), Answer::from_text("yes")]);
        let client = builder(&memory, Phase::Round, &model).spawner(spawner).build().unwrap();
        let mut cut = once(&client, "q");
        read_until(&mut cut, "so f").await;
        let handle = cut.handle();
        drop(cut);
        for _ in 0..slow {
            tokio::task::yield_now().await;
        }
        assert_eq!(ask_once(&client, "q").await.unwrap(), "yes", "{slow}");
        handle.settled().await;
        assert_eq!(log_words(&store.log(&key()).await), "u:q cut(so f) a:yes .", "{slow}");
    }
}
