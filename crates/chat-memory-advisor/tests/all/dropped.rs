//! Turns that are dropped, cancelled, rolled back or lost in a crash.

use advisor_core::{
    AdvisorChain, ChatClient, ChatRequest, ErrorKind, FinishReason, Message, OnDrop, Phase, Spawner,
};
use advisor_testkit::{Answer, ScriptedModel};
use chat_memory_advisor::{ChatMemoryAdvisor, INTERRUPTED};
use futures::future::FusedFuture;
use futures::{FutureExt, StreamExt};

use crate::store::{TestStore, Watched, has_ended, test_store};
use crate::support::{Rounds, ask, builder, client, key, log_words, plain, read_until, sent, turn, words};
use advisor_testkit::StoreFault;

const PLACES: [Phase; 2] = [Phase::Round, Phase::Turn];

fn memory() -> (ChatMemoryAdvisor, TestStore) {
    let store = test_store();
    (ChatMemoryAdvisor::new(store.clone()), store)
}

fn hanging(text: &str) -> Answer {
    Answer::new().text(text).hang()
}

fn calls(text: &str) -> Answer {
    Answer::new().text(text).call("1", "f", "{}").finish(FinishReason::ToolCalls)
}

/// Polls a turn until it only waits.
async fn poll_until_stuck(turn: &mut advisor_core::TurnStream) {
    let mut pending = 0;
    while pending < 10 {
        match futures::poll!(turn.next()) {
            std::task::Poll::Ready(item) => drop(item.unwrap().unwrap()),
            std::task::Poll::Pending => pending += 1,
        }
    }
}

#[tokio::test]
async fn next_turn_closes_dropped_turn_with_shown_text() {
    for place in PLACES {
        let (memory, store) = memory();
        let (client, model) = client(&memory, place, [hanging("so far"), Answer::from_text("two")]);
        let mut dropped = turn(&client, "1");
        read_until(&mut dropped, "so far").await;
        drop(dropped);
        assert_eq!(log_words(&store.log(&key()).await), "u:1", "nothing is written without a spawner");
        let view = words(&memory.transcript(&key()).await.unwrap());
        assert_eq!(view, format!("u:1 a:so far {INTERRUPTED}"), "but it is known");
        ask(&client, "2").await.unwrap();
        assert_eq!(sent(&model, 1), format!("s:S {view} u:2"));
        assert_eq!(log_words(&store.log(&key()).await), "u:1 cut(so far) u:2 a:two .");
        assert_eq!(store.appended(), ["0/input", "0/input", place_of_end(place)], "in the same append");
        let loads = store.loads();
        memory.close_unfinished().await.unwrap();
        assert_eq!(store.loads(), loads, "nothing is left of the dropped turn");
    }
}

fn place_of_end(place: Phase) -> &'static str {
    if place == Phase::Round { "1/answer-3" } else { "1/end-3" }
}

#[tokio::test]
async fn spawner_closes_dropped_turn_at_once() {
    for place in PLACES {
        let (memory, store) = memory();
        let model = ScriptedModel::new([calls("Look"), hanging("so far"), Answer::from_text("two")]);
        let client = builder(&memory, place, &model)
            .advisor(Rounds::default())
            .spawner(Spawner::tokio(tokio::runtime::Handle::current()))
            .build()
            .unwrap();
        let mut dropped = turn(&client, "1");
        let handle = dropped.handle();
        read_until(&mut dropped, "Lookso far").await;
        drop(dropped);
        handle.settled().await;
        let log = "u:1 a(1)Look r1 cut(so far)";
        assert_eq!(log_words(&store.log(&key()).await), log);
        let loads = store.loads();
        memory.close_unfinished().await.unwrap();
        assert_eq!(store.loads(), loads, "nothing is left to be closed");
        ask(&client, "2").await.unwrap();
        assert_eq!(sent(&model, 2), "s:S u:1 a(1)Look r1 a:so far [interrupted] u:2");
        assert_eq!(log_words(&store.log(&key()).await), format!("{log} u:2 a:two ."));
    }
}

#[tokio::test]
async fn next_turn_may_begin_while_dropped_one_closes() {
    // The first of the two writes the close; the other one finds the turn closed.
    for polls in 0..8 {
        let (memory, store) = memory();
        let (sender, mut closing) = tokio::sync::mpsc::unbounded_channel();
        let model = ScriptedModel::new([hanging("so far"), Answer::from_text("two")]);
        let spawner = Spawner::new(move |work| sender.send(work).unwrap());
        let client = builder(&memory, Phase::Round, &model).spawner(spawner).build().unwrap();
        let mut dropped = turn(&client, "1");
        read_until(&mut dropped, "so far").await;
        drop(dropped);
        let mut closing = closing.recv().await.unwrap().fuse();
        let mut next = turn(&client, "2");
        for _ in 0..polls {
            let _ = futures::poll!(&mut closing);
        }
        for _ in 0..3 {
            assert!(futures::poll!(next.next()).is_pending());
        }
        while !closing.is_terminated() && futures::poll!(&mut closing).is_pending() {}
        next.call().await.unwrap();
        let log = log_words(&store.log(&key()).await);
        assert_eq!(log, "u:1 cut(so far) u:2 a:two .", "closing came {polls} polls ahead");
    }
}

#[tokio::test]
async fn dropped_turns_can_be_written_before_program_exit() {
    let (memory, store) = memory();
    let (client, _) = plain(&memory, [hanging("one"), hanging("two")]);
    for conversation in ["c", "d"] {
        let mut dropped = client.prompt().user("u").conversation(conversation).stream();
        read_until(&mut dropped, if conversation == "c" { "one" } else { "two" }).await;
    }
    store.fail(0, StoreFault::Unavailable);
    assert_eq!(memory.close_unfinished().await.unwrap_err().kind(), ErrorKind::NotPersisted);
    memory.close_unfinished().await.unwrap();
    assert_eq!(log_words(&store.log(&key()).await), "u:u cut(one)");
    let other = advisor_core::ConversationKey::new("d").unwrap();
    assert_eq!(log_words(&store.log(&other).await), "u:u cut(two)");
    let loads = store.loads();
    memory.close_unfinished().await.unwrap();
    assert_eq!(store.loads(), loads, "nothing is left");
}

#[tokio::test]
async fn cancelled_turn_is_closed_before_error_is_returned() {
    for place in PLACES {
        let (memory, store) = memory();
        let (client, _) = client(&memory, place, [hanging("so far"), Answer::from_text("two")]);
        let mut turn = turn(&client, "1");
        read_until(&mut turn, "so far").await;
        turn.handle().cancel(OnDrop::KeepPartial);
        assert_eq!(turn.call().await.unwrap_err().kind(), ErrorKind::Cancelled);
        assert_eq!(log_words(&store.log(&key()).await), "u:1 cut(so far)");
    }
}

#[tokio::test]
async fn a_turn_that_is_rolled_back_is_hidden() {
    for place in PLACES {
        for dropped in [false, true] {
            let (memory, store) = memory();
            let answers =
                [Answer::from_text("one"), calls("Look"), hanging("so far"), Answer::from_text("three")];
            let (client, model) = client(&memory, place, answers);
            ask(&client, "1").await.unwrap();
            let mut undone = turn(&client, "2").with_on_drop(OnDrop::Rollback);
            read_until(&mut undone, "Lookso far").await;
            if dropped {
                drop(undone);
            } else {
                undone.handle().cancel(OnDrop::Rollback);
                undone.call().await.unwrap_err();
            }
            assert_eq!(words(&memory.transcript(&key()).await.unwrap()), "u:1 a:one");
            ask(&client, "3").await.unwrap();
            assert_eq!(sent(&model, 3), "s:S u:1 a:one u:3");
            let log = log_words(&store.log(&key()).await);
            assert_eq!(log, "u:1 a:one . u:2 a(1)Look r1 undone u:3 a:three .", "it stays in the log");
        }
    }
}

/// The reader leaves after the answer is stored, and before it learns that.
#[tokio::test]
async fn stored_answer_stays_unless_the_turn_is_rolled_back() {
    for (on_drop, request, end) in
        [(OnDrop::KeepPartial, "s:S u:1 a:one u:2", ""), (OnDrop::Rollback, "s:S u:2", " undone")]
    {
        let (memory, store) = memory();
        let model = ScriptedModel::new([Answer::from_text("one"), Answer::from_text("two")]);
        let slow = advisor_core::from_fn("slow", |request: ChatRequest, next: AdvisorChain| async move {
            Ok(next.next_stream(request).await?.on_completed(|_| std::future::pending()))
        });
        let slowed = builder(&memory, Phase::Round, &model).advisor(slow).build().unwrap();
        let mut dropped = turn(&slowed, "1").with_on_drop(on_drop);
        poll_until_stuck(&mut dropped).await;
        assert_eq!(log_words(&store.log(&key()).await), "u:1 a:one .");
        drop(dropped);
        let client = builder(&memory, Phase::Round, &model).build().unwrap();
        ask(&client, "2").await.unwrap();
        assert_eq!(sent(&model, 1), request);
        assert_eq!(log_words(&store.log(&key()).await), format!("u:1 a:one .{end} u:2 a:two ."));
    }
}

/// Drops a turn in which an append hangs, and returns the next turn's request and the log.
async fn dropped_in(
    place: Phase,
    answers: Vec<Answer>,
    operation: usize,
    fault: StoreFault,
) -> (String, String) {
    let (memory, store) = memory();
    let (client, model) = client(&memory, place, answers.into_iter().chain([Answer::from_text("next")]));
    store.fail(operation, fault);
    let mut dropped = turn(&client, "1");
    poll_until_stuck(&mut dropped).await;
    drop(dropped);
    let asked = model.calls();
    // The answers that the first turn did not request are skipped.
    let skipped = ScriptedModel::new([Answer::from_text("next")]);
    let next = builder(&memory, place, &skipped).advisor(Rounds::default()).build().unwrap();
    ask(&next, "2").await.unwrap();
    assert!(has_ended(&store.log(&key()).await), "after {asked} requests");
    (sent(&skipped, 0), log_words(&store.log(&key()).await))
}

#[tokio::test]
async fn stored_answer_of_unfinished_round_is_not_repeated() {
    for place in PLACES {
        let (memory, store) = memory();
        let model = ScriptedModel::new([calls("Look"), Answer::from_text("next")]);
        let rounds = Rounds { inject: vec![Message::user("hurry")], ..Rounds::default() };
        let client = builder(&memory, place, &model).advisor(rounds).build().unwrap();
        // The results are stored; what is injected after them is being written.
        store.fail(4, StoreFault::HangBefore);
        let mut dropped = turn(&client, "1");
        poll_until_stuck(&mut dropped).await;
        drop(dropped);
        ask(&client, "2").await.unwrap();
        assert_eq!(sent(&model, 1), "s:S u:1 a(1)Look r1 a:[interrupted] u:2", "{place:?}");
    }
}

#[tokio::test]
async fn dropped_append_never_repeats_text_whatever_its_outcome() {
    let two = || vec![calls("Look"), Answer::from_text("done")];
    for place in PLACES {
        for (operation, before, after) in [
            (1, "", "u:1 a:[interrupted] "),
            (2, "u:1 a:Look [interrupted] ", "u:1 a(1)Look r1! a:[interrupted] "),
            (3, "u:1 a(1)Look r1! a:[interrupted] ", "u:1 a(1)Look r1 a:[interrupted] "),
            (4, "u:1 a(1)Look r1 a:done [interrupted] ", "u:1 a(1)Look r1 a:done "),
        ] {
            for (fault, view) in [(StoreFault::HangBefore, before), (StoreFault::HangAfter, after)] {
                let (request, _) = dropped_in(place, two(), operation, fault).await;
                assert_eq!(request, format!("s:S {view}u:2"), "{place:?}, operation {operation}, {fault:?}");
            }
        }
    }
}

#[tokio::test]
async fn round_may_repeat_text_of_previous_round() {
    for place in PLACES {
        let (memory, _) = memory();
        let answers = [calls("Look"), hanging("Look"), Answer::from_text("two")];
        let (client, model) = client(&memory, place, answers);
        let mut dropped = turn(&client, "1");
        read_until(&mut dropped, "LookLook").await;
        drop(dropped);
        ask(&client, "2").await.unwrap();
        assert_eq!(sent(&model, 2), "s:S u:1 a(1)Look r1 a:Look [interrupted] u:2", "{place:?}");
    }
}

#[tokio::test]
async fn turn_dropped_while_writing_failure_keeps_text() {
    for fault in [StoreFault::HangBefore, StoreFault::HangAfter, StoreFault::Unavailable] {
        let (memory, store) = memory();
        let broken = advisor_core::Error::new(ErrorKind::Connection, "broken");
        let failing = Answer::new().text("half").error(broken);
        let (client, model) = plain(&memory, [failing, Answer::from_text("two")]);
        store.fail(2, fault);
        let mut first = turn(&client, "1");
        read_until(&mut first, "half").await;
        if fault == StoreFault::Unavailable {
            assert_eq!(first.call().await.unwrap_err().kind(), ErrorKind::Connection, "why the turn failed");
        } else {
            poll_until_stuck(&mut first).await;
            drop(first);
        }
        ask(&client, "2").await.unwrap();
        assert_eq!(sent(&model, 1), "s:S u:1 a:half [interrupted] u:2", "{fault:?}");
        assert_eq!(log_words(&store.log(&key()).await), "u:1 failed(half) u:2 a:two .");
    }
}

#[tokio::test]
async fn dropped_chain_without_root_frees_conversation() {
    let (memory, store) = memory();
    let model = ScriptedModel::new([hanging("so far"), Answer::from_text("two")]);
    let chain = ChatClient::builder(model.clone()).advisor(memory.clone()).build().unwrap().chain().clone();
    let request = || ChatRequest { conversation: Some(key()), ..ChatRequest::new(Message::user("1")) };
    let mut stream = chain.next_stream(request()).await.unwrap();
    while stream.next().await.unwrap().unwrap().text() != Some("so far") {}
    let busy = chain.next_stream(request()).await.unwrap_err();
    assert_eq!(busy.kind(), ErrorKind::ConversationBusy);
    drop(stream);
    chain.next_call(request()).await.unwrap();
    assert_eq!(words(&model.prompts()[1].messages), "u:1 a:[interrupted] u:1");
    assert_eq!(log_words(&store.log(&key()).await), "u:1 cut() u:1 a:two .");
}

#[tokio::test]
async fn a_turn_that_was_never_polled_leaves_nothing() {
    let (memory, store) = memory();
    let (client, _): (ChatClient, _) = plain(&memory, [Answer::from_text("one")]);
    drop(turn(&client, "1"));
    assert_eq!((store.loads(), store.appended().len()), (0, 0));
    assert_eq!(ask(&client, "2").await.unwrap(), "one");
}
