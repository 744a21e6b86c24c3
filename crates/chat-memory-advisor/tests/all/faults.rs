//! Stores that fail: before their effect, after it, once and again.

use std::sync::Arc;
use std::time::Duration;

use advisor_core::{
    AdvisorChain, ChatRequest, ChatResponse, ChunkStream, ErrorKind, FinishReason, Message, Phase, Record,
    Step, TurnEnd, TurnId, async_trait, from_fn,
};
use advisor_testkit::{
    Answer, Around, Asked, FaultStore, Gate, ScriptedModel, StoreAround, StoreFault, Work,
};
use chat_memory_advisor::{ChatMemoryAdvisor, ForkPoint};
use conversation_store::{
    ConversationStore, EntryId, InMemoryStore, ReadRange, Snapshot, StoreError, Version, export, import,
};
use futures::{StreamExt, TryStreamExt};
use tokio::time::Instant;

use crate::store::{Watched, test_store};
use crate::support::{ask, builder, client, key, log_words, plain, read_until, sent, turn};

const PLACES: [Phase; 2] = [Phase::Round, Phase::Turn];

/// A load and four appends.
const OPERATIONS: usize = 5;

fn answers() -> [Answer; 3] {
    let calls = Answer::new().text("Look").call("1", "f", "{}").finish(FinishReason::ToolCalls);
    [calls, Answer::from_text("done"), Answer::from_text("next")]
}

/// Returns the answers of a model that is asked `asked` times in the first turn.
fn answers_after(asked: usize) -> Vec<Answer> {
    let [calls, done, next] = answers();
    [calls, done].into_iter().take(asked).chain([next]).collect()
}

#[tokio::test]
async fn store_failure_before_effect_returns_typed_error() {
    let cases = [
        (ErrorKind::Store, 0, ""),
        (ErrorKind::NotPersisted, 0, ""),
        (ErrorKind::NotPersisted, 1, "u:go failed(Look)"),
        (ErrorKind::NotPersisted, 1, "u:go a(1)Look r1! failed()"),
        (ErrorKind::NotPersisted, 2, "u:go a(1)Look r1 failed(done)"),
    ];
    for place in PLACES {
        for (nth, (kind, asked, log)) in cases.into_iter().enumerate() {
            let case = format!("{place:?}, operation {nth}");
            let store = test_store();
            let memory = ChatMemoryAdvisor::new(store.clone());
            let (client, model) = client(&memory, place, answers_after(asked));
            store.fail(nth, StoreFault::Unavailable);
            let error = ask(&client, "go").await.unwrap_err();
            assert_eq!((error.kind(), model.calls()), (kind, asked), "{case}: {error:?}");
            assert!(std::error::Error::source(&error).is_some(), "{case}: the store's error is kept");
            assert_eq!(log_words(&store.log(&key()).await), log, "{case}");
            assert_eq!(ask(&client, "again").await.unwrap(), "next", "{case}");
            sent(&model, asked);
        }
    }
}

#[tokio::test]
async fn append_with_unknown_outcome_retries_under_same_key() {
    for place in PLACES {
        for nth in 1..OPERATIONS {
            let store = test_store();
            let (client, _) = client(&ChatMemoryAdvisor::new(store.clone()), place, answers());
            store.fail(nth, StoreFault::AnswerLost);
            ask(&client, "go").await.unwrap();
            assert!(store.pending_faults() == 0);
            let log = log_words(&store.log(&key()).await);
            assert_eq!(log, "u:go a(1)Look r1 a:done .", "{place:?}, operation {nth}");
        }
    }
}

#[tokio::test]
async fn unconfirmed_append_is_found_in_log() {
    let cases = [
        (0, "u:go failed()"),
        (1, "u:go a(1)Look r1! failed()"),
        (1, "u:go a(1)Look r1 failed()"),
        (2, "u:go a(1)Look r1 a:done ."),
    ];
    for place in PLACES {
        for (nth, (asked, log)) in (1..).zip(cases) {
            let case = format!("{place:?}, operation {nth}");
            let store = test_store();
            let (client, model) = client(&ChatMemoryAdvisor::new(store.clone()), place, answers_after(asked));
            store.fail(nth, StoreFault::AnswerLost);
            store.fail(nth + 1, StoreFault::Unavailable);
            let error = ask(&client, "go").await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotPersisted, "{case}");
            assert_eq!(log_words(&store.log(&key()).await), log, "{case}");
            assert_eq!(ask(&client, "again").await.unwrap(), "next", "{case}");
            sent(&model, asked);
        }
    }
}

#[tokio::test]
async fn unavailable_store_leaves_closing_to_next_turn() {
    for place in PLACES {
        for nth in 2..OPERATIONS {
            let case = format!("{place:?}, operation {nth}");
            let store = test_store();
            let memory = ChatMemoryAdvisor::new(store.clone());
            let (client, model) = client(&memory, place, answers());
            (nth..nth + 6).for_each(|_| store.fail(nth, StoreFault::Unavailable));
            let error = ask(&client, "go").await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotPersisted, "{case}");
            while store.pending_faults() > 0 {
                assert_eq!(memory.transcript(&key()).await.unwrap_err().kind(), ErrorKind::Store);
            }
            // The answer that was left over is the next turn's.
            ask(&client, "again").await.unwrap();
            let request = sent(&model, model.calls() - 1);
            assert!(request.ends_with("u:again"), "{case}: {request}");
            let shown = if nth == 4 { "a:done [interrupted]" } else { "[interrupted]" };
            assert!(request.contains(shown), "{case}: {request}");
        }
    }
}

#[tokio::test]
async fn error_carries_answer_that_was_not_stored() {
    let store = test_store();
    let (client, _) = plain(&ChatMemoryAdvisor::new(store.clone()), [Answer::from_text("precious")]);
    store.fail(2, StoreFault::Unavailable);
    let error = ask(&client, "go").await.unwrap_err();
    assert_eq!(error.partial().unwrap().text(), "precious");
    assert!(error.emitted());
}

#[tokio::test]
async fn outer_advisor_may_retry_when_answer_not_stored() {
    for (fault, log) in
        [(StoreFault::Unavailable, "u:go a:two ."), (StoreFault::AnswerLost, "u:go a:one . a:two .")]
    {
        let store = test_store();
        let model = ScriptedModel::new(["one", "two"].map(Answer::from_text));
        let retry = from_fn("retry", |request: ChatRequest, next: AdvisorChain| async move {
            next.next_call(request.clone()).await.unwrap_err();
            next.next_stream(request).await
        });
        let memory = ChatMemoryAdvisor::new(store.clone());
        let client = builder(&memory, Phase::Round, &model).advisor(retry).build().unwrap();
        store.fail(2, fault);
        if fault == StoreFault::AnswerLost {
            store.fail(3, StoreFault::Unavailable);
        }
        assert_eq!(ask(&client, "go").await.unwrap(), "two");
        assert_eq!(log_words(&store.log(&key()).await), log);
        let asked = if fault == StoreFault::Unavailable { "s:S u:go" } else { "s:S u:go a:one" };
        assert_eq!(sent(&model, 1), asked);
    }
}

#[tokio::test]
async fn concurrent_write_of_other_process_conflicts_without_overwrite() {
    let store = test_store();
    let gate = Gate::new();
    let slow = Answer::new().text("a").gate(&gate).text("b").finish(FinishReason::Stop);
    let (here, _) = plain(&ChatMemoryAdvisor::new(store.clone()), [slow, Answer::from_text("later")]);
    let (there, _) = plain(&ChatMemoryAdvisor::new(store.clone()), [Answer::from_text("other")]);
    let mut first = turn(&here, "1");
    read_until(&mut first, "a").await;
    // A memory made apart does not know that the first turn is alive.
    ask(&there, "2").await.unwrap();
    gate.release();
    let error = first.call().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreConflict { current: 5 });
    assert_eq!(log_words(&store.log(&key()).await), "u:1 cut() u:2 a:other .");
    assert_eq!(ask(&here, "3").await.unwrap(), "later");
}

#[tokio::test]
async fn only_one_of_two_concurrent_processes_begins() {
    let store = test_store();
    let (here, _) = plain(&ChatMemoryAdvisor::new(store.clone()), [Answer::new().text("a").hang()]);
    let (there, model) = plain(&ChatMemoryAdvisor::new(store.clone()), [Answer::from_text("b")]);
    let mut first = turn(&here, "1");
    let mut second = turn(&there, "2");
    // Both load the empty conversation before either of them writes.
    for _ in 0..3 {
        assert!(futures::poll!(first.next()).is_pending());
        assert!(futures::poll!(second.next()).is_pending());
    }
    assert_eq!(store.loads(), 2);
    assert!(store.log(&key()).await.is_empty());
    read_until(&mut first, "a").await;
    let error = second.call().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreConflict { current: 1 });
    assert_eq!(model.calls(), 0);
}

#[tokio::test]
async fn conversation_deleted_during_turn_stays_deleted() {
    let store = test_store();
    let gate = Gate::new();
    let slow = Answer::new().text("a").gate(&gate).text("b").finish(FinishReason::Stop);
    let (client, model) = plain(&ChatMemoryAdvisor::new(store.clone()), [slow, Answer::from_text("new")]);
    let mut first = turn(&client, "1");
    read_until(&mut first, "a").await;
    store.delete(&key()).await.unwrap();
    gate.release();
    let shared = Arc::clone(first.turn());
    assert_eq!(first.call().await.unwrap_err().kind(), ErrorKind::Store);
    let late = Record::new(1, Step::Injected, vec![Message::user("late")]);
    assert_eq!(shared.record(&late).await.unwrap_err().kind(), ErrorKind::Store);
    drop(shared);
    assert!(store.log(&key()).await.is_empty());
    ask(&client, "2").await.unwrap();
    assert_eq!(sent(&model, 1), "s:S u:2");
}

#[tokio::test]
async fn turn_continues_after_abandoned_append() {
    // As when the turn's time runs out while memory writes: the round is dropped, and the loop ends the turn.
    let deadline = from_fn("deadline", |request: ChatRequest, next: AdvisorChain| async move {
        let mut round = Box::pin(next.next_call(request.clone()));
        for _ in 0..20 {
            assert!(futures::poll!(&mut round).is_pending());
        }
        drop(round);
        let text = Message::assistant("Time is up.");
        let closing = ChatResponse::new(request.turn.next_round(), text, FinishReason::Stop);
        let end = Step::End(TurnEnd::Completed(FinishReason::Stop));
        let record = Record::new(closing.round(), end, vec![closing.message().clone()]);
        request.turn.record(&record).await?;
        Ok(ChunkStream::answer(closing))
    });
    // An append that has begun is finished before the next one, so it cannot arrive late.
    let log = "u:go a(1)Look r1! a:Time is up. .";
    for fault in [StoreFault::HangBefore, StoreFault::HangAfter] {
        let store = test_store();
        let memory = ChatMemoryAdvisor::new(store.clone());
        let model = ScriptedModel::new(answers());
        let client = builder(&memory, Phase::Round, &model).advisor(deadline.clone()).build().unwrap();
        store.fail(2, fault);
        assert_eq!(ask(&client, "go").await.unwrap(), "Time is up.");
        assert_eq!(log_words(&store.log(&key()).await), log, "{fault:?}");
        let (client, model) = plain(&memory, [Answer::from_text("next")]);
        ask(&client, "again").await.unwrap();
        assert_eq!(sent(&model, 0), format!("s:S {} u:again", log.trim_end_matches(" .")));
    }
}

/// Shows an earlier state of a conversation, like a replica that lags behind by this many entries.
struct Lagging(usize);

#[async_trait]
impl Around for Lagging {
    async fn around(&self, _: Asked<'_>, work: Work<'_>) -> Result<Option<Version>, StoreError> {
        work.await
    }

    fn show(&self, read: &mut Snapshot) {
        read.entries.truncate(read.entries.len().saturating_sub(self.0));
        read.version = read.entries.last().map_or(Version::EMPTY, |last| Version(last.seq));
        read.open_turn = None;
    }
}

#[tokio::test]
async fn stale_read_is_conflict_before_model_call() {
    for place in PLACES {
        let inner = InMemoryStore::new();
        let (first, _) = client(&ChatMemoryAdvisor::new(inner.clone()), place, [Answer::from_text("done")]);
        ask(&first, "1").await.unwrap();
        // A turn that has ended is three entries.
        for behind in 1..=3 {
            let lagging = ChatMemoryAdvisor::new(StoreAround::with(Arc::new(inner.clone()), Lagging(behind)));
            let (second, model) = client(&lagging, place, [Answer::from_text("next")]);
            let error = ask(&second, "2").await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::StoreConflict { current: 3 }, "{place:?} {behind}");
            assert_eq!(model.calls(), 0);
            let log = inner.load(&key(), ReadRange::All).await.unwrap().entries;
            assert_eq!(log_words(&log), "u:1 a:done .", "{place:?} {behind}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn law_t3_store_timeout_bounds_wait_for_silent_store() {
    for place in [Phase::Round, Phase::Turn] {
        for (operation, fault) in [
            (0, StoreFault::HangBefore),
            (1, StoreFault::HangAfter),
            (3, StoreFault::HangBefore),
            (3, StoreFault::HangAfter),
        ] {
            let store = test_store();
            let memory = ChatMemoryAdvisor::new(store.clone());
            let calls = Answer::from_calls([("1", "f", "{}")]);
            let (client, _) =
                client(&memory, place, [calls, Answer::from_text("done"), Answer::from_text("next")]);
            store.fail(operation, fault);
            let began = Instant::now();
            let outcome = ask(&client, "go").await.map_err(|error| error.kind());
            let took = began.elapsed();
            assert!(took >= Duration::from_secs(30) && took < Duration::from_secs(31), "{took:?}");
            // An append is made again under its key, and the second one answers.
            let expected = if operation == 0 { Err(ErrorKind::Store) } else { Ok("done".into()) };
            assert_eq!(outcome, expected, "{place:?} {operation} {fault:?}");
            ask(&client, "next").await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn law_t3_every_operation_of_a_silent_store_is_bounded() {
    let no_such_turn = ForkPoint::Before(TurnId::new("none").unwrap());
    // The operations of a turn over leases: the request, the load, the input, the answer, the release.
    for (what, leases, fork_point, operation, expected) in [
        ("acquire", true, None, 0, Ok("next")),
        ("release", true, None, 4, Ok("next")),
        ("search of the last branch", false, Some(no_such_turn.clone()), 0, Err(ErrorKind::Store)),
        ("search of the log", false, Some(no_such_turn), 1, Err(ErrorKind::Store)),
        ("load of a branch", false, Some(ForkPoint::After(EntryId(3))), 1, Err(ErrorKind::Store)),
    ] {
        let inner = InMemoryStore::new();
        let store = FaultStore::new(if leases { inner.with_leases() } else { inner });
        let (client, _) =
            plain(&ChatMemoryAdvisor::new(store.clone()), ["done", "next", "more"].map(Answer::from_text));
        ask(&client, "go").await.unwrap();
        store.fail_at(store.operations() + operation, StoreFault::HangBefore);
        let mut prompt = client.prompt().user("next").conversation("c");
        if let Some(fork_point) = fork_point {
            prompt = prompt.extension(fork_point);
        }
        let began = Instant::now();
        let outcome = prompt.call().await.map(|response| response.text()).map_err(|error| error.kind());
        assert_eq!(outcome, expected.map(str::to_owned), "{what}");
        assert_eq!(began.elapsed().as_secs(), 30, "{what}");
        assert_eq!(store.pending_faults(), 0, "{what}");
        ask(&client, "more").await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn law_t3_close_over_a_silent_store_is_bounded() {
    for (operation, fault) in
        [(0, StoreFault::HangBefore), (1, StoreFault::HangBefore), (1, StoreFault::HangAfter)]
    {
        let store = test_store();
        let memory = ChatMemoryAdvisor::new(store.clone());
        let (client, _) = plain(&memory, [Answer::new().text("half").hang()]);
        let mut dropped = turn(&client, "go");
        read_until(&mut dropped, "half").await;
        drop(dropped);
        store.fail(operation, fault);
        let began = Instant::now();
        let closed = memory.close_unfinished().await;
        assert_eq!(began.elapsed().as_secs(), 30, "{operation} {fault:?}");
        assert_eq!(closed.is_ok(), operation == 1, "an append is repeated: {fault:?}");
        memory.close_unfinished().await.unwrap();
        assert_eq!(log_words(&store.log(&key()).await), "u:go cut(half)", "{operation} {fault:?}");
    }
}

#[tokio::test]
async fn import_repeats_a_batch_whose_answer_is_lost() {
    let (store, other) = (test_store(), test_store());
    let (client, _) = plain(&ChatMemoryAdvisor::new(store.clone()), [Answer::from_text("done")]);
    ask(&client, "go").await.unwrap();
    let lines: String = export(store.clone(), key()).try_collect().await.unwrap();
    other.fail(0, StoreFault::AnswerLost);
    import(&other, lines.as_bytes(), None).await.unwrap();
    assert!(other.pending_faults() == 0);
    assert_eq!(other.log(&key()).await, store.log(&key()).await);
}
