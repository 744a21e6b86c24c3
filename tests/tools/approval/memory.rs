//! A turn with decisions is memory's turn: it holds the conversation, and its results are stored with its input.

use advisor_chain::memory::OnOverflow;
use advisor_chain::tools::Decision;
use advisor_tests::prelude::*;
use advisor_tests::stores::two_stores;

use crate::approval::process::{Process, done, line, one_payment, two_payments};

async fn approve_first(client: &ChatClient) -> Decision {
    client.pending_calls("c").await.unwrap()[0].approve().unwrap()
}

/// While an approved tool runs, no other turn of the conversation begins. Its result is stored.
#[tokio::test]
async fn conversation_is_held_while_approved_tools_run() {
    for place in PLACES {
        let store: Arc<dyn ConversationStore> = Arc::new(InMemoryStore::new().with_leases());
        Process::new(&store, place, one_payment()).ask().await;
        let gate = Gate::new();
        let one = Process::waiting(&store, place, done(), Some(gate.clone()));
        let approved = approve_first(&one.client).await;
        let mut first = Box::pin(one.resume([approved.clone()]));
        one.started(&mut first).await;
        let other = Process::new(&store, place, done());
        for client in [&one.client, &other.client] {
            let asked = client.prompt().user("And?").conversation("c").call().await.unwrap_err();
            assert_eq!(asked.kind(), ErrorKind::ConversationBusy);
            let decided =
                client.prompt().conversation("c").resume([approved.clone()]).call().await.unwrap_err();
            assert_eq!(decided.kind(), ErrorKind::ConversationBusy);
        }
        gate.release();
        assert_eq!(first.await.unwrap().text(), "Done.");
        assert_eq!((one.runs(), one.sent().last().unwrap().as_str()), (1, "c1: paid 1"));
    }
}

/// An advisor outside memory that fails or answers by itself prevents the run. The decisions apply later.
#[tokio::test]
async fn law_t5_advisor_outside_memory_prevents_approved_calls() {
    for (place, phase) in
        [(Phase::Round, Phase::Turn), (Phase::Round, Phase::Round), (Phase::Turn, Phase::Turn)]
    {
        for answers in [false, true] {
            let (stores, _folder) = two_stores().await;
            for store in stores {
                Process::new(&store, place, one_payment()).ask().await;
                let limiter = from_fn("limiter", move |request: ChatRequest, _: AdvisorChain| async move {
                    match answers {
                        true => Ok(request.answer("Too many questions.")),
                        false => Err(Error::new(ErrorKind::Tool, "too many questions")),
                    }
                });
                let limiter = limiter.with_placement(Placement { phase, role: AdvisorRole::OutsideMemory });
                let limited = Process::behind(&store, place, done(), None, |client| client.advisor(limiter));
                let approved = approve_first(&limited.client).await;
                let stopped = limited.resume([approved.clone()]).await;
                assert_eq!((stopped.is_ok(), limited.runs()), (answers, 0), "{place:?} {phase:?}");
                assert!(!limited.pending().await[0].started, "{place:?} {phase:?}");
                let process = Process::new(&store, place, done());
                process.resume([approved]).await.unwrap();
                assert_eq!(process.sent(), ["Pay.", "(c1)", "c1: paid 1"], "{place:?} {phase:?}");
            }
        }
    }
}

/// A turn with decisions is answered once under its id. If the model fails, the results are not lost.
#[tokio::test]
async fn law_t5_resumed_turn_continues_with_its_results() {
    for place in PLACES {
        let (stores, _folder) = two_stores().await;
        for store in stores {
            let gone = Answer::refused(Error::new(ErrorKind::Connection, "gone"));
            let answers = two_payments().into_iter().chain([gone]).chain(done()).collect();
            let process = Process::new(&store, place, answers);
            process.ask().await;
            let pending = process.pending().await;
            let decisions = [pending[0].approve().unwrap(), pending[1].deny("no").unwrap()];
            let resumed =
                || process.client.prompt().conversation("c").resume(decisions.clone()).turn("resumed").call();
            assert_eq!(resumed().await.unwrap_err().kind(), ErrorKind::Connection);
            for _ in 0..2 {
                let answer = resumed().await.unwrap();
                assert_eq!(
                    (answer.text().as_str(), process.runs(), process.model.prompts().len()),
                    ("Done.", 1, 3)
                );
                let transcript: Vec<_> = answer.transcript.iter().map(line).collect();
                assert_eq!(transcript, ["c1: paid 1", "c3: not started: no", "Done."], "{place:?}");
            }
            let results = ["c1: paid 1", "c2: seen", "c3: not started: no"];
            assert_eq!(process.sent(), [&["Pay.", "(c1)(c2)(c3)"][..], &results].concat(), "{place:?}");
            // Under another id, or about other calls, they are too late.
            let late = process.resume(decisions.clone()).await.unwrap_err();
            assert_eq!(late.kind(), ErrorKind::NoClientSideCall);
            let mut forged = decisions.clone();
            forged[0].key.turn = TurnId::new("another").unwrap();
            let other = process
                .client
                .prompt()
                .conversation("c")
                .resume(forged)
                .turn("resumed")
                .call()
                .await
                .unwrap_err();
            assert_eq!((other.kind(), process.runs()), (ErrorKind::TurnIdReused, 1));
        }
    }
}

/// The turn that asks is answered once under its id: in every place of memory, before and after the decision.
#[tokio::test]
async fn law_t5_turn_that_asks_is_answered_once() {
    for place in PLACES {
        let (stores, _folder) = two_stores().await;
        for store in stores {
            let process = Process::new(&store, place, two_payments().into_iter().chain(done()).collect());
            let asks = || process.client.prompt().user("Pay.").conversation("c").turn("asks").call();
            let first = asks().await.unwrap();
            let described = |answer: &ChatResponse| {
                let open = answer.open_calls().map(|(block, call)| format!("{block} {}", call.id));
                let transcript = answer.transcript.iter().map(line);
                (answer.round(), answer.finish.reason.clone(), open.chain(transcript).collect::<Vec<_>>())
            };
            let open = ["1.0 c1", "1.2 c3", "Pay.", "(c1)(c2)(c3)", "c2: seen"];
            assert_eq!(described(&first).2, open);
            for process in [&process, &Process::new(&store, place, Vec::new())] {
                let again = process.client.prompt().user("Pay.").conversation("c").turn("asks").call();
                assert_eq!(described(&again.await.unwrap()), described(&first), "{place:?}");
            }
            let pending = process.pending().await;
            let decisions = pending.iter().map(|call| call.approve().unwrap());
            process.resume(decisions).await.unwrap();
            let after = asks().await.unwrap();
            assert_eq!(described(&after), described(&first), "{place:?}");
            assert_eq!((process.runs(), process.model.prompts().len()), (2, 2));
        }
    }
}

/// Calls of an advisor outside memory do not run before the decided ones.
#[tokio::test]
async fn law_t5_no_call_runs_before_the_decided_ones() {
    let store: Arc<dyn ConversationStore> = Arc::new(InMemoryStore::new().with_leases());
    Process::new(&store, Phase::Round, one_payment()).ask().await;
    let cache = from_fn("cache", |request: ChatRequest, _: AdvisorChain| async move {
        let calls = ToolCall::new("x1", "look", "{}");
        let answer = Message::assistant_blocks(vec![Block::from(calls)]);
        Ok(request.answer(ChatResponse::new(request.round, answer, FinishReason::ToolCalls)))
    });
    let cache = cache.with_placement(Placement { phase: Phase::Round, role: AdvisorRole::OutsideMemory });
    let cached = Process::behind(&store, Phase::Round, done(), None, |client| client.advisor(cache));
    let approved = approve_first(&cached.client).await;
    let refused = cached.resume([approved.clone()]).await.unwrap_err();
    assert_eq!((refused.kind(), cached.runs()), (ErrorKind::Configuration, 0), "{refused}");
    // Nothing holds the conversation, and the decision still applies.
    let process = Process::new(&store, Phase::Round, done());
    process.resume([approved]).await.unwrap();
    assert_eq!(process.sent(), ["Pay.", "(c1)", "c1: paid 1"]);
}

/// The result of a call does not answer a later call with the same id: the conversation has gone on without it.
#[tokio::test]
async fn law_t6_late_result_answers_no_later_call() {
    for place in PLACES {
        let store: Arc<dyn ConversationStore> = Arc::new(InMemoryStore::new());
        Process::new(&store, place, one_payment()).ask().await;
        let gate = Gate::new();
        let one = Process::waiting(&store, place, done(), Some(gate.clone()));
        let approved = approve_first(&one.client).await;
        let mut first = Box::pin(one.resume([approved]));
        one.started(&mut first).await;
        // Another process knows nothing of it, since the store has no leases.
        let other = Process::new(&store, place, one_payment());
        assert_eq!(other.ask().await, FinishReason::ToolCalls);
        gate.release();
        let late = first.await.unwrap_err();
        assert!(matches!(late.kind(), ErrorKind::StoreConflict { .. }), "{place:?} {late}");
        assert_eq!(other.pending().await.len(), 1, "the later call still waits");
    }
}

/// A turn that would be too large is refused before a call runs.
#[tokio::test]
async fn law_t5_turn_that_cannot_begin_runs_no_approved_call() {
    for place in PLACES {
        let store: Arc<dyn ConversationStore> = Arc::new(InMemoryStore::new());
        Process::new(&store, place, one_payment()).ask().await;
        let narrow = ChatMemoryAdvisor::new(Arc::clone(&store)).with_window(Window::Messages(2));
        let narrow = narrow.with_on_overflow(OnOverflow::Refuse);
        let process = Process::with_memory(narrow, place, done());
        let approved = approve_first(&process.client).await;
        let refused = process.resume([approved.clone()]).await.unwrap_err();
        assert_eq!((refused.kind(), process.runs()), (ErrorKind::ContextOverflow, 0), "{place:?}");
        let process = Process::new(&store, place, done());
        process.resume([approved]).await.unwrap();
        assert_eq!(process.runs(), 1);
    }
}

/// Results of approved calls are stored, also if they are too large for the model to be asked. A later turn has them.
#[tokio::test]
async fn law_o4_oversized_results_of_approved_calls_are_stored() {
    for place in PLACES {
        let (stores, _folder) = two_stores().await;
        for store in stores {
            Process::new(&store, place, one_payment()).ask().await;
            let narrow = ChatMemoryAdvisor::new(Arc::clone(&store)).with_window(Window::Tokens(10));
            let narrow = narrow.with_token_counter(|message: &Message| message.text().len());
            let narrow = narrow.with_on_overflow(OnOverflow::Refuse);
            let process = Process::with_memory(narrow, place, done());
            let approved = approve_first(&process.client).await;
            let refused = process
                .client
                .prompt()
                .conversation("c")
                .resume([approved])
                .user("And?")
                .turn("resumed")
                .call()
                .await;
            let refused = refused.unwrap_err();
            assert_eq!((refused.kind(), process.runs()), (ErrorKind::ContextOverflow, 1), "{place:?}");
            assert!(refused.emitted(), "a tool has run");
            let key = ConversationKey::new("c").unwrap();
            let log = store.load(&key, ReadRange::All).await.unwrap().entries;
            let end = log.last().map(|entry| (&entry.kind, entry.turn.as_str()));
            assert!(
                matches!(end, Some((EntryKind::TurnEnded(TurnEnd::Failed { .. }), "resumed"))),
                "{end:?}"
            );
            let next = Process::new(&store, place, done());
            next.ask().await;
            assert_eq!(next.sent()[..4], ["Pay.", "(c1)", "c1: paid 1", "And?"], "{place:?}");
        }
    }
}
