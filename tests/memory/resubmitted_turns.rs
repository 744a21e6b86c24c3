//! Tests of turns that are submitted again, in whole chains. No part of them runs unrecorded, and entries of
//! the first run do not disturb the second.

use std::sync::atomic::AtomicBool;

use advisor_chain::chain::Spawner;
use advisor_chain::memory::MemoryReceipt;
use advisor_testkit::StreamValidator;
use advisor_tests::prelude::*;
use advisor_tests::tools::{definition, tool};
use futures::future::BoxFuture;

/// Work that waits until the test runs it.
#[derive(Clone, Default)]
struct Later(Arc<Mutex<Vec<BoxFuture<'static, ()>>>>);

impl Later {
    fn spawner(&self) -> Spawner {
        let work = Arc::clone(&self.0);
        Spawner::new(move |new| work.lock().unwrap().push(new))
    }

    /// Gives how much there was.
    async fn run(&self) -> usize {
        let work = std::mem::take(&mut *self.0.lock().unwrap());
        futures::future::join_all(work).await.len()
    }
}

fn once(client: &ChatClient, user: &str) -> TurnStream {
    client.prompt().user(user).conversation("c").turn(TurnId::new("once").unwrap()).stream()
}

/// Reads until this text has been shown, and drops the turn.
async fn cut(mut turn: TurnStream, text: &str) {
    let mut shown = String::new();
    while shown != text {
        shown.push_str(turn.next().await.unwrap().unwrap().text().unwrap_or_default());
    }
}

/// A tool during which the rest of an earlier run is executed.
fn tool_that_runs(later: &Later) -> FnTool {
    let later = later.clone();
    FnTool::new(definition("f"), move |_: Value| {
        let later = later.clone();
        async move {
            assert_eq!(later.run().await, 1);
            Ok("done")
        }
    })
}

/// The texts of the messages in a log, and `.` for the end of a turn.
async fn log(store: &InMemoryStore) -> Vec<String> {
    let key = ConversationKey::new("c").unwrap();
    let entries = store.load(&key, ReadRange::All).await.unwrap().entries;
    entries
        .iter()
        .map(|entry| match &entry.kind {
            EntryKind::Message(message) => match message.tool_result() {
                Some(result) => result.text(),
                None => message.text(),
            },
            EntryKind::CallPending(_) => String::from("pending"),
            _ => String::from("."),
        })
        .collect()
}

#[tokio::test]
async fn law_k4_closing_dropped_run_leaves_continuing_run_open() {
    let store = InMemoryStore::new();
    let later = Later::default();
    let model = ScriptedModel::new([
        Answer::new().text("so f").hang(),
        Answer::from_calls([("1", "f", "{}")]),
        Answer::from_text("yes"),
    ]);
    let client = ChatClient::builder(model)
        .advisor(ToolCallAdvisor::new())
        .advisor(ChatMemoryAdvisor::new(store.clone()))
        .tool(tool_that_runs(&later))
        .spawner(later.spawner())
        .build()
        .unwrap();
    cut(once(&client, "q"), "so f").await;
    assert_eq!(once(&client, "q").call().await.unwrap().text(), "yes");
    assert_eq!(log(&store).await, ["q", ".", "", "done", "yes", "."]);
}

/// What a reader of a turn that is submitted again sees is what is stored, in each mode and place of memory.
#[tokio::test]
async fn resubmitted_turn_shows_what_is_stored_before_the_rest() {
    for (mode, place) in MODES.into_iter().flat_map(|mode| PLACES.map(|place| (mode, place))) {
        let store = InMemoryStore::new();
        let client = |answers: Vec<Answer>| {
            ChatClient::builder(ScriptedModel::new(answers))
                .advisor(ToolCallAdvisor::builder().streaming(mode).build().unwrap())
                .advisor_in(place, ChatMemoryAdvisor::new(store.clone()))
                .tool(tool("f", "done"))
                .build()
                .unwrap()
        };
        let calling = Answer::new().text("Let me look.").call("1", "f", "{}").finish(FinishReason::ToolCalls);
        let mut first = once(&client(vec![calling, Answer::new().text("so f").hang()]), "q");
        if mode == ToolCallStreaming::FinalAnswerOnly {
            // It shows nothing before the end, so it is read until the second request is pending.
            assert!(futures::poll!(first.next()).is_pending());
        } else {
            while first.next().await.unwrap().unwrap().text() != Some("so f") {}
        }
        drop(first);

        let again: Vec<_> = once(&client(vec![Answer::from_text("Fine.")]), "q").try_collect().await.unwrap();
        let mut validator = StreamValidator::new();
        again.iter().for_each(|chunk| validator.push(chunk).unwrap());
        let texts = again.iter().filter_map(Chunk::text).collect::<Vec<_>>().concat();
        let stored = log(&store).await.concat();
        match mode {
            ToolCallStreaming::FinalAnswerOnly => assert_eq!(texts, "Fine."),
            _ => assert_eq!(texts, "Let me look.Fine.", "{mode:?} {place}: {stored}"),
        }
        let rounds = again.iter().filter(|chunk| matches!(chunk, Chunk::RoundCompleted(_))).count();
        assert_eq!(rounds, usize::from(mode != ToolCallStreaming::FinalAnswerOnly));
        let events = again.iter().filter(|chunk| matches!(chunk, Chunk::Tool(_))).count();
        assert_eq!(events, if mode == ToolCallStreaming::All { 2 } else { 0 });
    }
}

#[tokio::test]
async fn law_t5_resubmission_does_not_run_calls_left_to_caller() {
    for place in [Phase::Turn, Phase::Round] {
        let store = InMemoryStore::new();
        let (ran, approved) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (counted, may) = (Arc::clone(&ran), Arc::clone(&approved));
        let charge = ToolDefinition { effect: Some(Effect::AtMostOnce), ..definition("charge") };
        let charge = FnTool::new(charge, move |_: Value| {
            counted.fetch_add(1, Ordering::Relaxed);
            async { Ok("charged") }
        });
        let agent = ToolCallAdvisor::builder().eligible(move |_| may.load(Ordering::Relaxed));
        let model = ScriptedModel::new([Answer::from_calls([("1", "charge", "{}")])]);
        let client = ChatClient::builder(model)
            .advisor(agent.build().unwrap())
            .advisor_in(place, ChatMemoryAdvisor::new(store.clone()))
            .tool(charge)
            .build()
            .unwrap();
        assert_eq!(once(&client, "pay").call().await.unwrap().tool_calls().count(), 1, "client-side");
        approved.store(true, Ordering::Relaxed);
        let again = once(&client, "pay").call().await.unwrap();
        assert_eq!(again.open_calls().count(), 1, "client-side again");
        assert_eq!(ran.load(Ordering::Relaxed), 0, "{place:?}");
        assert_eq!(log(&store).await, ["pay", "", "pending", "."]);
    }
}

/// Returns the rounds in which the model was asked by a turn that stopped in its second round and continued.
async fn rounds_of_a_turn_that_goes_on(store: InMemoryStore, place: Phase) -> Vec<u32> {
    let model = ScriptedModel::new([
        Answer::from_calls([("1", "f", "{}")]),
        Answer::new().text("so f").hang(),
        Answer::from_calls([("1", "f", "{}")]),
        Answer::from_text("yes"),
    ]);
    let client = ChatClient::builder(model.clone())
        .advisor(ToolCallAdvisor::new())
        .advisor_in(place, ChatMemoryAdvisor::new(store))
        .tool(tool("f", "done"))
        .build()
        .unwrap();
    cut(once(&client, "q"), "so f").await;
    assert_eq!(once(&client, "q").call().await.unwrap().text(), "yes");
    model.prompts().iter().map(|prompt| prompt.round).collect()
}

#[tokio::test]
async fn law_t5_continued_turn_numbers_rounds_after_stored_ones() {
    for place in [Phase::Turn, Phase::Round] {
        let store = InMemoryStore::new();
        // Round 2 was asked and not stored, so no call of it has run.
        assert_eq!(rounds_of_a_turn_that_goes_on(store.clone(), place).await, [1, 2, 2, 3], "{place:?}");
        let key = ConversationKey::new("c").unwrap();
        let entries = store.load(&key, ReadRange::All).await.unwrap().entries;
        let rounds: Vec<_> = entries.iter().map(|entry| entry.round).collect();
        let [one, two, three] = [Some(1), Some(2), Some(3)];
        // The question, an answer with its result, how it stopped, another answer with its result, the last one.
        assert_eq!(rounds, [None, one, one, None, two, two, three, None], "{place:?}");
    }
}

/// Calls of an advisor between the loop and memory do not run again when their turn is submitted again.
#[tokio::test]
async fn law_t5_resubmission_runs_no_calls_of_outer_advisor() {
    let (store, runs) = (Arc::new(InMemoryStore::new()), Arc::<AtomicUsize>::default());
    let answers = || {
        from_fn("answers", |request: ChatRequest, _: AdvisorChain| async move {
            let has_result = request.messages.iter().any(|message| message.tool_result().is_some());
            if has_result {
                return Ok(request.answer("Done."));
            }
            let calls = Message::assistant_blocks(vec![Block::from(ToolCall::new("c1", "f", "{}"))]);
            Ok(request.answer(ChatResponse::new(request.round, calls, FinishReason::ToolCalls)))
        })
        .with_placement(Placement { phase: Phase::Round, role: AdvisorRole::OutsideMemory })
    };
    for is_first in [true, false, false] {
        let counted = Arc::clone(&runs);
        let f = FnTool::new(definition("f"), move |_: Value| {
            counted.fetch_add(1, Ordering::SeqCst);
            async { Ok("done") }
        });
        let client = ChatClient::builder(ScriptedModel::new([]))
            .advisor(ToolCallAdvisor::new())
            .advisor(answers())
            .advisor(ChatMemoryAdvisor::new(Arc::clone(&store)))
            .tool(f)
            .build()
            .unwrap();
        let receipt = MemoryReceipt::default();
        let prompt = client.prompt().user("go").conversation("c").turn("once").extension(receipt.clone());
        let answer = prompt.call().await;
        assert_eq!((answer.is_ok(), runs.load(Ordering::SeqCst)), (is_first, 1));
        assert!(receipt.has_turn(), "memory has the turn by its records");
    }
    assert_eq!(log(&store).await.len(), 5);
}
