//! Tests of the messages that memory sends about client-side calls without a result.

use advisor_chain::memory::store::Leases;
use advisor_chain::memory::{ForkPoint, repair};
use advisor_chain::messages::ToolCallDelta;
use advisor_testkit::{Around, Asked, FaultStore, StoreAround, Work};
use advisor_tests::prelude::*;
use advisor_tests::stores::two_stores;
use advisor_tests::tools::{definition, tool};
use tokio::sync::Barrier;

const CONTINUED_WITHOUT_RESULTS: &str = "[the conversation went on without these results]";
const NOT_RUN: &str = "not run: the conversation went on without it";

/// A process over a store, whose model is asked for a refund and then talks of something else.
struct Process {
    client: ChatClient,
    model: ScriptedModel,
}

impl Process {
    fn new(store: &Arc<dyn ConversationStore>, place: Phase, window: Window, answers: Vec<Answer>) -> Self {
        let model = ScriptedModel::new(answers);
        let refund = ClientSideTool::new(definition("refund"));
        let memory = ChatMemoryAdvisor::new(Arc::clone(store)).with_window(window);
        let client = ChatClient::builder(model.clone())
            .advisor(ToolCallAdvisor::new())
            .tool(refund)
            .tool(tool("look", "seen"));
        Self { client: client.advisor_in(place, memory).build().unwrap(), model }
    }

    /// Runs a turn with this input and returns the messages of its request.
    async fn turn(&self, input: Vec<Message>) -> Vec<String> {
        self.client.prompt().messages(input).conversation("c").call().await.unwrap();
        let sent = self.model.prompts().pop().unwrap().messages;
        assert_eq!(validate_transcript(&sent), []);
        sent.iter().map(line).collect()
    }
}

fn line(message: &Message) -> String {
    match message.role() {
        Role::Tool => format!("{}: {}", message.tool_result().unwrap().call_id, message.text()),
        _ => message.tool_calls().fold(message.text(), |line, call| format!("{line}({})", call.id)),
    }
}

fn asks(ids: &[&str]) -> Vec<Answer> {
    vec![Answer::from_calls(ids.iter().map(|id| (*id, "refund", "{}")))]
}

fn says(text: &str) -> Vec<Answer> {
    vec![Answer::from_text(text.to_owned())]
}

fn paid(id: &str) -> Message {
    Message::tool(ToolResult::new(&ToolCall::new(id, "refund", ""), vec!["paid".into()]))
}

async fn log(store: &Arc<dyn ConversationStore>) -> Vec<Entry> {
    store.load(&ConversationKey::new("c").unwrap(), ReadRange::All).await.unwrap().entries
}

const WINDOWS: [Window; 4] = [Window::All, Window::Messages(12), Window::Turns(3), Window::Tokens(500)];

#[tokio::test]
async fn call_skipped_by_user_message_is_reported_unrun() {
    let not_run = format!("1: {NOT_RUN}");
    for window in WINDOWS {
        let mut logs = Vec::new();
        for place in PLACES {
            let (stores, _folder) = two_stores().await;
            for store in stores {
                let process = |answers| Process::new(&store, place, window, answers);
                process(asks(&["1"])).turn(vec![Message::user("Refund me.")]).await;
                let told = ["Refund me.", "(1)", &not_run, CONTINUED_WITHOUT_RESULTS];
                // Another process goes on, and so does one after it.
                let sent = process(says("Hm.")).turn(vec![Message::user("Never mind.")]).await;
                assert_eq!(sent, [&told[..], &["Never mind."]].concat(), "{window:?} {place:?}");
                let sent = process(says("So.")).turn(vec![Message::user("And?")]).await;
                assert_eq!(sent, [&told[..], &["Never mind.", "Hm.", "And?"]].concat(), "and so it stays");
                let log = log(&store).await;
                let repaired: Vec<_> = repair(&log).iter().map(line).collect();
                assert_eq!(repaired, [&told[..], &["Never mind.", "Hm.", "And?", "So."]].concat());
                logs.push(log.into_iter().map(|entry| entry.kind).collect::<Vec<_>>());
            }
        }
        assert!(logs.windows(2).all(|pair| pair[0] == pair[1]), "memory is the same wherever it stands");
    }
}

/// An answer calls a tool of the loop beside those of the caller: the loop's result is remembered with the turn, the
/// caller's follow, and the next request has all of them in call order.
#[tokio::test]
async fn law_m1_results_of_both_sides_are_sent_in_order() {
    for place in PLACES {
        for window in WINDOWS {
            let (stores, _folder) = two_stores().await;
            for store in stores {
                let process = |answers| Process::new(&store, place, window, answers);
                let mixed = [("1", "refund", "{}"), ("2", "look", "{}"), ("3", "refund", "{}")];
                process(vec![Answer::from_calls(mixed)]).turn(vec![Message::user("Refund me.")]).await;
                let waits: Vec<_> = ChatMemoryAdvisor::new(Arc::clone(&store))
                    .client_side_calls(&key())
                    .await
                    .unwrap()
                    .into_iter()
                    .map(|open| (open.call.id.to_string(), open.key.unwrap().position))
                    .collect();
                assert_eq!(waits, [("1".to_owned(), 0), ("3".to_owned(), 2)], "{window:?} {place:?}");
                let sent = process(says("Done.")).turn(vec![paid("3")]).await;
                let calls = ["Refund me.", "(1)(2)(3)", &format!("1: {NOT_RUN}"), "2: seen", "3: paid"];
                assert_eq!(sent, calls, "{window:?} {place:?}");
                let sent = process(says("So.")).turn(vec![Message::user("And?")]).await;
                assert_eq!(sent, [&calls[..], &["Done.", "And?"]].concat(), "{window:?} {place:?}");
            }
        }
    }
}

fn key() -> ConversationKey {
    ConversationKey::new("c").unwrap()
}

/// Returns the start of the call at this position of the last answer.
async fn start_of(store: &Arc<dyn ConversationStore>, position: usize) -> CallStart {
    let memory = ChatMemoryAdvisor::new(Arc::clone(store));
    let open = memory.client_side_calls(&key()).await.unwrap().swap_remove(position);
    CallStart::new(open.key.unwrap(), open.call.id)
}

fn starts(log: &[Entry]) -> usize {
    log.iter().filter(|entry| matches!(entry.kind, EntryKind::CallStarted(_))).count()
}

fn kind<T>(outcome: Result<T>) -> Option<ErrorKind> {
    outcome.err().map(|error| error.kind())
}

/// Law T5: a process dies between the start of a client-side call and its result. The model reads that it must
/// verify.
#[tokio::test]
async fn law_t5_client_side_call_with_lost_result_needs_verification() {
    let (verify, not_run) = (format!("1: {VERIFY_BEFORE_RETRYING}"), format!("2: {NOT_RUN}"));
    for window in WINDOWS {
        for place in PLACES {
            let (stores, _folder) = two_stores().await;
            for store in stores {
                let process = |answers| Process::new(&store, place, window, answers);
                process(asks(&["1", "2"])).turn(vec![Message::user("Refund me.")]).await;
                let start = start_of(&store, 0).await;
                ChatMemoryAdvisor::new(Arc::clone(&store)).record_call_start(&key(), &start).await.unwrap();
                // It runs, and its process dies.
                let told = ["Refund me.", "(1)(2)", &verify, &not_run, CONTINUED_WITHOUT_RESULTS];
                let sent = process(says("Hm.")).turn(vec![Message::user("Did it work?")]).await;
                assert_eq!(sent, [&told[..], &["Did it work?"]].concat(), "{window:?} {place:?}");
                let sent = process(says("So.")).turn(vec![Message::user("And?")]).await;
                let later = ["Did it work?", "Hm.", "And?"];
                assert_eq!(sent, [&told[..], &later].concat(), "and so it stays");
            }
        }
    }
}

/// Law T5: as above, and the result comes in time.
#[tokio::test]
async fn law_t5_started_client_side_call_accepts_its_result() {
    let (stores, _folder) = two_stores().await;
    for store in stores {
        let process = |answers| Process::new(&store, Phase::Round, Window::All, answers);
        let memory = ChatMemoryAdvisor::new(Arc::clone(&store));
        process(asks(&["1", "2"])).turn(vec![Message::user("Refund me.")]).await;
        let started = async || {
            let calls = memory.client_side_calls(&key()).await.unwrap();
            calls.into_iter().map(|open| (open.call.id.to_string(), open.started)).collect::<Vec<_>>()
        };
        for position in [1, 0] {
            let (id, other) = (["1", "2"][position].into(), ["2", "1"][position].into());
            assert!(started().await.contains(&(id, false)));
            let start = start_of(&store, position).await;
            memory.record_call_start(&key(), &start).await.unwrap();
            assert!(started().await.contains(&(other, position == 0)));
        }
        assert_eq!(started().await, [("1".into(), true), ("2".into(), true)]);
        let sent = process(says("Done.")).turn(vec![paid("2"), paid("1"), Message::user("Thanks.")]).await;
        assert_eq!(sent, ["Refund me.", "(1)(2)", "1: paid", "2: paid", "Thanks."]);
    }
}

/// The first loads of a store wait for each other, so that two processes know the same of a conversation.
struct Together(Barrier, AtomicUsize);

#[async_trait]
impl Around for Together {
    async fn around(&self, asked: Asked<'_>, work: Work<'_>) -> Result<Option<Version>, StoreError> {
        let done = work.await;
        if matches!(asked, Asked::Load) && self.1.fetch_add(1, Ordering::SeqCst) < 2 {
            self.0.wait().await;
        }
        done
    }
}

/// Law T5: two processes at once want to run one call, and two different ones of one answer.
#[tokio::test]
async fn law_t5_one_of_two_processes_starts_client_side_call() {
    let (stores, _folder) = two_stores().await;
    for store in stores {
        let process = |answers| Process::new(&store, Phase::Round, Window::All, answers);
        process(asks(&["1", "2", "3"])).turn(vec![Message::user("Refund me.")]).await;
        for (first, second, refused) in [(0, 0, 1), (1, 2, 0)] {
            let together = Together(Barrier::new(2), AtomicUsize::new(0));
            let together = StoreAround::with(Arc::clone(&store), together);
            let run = async |position| {
                let start = start_of(&store, position).await;
                ChatMemoryAdvisor::new(together.clone()).record_call_start(&key(), &start).await
            };
            let (one, other) = futures::join!(run(first), run(second));
            let errors: Vec<_> = [one, other].into_iter().filter_map(kind).collect();
            assert_eq!(errors, vec![ErrorKind::CallAlreadyStarted; refused]);
        }
        assert_eq!(starts(&log(&store).await), 3);
    }
}

/// Law T5: nothing is recorded of a call that the conversation does not wait for.
#[tokio::test]
async fn law_t5_only_pending_call_of_conversation_is_started() {
    let (stores, _folder) = two_stores().await;
    for store in stores {
        let memory = ChatMemoryAdvisor::new(Arc::clone(&store));
        let process = |answers| Process::new(&store, Phase::Round, Window::All, answers);
        let start = |key: CallKey, id: &str| CallStart::new(key, id);
        let refuse = async |start: &CallStart, what: &str| {
            let refused = memory.record_call_start(&key(), start).await;
            assert_eq!(kind(refused), Some(ErrorKind::NoClientSideCall), "{what}");
            assert_eq!(starts(&log(&store).await), 0, "{what}");
        };
        refuse(&start("t/1/0".parse().unwrap(), "1"), "a conversation without entries").await;
        process(asks(&["1", "2"])).turn(vec![Message::user("Refund me.")]).await;
        let first = start_of(&store, 0).await;
        let at = |round, position| CallKey::new(first.key.turn.clone(), round, position);
        refuse(&start(at(1, 2), "1"), "another place").await;
        refuse(&start(at(2, 0), "1"), "another round").await;
        refuse(&start(at(1, 0), "2"), "the key of another call").await;
        refuse(&start("t/1/0".parse().unwrap(), "1"), "another turn").await;
        let elsewhere = memory.record_call_start(&ConversationKey::new("d").unwrap(), &first).await;
        assert_eq!(kind(elsewhere), Some(ErrorKind::NoClientSideCall));
        process(says("Done.")).turn(vec![paid("1")]).await;
        refuse(&first, "it is answered").await;
        refuse(&start(at(1, 1), "2"), "the conversation went on").await;
    }
}

/// Law T5: no start is written while a turn of the conversation runs, here or in another process.
#[tokio::test(start_paused = true)]
async fn law_t5_client_side_call_does_not_start_during_turn() {
    for (leases, same) in [(true, false), (true, true), (false, true)] {
        let store = InMemoryStore::new();
        let store: Arc<dyn ConversationStore> = Arc::new(if leases { store.with_leases() } else { store });
        Process::new(&store, Phase::Round, Window::All, asks(&["1"])).turn(vec![Message::user("Go.")]).await;
        let start = start_of(&store, 0).await;
        let memory = ChatMemoryAdvisor::new(Arc::clone(&store));
        let other = if same { memory.clone() } else { ChatMemoryAdvisor::new(Arc::clone(&store)) };
        let model = ScriptedModel::new([Answer::new().text("No").hang()]);
        let client = ChatClient::builder(model).advisor(memory).build().unwrap();
        let mut turn =
            client.prompt().user("Never mind.").conversation(key()).on_drop(OnDrop::Rollback).stream();
        while turn.next().await.unwrap().unwrap().text() != Some("No") {}
        let key = key();
        let refused = tokio::time::timeout(Duration::from_secs(1), other.record_call_start(&key, &start));
        assert_eq!(kind(refused.await.unwrap()), Some(ErrorKind::ConversationBusy), "{leases} {same}");
        assert_eq!(starts(&log(&store).await), 0);
    }
}

/// Law T5: a turn that brought results and was rolled back leaves the calls open. Its process may not have written that.
#[tokio::test]
async fn law_t5_call_started_after_rolled_back_turn_needs_verification() {
    for is_written in [true, false] {
        let (stores, _folder) = two_stores().await;
        for store in stores {
            let process = |answers| Process::new(&store, Phase::Round, Window::All, answers);
            process(asks(&["1"])).turn(vec![Message::user("Refund me.")]).await;
            let memory = ChatMemoryAdvisor::new(Arc::clone(&store));
            let model = ScriptedModel::new([Answer::new().text("No").hang(), Answer::from_text("Hm.")]);
            let client = ChatClient::builder(model.clone()).advisor(memory.clone()).build().unwrap();
            let prompt = || client.prompt().conversation(key());
            let mut turn = prompt().messages([paid("1")]).on_drop(OnDrop::Rollback).stream();
            while turn.next().await.unwrap().unwrap().text() != Some("No") {}
            drop(turn);
            if is_written {
                memory.close_unfinished().await.unwrap();
            }
            let open = memory.client_side_calls(&key()).await.unwrap().swap_remove(0);
            let start = CallStart::new(open.key.unwrap(), open.call.id);
            memory.record_call_start(&key(), &start).await.unwrap();
            let again = memory.record_call_start(&key(), &start).await;
            assert_eq!(kind(again), Some(ErrorKind::CallAlreadyStarted));
            memory.close_unfinished().await.unwrap();
            prompt().user("Did it work?").call().await.unwrap();
            let sent: Vec<_> = model.prompts().pop().unwrap().messages.iter().map(line).collect();
            let verify = format!("1: {VERIFY_BEFORE_RETRYING}");
            assert_eq!(
                sent,
                ["Refund me.", "(1)", &verify, CONTINUED_WITHOUT_RESULTS, "Did it work?"],
                "{is_written}"
            );
        }
    }
}

/// Law T5: whatever the store does, a start that is reported as recorded is stored once.
#[tokio::test]
async fn law_t5_start_reported_as_recorded_is_recorded() {
    let faults = [StoreFault::Unavailable, StoreFault::AnswerLost, StoreFault::Conflict];
    for fault in faults {
        for operation in 0..4 {
            let inner = InMemoryStore::new();
            let store = FaultStore::new(inner.clone());
            let (inner, shared): (Arc<dyn ConversationStore>, _) = (Arc::new(inner), store.clone());
            Process::new(&inner, Phase::Round, Window::All, asks(&["1"]))
                .turn(vec![Message::user("Go.")])
                .await;
            let start = start_of(&inner, 0).await;
            store.fail_at(store.operations() + operation, fault);
            let memory = ChatMemoryAdvisor::new(shared);
            let mut runs = 0;
            for _ in 0..3 {
                runs += usize::from(memory.record_call_start(&key(), &start).await.is_ok());
                assert!(runs <= starts(&log(&inner).await), "{fault:?} at {operation}");
            }
            store.clear_faults();
            assert!(runs <= 1 && starts(&log(&inner).await) == 1, "{fault:?} at {operation}: {runs}");
        }
    }
}

/// Loads take longer than a lease lasts.
struct Late;

#[async_trait]
impl Around for Late {
    async fn around(&self, asked: Asked<'_>, work: Work<'_>) -> Result<Option<Version>, StoreError> {
        let done = work.await;
        if matches!(asked, Asked::Load) {
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
        done
    }
}

/// Law T5: a slow process whose lease has passed to another one records no start.
#[tokio::test(start_paused = true)]
async fn law_t5_process_without_lease_starts_no_client_side_call() {
    let leased = InMemoryStore::new().with_leases();
    let store: Arc<dyn ConversationStore> = Arc::new(leased.clone());
    Process::new(&store, Phase::Round, Window::All, asks(&["1"])).turn(vec![Message::user("Go.")]).await;
    let start = start_of(&store, 0).await;
    let late = StoreAround::with(Arc::clone(&store), Late);
    let memory = ChatMemoryAdvisor::new(late).with_lease_ttl(Duration::from_secs(1));
    let (key, turn) = (key(), TurnId::new("other").unwrap());
    let other = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        leased.acquire(&key, &turn, Duration::from_secs(60), None, false).await.unwrap()
    };
    let (refused, _) = futures::join!(memory.record_call_start(&key, &start), other);
    assert_eq!((kind(refused), starts(&log(&store).await)), (Some(ErrorKind::Fenced), 0));
}

/// Law T5: a turn was dropped while its end was stored. A start is still stored after that end.
#[tokio::test(start_paused = true)]
async fn law_t5_turn_without_stored_end_starts_no_call() {
    for fault in [StoreFault::HangBefore, StoreFault::HangAfter] {
        let inner = InMemoryStore::new();
        let store = FaultStore::new(inner.clone());
        // The conversation is loaded, then the input, the answer and the end of the turn are stored.
        store.fail_at(3, fault);
        let memory = ChatMemoryAdvisor::new(store);
        let model = ScriptedModel::new(asks(&["1", "2"]).into_iter().chain(says("Hm.")));
        // Without a tool loop every call is client-side.
        let client = ChatClient::builder(model.clone()).advisor(memory.clone()).build().unwrap();
        let prompt = |text: &str| client.prompt().user(text).conversation(key());
        let cut = tokio::time::timeout(Duration::from_secs(1), prompt("Refund me.").call()).await;
        assert!(cut.is_err(), "{fault:?}");
        if fault == StoreFault::HangBefore {
            // Nobody was given the answer, and it is closed as one that was cut off.
            assert_eq!(memory.client_side_calls(&key()).await.unwrap(), []);
            memory.close_unfinished().await.unwrap();
            assert_eq!(memory.client_side_calls(&key()).await.unwrap(), []);
            continue;
        }
        let open = memory.client_side_calls(&key()).await.unwrap().swap_remove(0);
        let start = CallStart::new(open.key.unwrap(), open.call.id);
        memory.record_call_start(&key(), &start).await.unwrap();
        memory.close_unfinished().await.unwrap();
        // Another process sees it.
        let other = ChatMemoryAdvisor::new(inner);
        let calls = other.client_side_calls(&key()).await.unwrap();
        assert_eq!(calls.iter().map(|open| open.started).collect::<Vec<_>>(), [true, false], "{fault:?}");
        prompt("Did it work?").call().await.unwrap();
        let sent: Vec<_> = model.prompts().pop().unwrap().messages.iter().map(line).collect();
        let (verify, not_run) = (format!("1: {VERIFY_BEFORE_RETRYING}"), format!("2: {NOT_RUN}"));
        assert_eq!(
            sent,
            ["Refund me.", "(1)(2)", &verify, &not_run, CONTINUED_WITHOUT_RESULTS, "Did it work?"],
            "{fault:?}"
        );
    }
}

/// A start counts on every branch: going back to before it starts no call a second time.
#[tokio::test]
async fn law_t5_call_started_on_one_branch_not_on_another() {
    let (stores, _folder) = two_stores().await;
    for store in stores {
        Process::new(&store, Phase::Round, Window::All, asks(&["1"]))
            .turn(vec![Message::user("Refund me.")])
            .await;
        let memory = ChatMemoryAdvisor::new(Arc::clone(&store));
        let hanging = || Answer::new().text("No").hang();
        let client = ChatClient::builder(ScriptedModel::new([hanging(), hanging()]))
            .advisor(memory.clone())
            .build()
            .unwrap();
        let undone = async |branch: Option<ForkPoint>| {
            let prompt = client.prompt().conversation(key()).messages([paid("1")]).on_drop(OnDrop::Rollback);
            let prompt = branch.into_iter().fold(prompt, |prompt, branch| prompt.extension(branch));
            let mut turn = prompt.stream();
            while turn.next().await.unwrap().unwrap().text() != Some("No") {}
            drop(turn);
            memory.close_unfinished().await.unwrap();
        };
        undone(None).await;
        let open = memory.client_side_calls(&key()).await.unwrap().swap_remove(0);
        let start = CallStart::new(open.key.unwrap(), open.call.id);
        memory.record_call_start(&key(), &start).await.unwrap();
        let older = store.branches(&key()).await.unwrap()[0];
        undone(Some(ForkPoint::After(older))).await;
        let again = memory.record_call_start(&key(), &start).await;
        assert_eq!(kind(again), Some(ErrorKind::CallAlreadyStarted));
    }
}

#[tokio::test]
async fn law_t2_cut_off_call_is_not_client_side() {
    let store: Arc<dyn ConversationStore> = Arc::new(InMemoryStore::new());
    let memory = ChatMemoryAdvisor::new(Arc::clone(&store));
    let cut = ToolCallDelta::start(0, "1", "refund").with_arguments("{\"sum\":");
    let model = ScriptedModel::new([Answer::new().delta(Delta::tool_call(cut)).text("stop").hang()]);
    let budget = from_fn("budget", |request: ChatRequest, next: AdvisorChain| async move {
        let answer = next.next_stream(request).await?;
        Ok(answer.end_when(|chunk| (chunk.text()? == "stop").then(|| FinishReason::Other("budget".into()))))
    });
    let client = ChatClient::builder(model).advisor(memory.clone()).advisor(budget).build().unwrap();
    client.prompt().user("Refund me.").conversation(key()).call().await.unwrap();
    assert!(log(&store).await.iter().any(|entry| {
        entry.kind.as_message().is_some_and(|message| message.tool_calls().any(|call| !call.complete))
    }));
    assert_eq!(memory.client_side_calls(&key()).await.unwrap(), []);
}
