//! Tests of two concurrent turns in one conversation: of one memory, as in one process, and of two memories
//! over one store with leases.

use std::time::Duration;

use advisor_core::{
    ChatClient, ChatRequest, ErrorKind, FinishReason, Message, OnDrop, Phase, Spawner, TurnId,
};
use advisor_testkit::{Answer, FaultStore, Gate, ScriptedModel, StoreFault};
use chat_memory_advisor::{ChatMemoryAdvisor, OnBusy};
use conversation_store::{ConversationStore, FencingToken, InMemoryStore, ReadRange};
use futures::future::FusedFuture;
use futures::stream::FusedStream;
use futures::{FutureExt, StreamExt, poll};
use tokio::task::JoinSet;
use tokio::time::{Instant, advance, timeout};

use crate::support::{ask, builder, client, key, log_words, plain, read_until, sent, turn};

/// Says "a", waits, says "b".
fn slow(gate: &Gate) -> Answer {
    Answer::new().text("a").gate(gate).text("b").finish(FinishReason::Stop)
}

/// The memories of two processes over one store.
fn two_processes(on_busy: OnBusy) -> (InMemoryStore, [ChatMemoryAdvisor; 2]) {
    let store = InMemoryStore::new().with_leases();
    let memory = || ChatMemoryAdvisor::new(store.clone()).with_on_busy(on_busy);
    (store.clone(), [memory(), memory()])
}

async fn log(store: &InMemoryStore) -> String {
    log_of(store).await
}

async fn log_of(store: &impl ConversationStore) -> String {
    log_words(&store.load(&key(), ReadRange::All).await.unwrap().entries)
}

#[tokio::test]
async fn interrupted_running_turn_keeps_shown_text() {
    let store = InMemoryStore::new();
    let memory = ChatMemoryAdvisor::new(store.clone()).with_on_busy(OnBusy::InterruptPrevious);
    for place in [Phase::Round, Phase::Turn] {
        store.delete(&key()).await.unwrap();
        let (client, model) = client(&memory, place, [slow(&Gate::new()), Answer::from_text("two")]);
        let mut first = turn(&client, "1");
        read_until(&mut first, "a").await;
        let second = ask(&client, "2");
        let (first, second) = futures::join!(first.next(), second);
        let error = first.unwrap().unwrap_err();
        assert_eq!((error.kind(), error.emitted()), (ErrorKind::Cancelled, true), "{place:?}");
        assert_eq!(second.unwrap(), "two");
        assert_eq!(sent(&model, 1), "s:S u:1 a:a [interrupted] u:2");
        assert_eq!(log(&store).await, "u:1 cut(a) u:2 a:two .");
    }
}

/// The setter changes its own value only. A turn that began before it is interrupted all the same.
#[tokio::test]
async fn earlier_clone_keeps_its_busy_policy() {
    let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
    let (first, _) = client(&memory, Phase::Round, [slow(&Gate::new())]);
    let mut running = turn(&first, "1");
    read_until(&mut running, "a").await;
    let interrupting = memory.clone().with_on_busy(OnBusy::InterruptPrevious);
    assert_eq!(ask(&first, "2").await.unwrap_err().kind(), ErrorKind::ConversationBusy);
    let (second, _) = client(&interrupting, Phase::Round, [Answer::from_text("three")]);
    let running = tokio::spawn(async move { running.next().await.unwrap().unwrap_err().kind() });
    tokio::task::yield_now().await;
    assert_eq!(ask(&second, "3").await.unwrap(), "three");
    assert_eq!(running.await.unwrap(), ErrorKind::Cancelled, "although it waits for its model");
}

#[tokio::test(start_paused = true)]
async fn unread_turn_is_superseded_and_cannot_write_again() {
    let store = InMemoryStore::new();
    let memory = ChatMemoryAdvisor::new(store.clone()).with_on_busy(OnBusy::InterruptPrevious);
    let (first_gate, second_gate) = (Gate::new(), Gate::new());
    let (client, _) = plain(&memory, [slow(&first_gate), slow(&second_gate), Answer::from_text("three")]);
    let mut first = turn(&client, "1");
    read_until(&mut first, "a").await;
    let mut second = turn(&client, "2");
    read_until(&mut second, "a").await;
    assert_eq!(log(&store).await, "u:1 cut() u:2");
    first_gate.release();
    let error = first.next().await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled, "it learns of it as soon as it is read");
    assert!(first.next().await.is_none());
    second_gate.release();
    assert_eq!(second.call().await.unwrap().text(), "ab");
    assert_eq!(log(&store).await, "u:1 cut() u:2 a:ab .");
    assert_eq!(ask(&client, "3").await.unwrap(), "three");
}

/// Side tasks of a turn without a root are not polled, so the turn does not learn of the interruption in time.
#[tokio::test(start_paused = true)]
async fn law_m3_turn_superseded_during_its_beginning_stores_nothing() {
    let store = FaultStore::new(InMemoryStore::new());
    let memory = ChatMemoryAdvisor::new(store.clone()).with_on_busy(OnBusy::InterruptPrevious);
    let chain = |answer| {
        let model = ScriptedModel::new([answer]);
        ChatClient::builder(model).advisor(memory.clone()).build().unwrap().chain().clone()
    };
    let request = |user| ChatRequest { conversation: Some(key()), ..ChatRequest::new(Message::user(user)) };
    let (passed_over, second) = (chain(Answer::from_text("one")), chain(Answer::from_text("two")));
    store.fail_at(0, StoreFault::Slow(9));
    let mut first = passed_over.next_stream(request("1")).boxed();
    assert!(poll!(&mut first).is_pending());
    let mut second = second.next_stream(request("2")).await.unwrap();
    assert_eq!(first.await.unwrap_err().kind(), ErrorKind::Fenced);
    while let Some(chunk) = second.next().await {
        chunk.unwrap();
    }
    let entries = store.load(&key(), ReadRange::All).await.unwrap().entries;
    assert_eq!(log_words(&entries), "u:2 a:two .");
}

#[tokio::test]
async fn the_last_of_many_turns_wins() {
    let store = InMemoryStore::new();
    let memory = ChatMemoryAdvisor::new(store.clone()).with_on_busy(OnBusy::InterruptPrevious);
    let gates = [Gate::new(), Gate::new(), Gate::new()];
    let answers = gates.iter().map(slow).chain([Answer::from_text("last")]);
    let (client, model) = plain(&memory, answers);
    let turns = ["1", "2", "3"].map(|user| turn(&client, user));
    let outcomes = turns.map(|turn| turn.call().map(|answer| answer.map_err(|error| error.kind())));
    let (outcomes, last) = futures::join!(futures::future::join_all(outcomes), ask(&client, "4"));
    assert_eq!(last.unwrap(), "last");
    assert!(outcomes.iter().all(|outcome| *outcome.as_ref().unwrap_err() == ErrorKind::Cancelled));
    for nth in 0..model.calls() {
        sent(&model, nth);
    }
    let log = log(&store).await;
    assert!(log.ends_with("u:4 a:last .") && log.matches("u:").count() == 4, "{log}");
}

#[tokio::test]
async fn turn_in_other_process_keeps_conversation_busy() {
    let (store, [one, other]) = two_processes(OnBusy::Reject);
    let gate = Gate::new();
    let (first, _) = client(&one, Phase::Round, [slow(&gate)]);
    let (second, model) = client(&other, Phase::Round, [Answer::from_text("two")]);
    let mut running = turn(&first, "1");
    read_until(&mut running, "a").await;
    assert_eq!(ask(&second, "2").await.unwrap_err().kind(), ErrorKind::ConversationBusy);
    assert_eq!(model.calls(), 0, "nothing is spent on it");
    gate.release();
    running.call().await.unwrap();
    assert_eq!(ask(&second, "2").await.unwrap(), "two");
    assert_eq!(log(&store).await, "u:1 a:ab . u:2 a:two .");
}

/// At just the version that the first turn expects.
#[tokio::test]
async fn law_m5_old_turn_writes_nothing_into_recreated_conversation() {
    let store = InMemoryStore::new();
    let [one, other] = [(); 2].map(|()| ChatMemoryAdvisor::new(store.clone()));
    let (first_gate, second_gate) = (Gate::new(), Gate::new());
    let (first, _) = client(&one, Phase::Round, [slow(&first_gate)]);
    let (second, _) = client(&other, Phase::Round, [slow(&second_gate)]);
    let mut old = turn(&first, "1");
    read_until(&mut old, "a").await;
    store.delete(&key()).await.unwrap();
    let mut new = turn(&second, "2");
    read_until(&mut new, "a").await;
    first_gate.release();
    assert_eq!(old.call().await.unwrap_err().kind(), ErrorKind::Store);
    assert_eq!(log(&store).await, "u:2");
    second_gate.release();
    new.call().await.unwrap();
    assert_eq!(log(&store).await, "u:2 a:ab .");
}

/// The next turn takes the lease of the dropped turn while the close of that turn is being written, at any
/// moment of both.
#[tokio::test]
async fn law_k3_close_fenced_by_next_turn_loses_nothing() {
    let wants = [
        (OnDrop::KeepPartial, "u:1 cut(a) u:2 a:two .", "s:S u:1 a:a [interrupted] u:2"),
        (OnDrop::Rollback, "u:1 undone u:2 a:two .", "s:S u:2"),
    ];
    for (on_drop, stored, asked) in wants {
        for (closed, begun) in (0..8).flat_map(|closed| (0..16).map(move |begun| (closed, begun))) {
            let store = FaultStore::new(InMemoryStore::new().with_leases());
            let memory = ChatMemoryAdvisor::new(store.clone());
            let (sender, mut left) = tokio::sync::mpsc::unbounded_channel();
            let model = ScriptedModel::new([slow(&Gate::new()), Answer::from_text("two")]);
            let spawner = Spawner::new(move |work| sender.send(work).unwrap());
            let client = builder(&memory, Phase::Round, &model).spawner(spawner).build().unwrap();
            let mut dropped = turn(&client, "1").with_on_drop(on_drop);
            read_until(&mut dropped, "a").await;
            drop(dropped);
            let mut closing = left.recv().await.unwrap().fuse();
            let mut next = turn(&client, "2");
            for _ in 0..closed {
                let _ = poll!(&mut closing);
            }
            for _ in 0..begun {
                let _ = poll!(next.next());
            }
            while !closing.is_terminated() && poll!(&mut closing).is_pending() {}
            while !next.is_terminated() {
                next.next().await.transpose().unwrap();
            }
            assert_eq!(log_of(&store).await, stored, "{closed} steps of the close, {begun} of the next turn");
            assert_eq!(sent(&model, 1), asked, "{closed} steps of the close, {begun} of the next turn");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_waits_for_that_of_another_process() {
    let (store, [one, other]) = two_processes(OnBusy::Queue);
    let gate = Gate::new();
    let (first, _) = client(&one, Phase::Round, [slow(&gate)]);
    let (second, _) = client(&other, Phase::Turn, [Answer::from_text("two")]);
    let mut running = turn(&first, "1");
    read_until(&mut running, "a").await;
    let mut waiting = Box::pin(ask(&second, "2"));
    assert!(timeout(Duration::from_secs(20), &mut waiting).await.is_err());
    gate.release();
    let (running, waiting) = futures::join!(running.call(), waiting);
    assert_eq!((running.unwrap().text().as_str(), waiting.unwrap().as_str()), ("ab", "two"));
    assert_eq!(log(&store).await, "u:1 a:ab . u:2 a:two .");
}

#[tokio::test(start_paused = true)]
async fn law_k4_turn_of_dead_process_closes_after_lease_expiry() {
    for on_busy in [OnBusy::Reject, OnBusy::Queue, OnBusy::InterruptPrevious] {
        let (store, [one, other]) = two_processes(on_busy);
        let (first, _) = client(&one, Phase::Round, [slow(&Gate::new())]);
        let (second, model) =
            client(&other, Phase::Round, [Answer::from_text("two"), Answer::from_text("two")]);
        let mut killed = turn(&first, "1");
        read_until(&mut killed, "a").await;
        // Nothing of a process that is killed runs any more, not even what is dropped.
        std::mem::forget(killed);
        if on_busy == OnBusy::Reject {
            assert_eq!(ask(&second, "2").await.unwrap_err().kind(), ErrorKind::ConversationBusy);
            advance(Duration::from_secs(31)).await;
        }
        assert_eq!(ask(&second, "2").await.unwrap(), "two");
        assert_eq!(sent(&model, 0), "s:S u:1 a:[interrupted] u:2");
        assert_eq!(log(&store).await, "u:1 cut() u:2 a:two .", "{on_busy:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_runs_long_keeps_its_lease() {
    let (_store, [one, other]) = two_processes(OnBusy::Reject);
    let gate = Gate::new();
    let (first, _) = client(&one, Phase::Round, [slow(&gate)]);
    let (second, _) = client(&other, Phase::Round, [Answer::from_text("two")]);
    let mut running = turn(&first, "1");
    read_until(&mut running, "a").await;
    for _ in 0..10 {
        assert!(timeout(Duration::from_secs(29), running.next()).await.is_err());
        assert_eq!(ask(&second, "2").await.unwrap_err().kind(), ErrorKind::ConversationBusy);
    }
    gate.release();
    assert_eq!(running.call().await.unwrap().text(), "ab");
    assert_eq!(ask(&second, "2").await.unwrap(), "two", "it is given back when the turn ends");
}

#[tokio::test(start_paused = true)]
async fn law_k4_late_renewal_does_not_block_next_turn() {
    let store = FaultStore::new(InMemoryStore::new().with_leases());
    let memory = ChatMemoryAdvisor::new(store.clone());
    let gate = Gate::new();
    let (client, _) = client(&memory, Phase::Round, [slow(&gate), Answer::from_text("two")]);
    let mut running = turn(&client, "1");
    read_until(&mut running, "a").await;
    store.fail_at(store.operations(), StoreFault::HangBefore);
    assert!(timeout(Duration::from_secs(16), running.next()).await.is_err());
    assert_eq!(store.pending_faults(), 0, "nobody heard whether it was renewed");
    gate.release();
    running.call().await.unwrap();
    let leases = store.leases().unwrap();
    leases.renew(&key(), FencingToken(1), Duration::from_secs(30)).await.unwrap();
    assert_eq!(ask(&client, "2").await.unwrap(), "two");
}

#[tokio::test(start_paused = true)]
async fn law_m3_turn_with_lost_lease_leaves_no_trace() {
    for interrupts in [true, false] {
        let (store, [one, other]) = two_processes(OnBusy::InterruptPrevious);
        let gate = Gate::new();
        let (first, _) = client(&one, Phase::Round, [slow(&gate)]);
        let (second, model) = client(&other, Phase::Round, [Answer::from_text("two")]);
        let mut running = turn(&first, "1");
        read_until(&mut running, "a").await;
        if !interrupts {
            // Its stream is not read, so that its lease ends.
            advance(Duration::from_secs(31)).await;
        }
        assert_eq!(ask(&second, "2").await.unwrap(), "two");
        gate.release();
        let error = running.call().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Fenced);
        assert!(error.emitted());
        assert_eq!(sent(&model, 0), "s:S u:1 a:[interrupted] u:2");
        assert_eq!(log(&store).await, "u:1 cut() u:2 a:two .");
        one.close_unfinished().await.unwrap();
        assert_eq!(log(&store).await, "u:1 cut() u:2 a:two .");
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_turn_learns_of_its_lost_lease() {
    let (_store, [one, other]) = two_processes(OnBusy::InterruptPrevious);
    let (first, _) = client(&one, Phase::Round, [slow(&Gate::new())]);
    let (second, _) = client(&other, Phase::Round, [Answer::from_text("two")]);
    let mut running = turn(&first, "1");
    read_until(&mut running, "a").await;
    assert_eq!(ask(&second, "2").await.unwrap(), "two");
    let error = timeout(Duration::from_secs(30), running.next()).await.unwrap().unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Fenced, "although its model says nothing");
}

#[tokio::test]
async fn dropped_turn_with_spawner_releases_its_lease() {
    let (store, [one, other]) = two_processes(OnBusy::Reject);
    let spawner = Spawner::tokio(tokio::runtime::Handle::current());
    let model = ScriptedModel::new([slow(&Gate::new())]);
    let first = builder(&one, Phase::Round, &model).spawner(spawner).build().unwrap();
    let (second, _) = client(&other, Phase::Round, [Answer::from_text("two")]);
    let mut dropped = turn(&first, "1");
    read_until(&mut dropped, "a").await;
    let handle = dropped.handle();
    drop(dropped);
    handle.settled().await;
    assert_eq!(ask(&second, "2").await.unwrap(), "two");
    assert_eq!(log(&store).await, "u:1 cut(a) u:2 a:two .");
}

#[tokio::test]
async fn without_spawner_next_turn_reuses_or_releases_lease() {
    let (store, [one, other]) = two_processes(OnBusy::Reject);
    let answers = [slow(&Gate::new()), Answer::from_text("two"), slow(&Gate::new())];
    let (first, _) = client(&one, Phase::Round, answers);
    let (second, _) = client(&other, Phase::Round, [Answer::from_text("four")]);
    let mut dropped = turn(&first, "1");
    read_until(&mut dropped, "a").await;
    drop(dropped);
    assert_eq!(ask(&second, "?").await.unwrap_err().kind(), ErrorKind::ConversationBusy);
    assert_eq!(ask(&first, "2").await.unwrap(), "two");
    let mut dropped = turn(&first, "3");
    read_until(&mut dropped, "a").await;
    drop(dropped);
    one.close_unfinished().await.unwrap();
    assert_eq!(ask(&second, "4").await.unwrap(), "four");
    assert_eq!(log(&store).await, "u:1 cut(a) u:2 a:two . u:3 cut(a) u:4 a:four .");
}

#[tokio::test]
async fn a_failed_turn_gives_its_lease_back() {
    let (_store, [one, other]) = two_processes(OnBusy::Reject);
    let broken = || advisor_core::Error::new(ErrorKind::Connection, "broken");
    for place in [Phase::Round, Phase::Turn] {
        let (first, _) = client(&one, place, [Answer::refused(broken())]);
        let (second, _) = client(&other, place, [Answer::from_text("two")]);
        assert_eq!(ask(&first, "1").await.unwrap_err().kind(), ErrorKind::Connection);
        assert_eq!(ask(&second, "2").await.unwrap(), "two");
    }
}

/// Turns are dropped at every await point of their beginning, and at every two of them. The same process can
/// then use the conversation at once.
#[tokio::test(start_paused = true)]
async fn law_k4_turns_dropped_while_beginning_leave_own_process_unlocked() {
    for (first, second) in (0..10).flat_map(|first| (0..14).map(move |second| (first, second))) {
        let memory = ChatMemoryAdvisor::new(FaultStore::new(InMemoryStore::new().with_leases()));
        let (client, _) = plain(&memory, ["one", "two", "three"].map(Answer::from_text));
        for (user, polls) in [("1", first), ("2", second)] {
            let mut dropped = turn(&client, user);
            for _ in 0..polls {
                if dropped.is_terminated() {
                    break;
                }
                let _ = poll!(dropped.next());
                tokio::task::yield_now().await;
            }
            drop(dropped);
        }
        let third = ask(&client, "3").await;
        assert!(third.is_ok(), "dropped after {first} and {second} polls: {third:?}");
    }
}

/// The same turn runs in another process; a run that only waited for it has no claim to its lease.
#[tokio::test(start_paused = true)]
async fn dropped_waiting_turn_takes_no_lease_from_others() {
    let (_store, [one, other]) = two_processes(OnBusy::Reject);
    let gate = Gate::new();
    let (first, _) = client(&one, Phase::Round, [slow(&gate)]);
    let (second, _) = client(&other, Phase::Round, [Answer::from_text("two")]);
    let once = |client: &ChatClient| {
        client.prompt().user("1").conversation("c").turn(TurnId::new("once").unwrap()).stream()
    };
    let mut running = once(&first);
    read_until(&mut running, "a").await;
    let mut waiting = once(&second);
    assert!(timeout(Duration::from_millis(10), waiting.next()).await.is_err());
    drop(waiting);
    assert_eq!(ask(&second, "2").await.unwrap_err().kind(), ErrorKind::ConversationBusy);
    gate.release();
    assert_eq!(running.call().await.unwrap().text(), "ab");
}

/// Newcomers ask more often than a turn that has waited for long.
#[tokio::test(start_paused = true)]
async fn turns_that_wait_in_several_processes_begin_in_their_order() {
    let store = InMemoryStore::new().with_leases();
    let process = || ChatMemoryAdvisor::new(store.clone()).with_on_busy(OnBusy::Queue);
    let gate = Gate::new();
    let (first, _) = client(&process(), Phase::Round, [slow(&gate)]);
    let mut running = turn(&first, "1");
    read_until(&mut running, "a").await;
    let mut waiting = JoinSet::new();
    for user in ["2", "3", "4", "5", "6"] {
        let (client, _) = client(&process(), Phase::Round, [Answer::from_text("x")]);
        waiting.spawn(async move { ask(&client, user).await.unwrap() });
        assert!(timeout(Duration::from_millis(700), running.next()).await.is_err(), "it runs");
    }
    gate.release();
    running.call().await.unwrap();
    let begun = Instant::now();
    waiting.join_all().await;
    assert_eq!(log(&store).await, "u:1 a:ab . u:2 a:x . u:3 a:x . u:4 a:x . u:5 a:x . u:6 a:x .");
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?} between five turns", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn interrupting_process_does_not_starve_a_waiting_turn() {
    let store = InMemoryStore::new().with_leases();
    let process = |on_busy| ChatMemoryAdvisor::new(store.clone()).with_on_busy(on_busy);
    let interrupting = process(OnBusy::InterruptPrevious);
    let (many, _) = client(&interrupting, Phase::Round, (0..40).map(|_| slow(&Gate::new())));
    let (one, _) = client(&process(OnBusy::Queue), Phase::Round, [Answer::from_text("mine")]);
    let mut running = JoinSet::new();
    let begun = Instant::now();
    let mut waiting = None;
    for round in 0..30 {
        let next = turn(&many, &round.to_string());
        running.spawn(next.call());
        tokio::task::yield_now().await;
        waiting.get_or_insert_with(|| {
            let one = one.clone();
            tokio::spawn(async move { (ask(&one, "w").await, begun.elapsed()) })
        });
        if waiting.as_ref().is_some_and(|waiting| waiting.is_finished()) {
            break;
        }
        advance_slowly(Duration::from_millis(700)).await;
    }
    let waiting = timeout(Duration::from_secs(60), waiting.unwrap()).await;
    let (answer, waited) = waiting.expect("it is starved").unwrap();
    assert_eq!(answer.unwrap(), "mine");
    assert!(waited < Duration::from_secs(15), "it waited {waited:?}");
}

/// Lets time pass in steps, so that whatever waits for a part of it goes on in between.
async fn advance_slowly(time: Duration) {
    assert!(timeout(time, std::future::pending::<()>()).await.is_err());
}
