//! The laws of order, in both memory placements, all streaming modes, 0 to 50 tool rounds, one and four calls.

use std::task::Poll;

use advisor_chain::Advisor;
use advisor_chain::memory::store::{Page, Snapshot};
use advisor_testkit::JournalStore;
use advisor_tests::matrix::{Case, MODES, Ran, Witness, cases};
use advisor_tests::prelude::*;
use futures::poll;

/// Runs every case and checks it; a failure names the case.
async fn for_each_case(check: impl Fn(&Case, &Ran)) {
    for case in cases() {
        let (ran, _, _) = case.run().await;
        eprintln!("{case:?}");
        check(&case, &ran);
    }
}

#[tokio::test]
async fn law_o1_each_advisor_runs_once_per_entered_round() {
    for_each_case(|case, ran| {
        let rounds = case.tool_rounds as usize + 1;
        ran.journal.assert_count("outer before", 1);
        ran.journal.assert_count("outer after ends*", 1);
        ran.journal.assert_count("inner before", rounds);
        ran.journal.assert_count("inner after ends*", rounds);
        for round in 1..=rounds {
            ran.journal.assert_count(&format!("inner after ends r{round}"), 1);
        }
        ran.journal.assert_order(&["outer before", "inner before", "model.ask r1"]);
        ran.journal.assert_happens_before("inner after ends*", "outer after begins*");
    })
    .await;
}

#[tokio::test]
async fn law_o2_user_message_is_stored_before_first_request() {
    for_each_case(|_, ran| {
        ran.journal.assert_happens_before("stored user*", "model.ask r1");
        ran.journal.assert_count("stored user*", 1);
    })
    .await;
}

#[tokio::test]
async fn law_o3_inner_round_work_precedes_tools_and_round_end() {
    for_each_case(|case, ran| {
        for round in 1..=case.tool_rounds {
            let stored = format!("stored assistant({}*", Case::call_id(round, 0));
            let after = format!("inner after ends r{round}");
            let tools = format!("tool starts r{round}c*");
            ran.journal.assert_count(&tools, case.calls);
            ran.journal.assert_happens_before(&stored, &tools);
            ran.journal.assert_happens_before(&after, &tools);
            let seen = format!("seen round r{round}");
            if ran.journal.count(&seen) > 0 {
                ran.journal.assert_happens_before(&stored, &seen);
                ran.journal.assert_happens_before(&after, &seen);
            }
        }
    })
    .await;
}

#[tokio::test]
async fn law_o4_results_are_stored_in_order_before_next_request() {
    for_each_case(|case, ran| {
        for round in 1..=case.tool_rounds {
            let results: Vec<_> =
                (0..case.calls).map(|call| format!("result({})", Case::call_id(round, call))).collect();
            let stored = format!("stored {}", results.join(" "));
            ran.journal.assert_count(&stored, 1);
            ran.journal.assert_happens_before(&stored, &format!("model.ask r{}", round + 1));
            ran.journal.assert_happens_before(&format!("tool ends r{round}c*"), &stored);
        }
    })
    .await;
}

#[tokio::test]
async fn law_o6_the_last_append_precedes_completed() {
    for_each_case(|_, ran| {
        ran.journal.assert_count("stored assistant() end", 1);
        ran.journal.assert_happens_before("stored*", "seen completed");
        ran.journal.assert_happens_before("outer after ends*", "seen completed");
    })
    .await;
}

/// A store that keeps the end of a turn waiting at a gate.
struct SlowEnd {
    inner: InMemoryStore,
    gate: Gate,
}

#[async_trait]
impl ConversationStore for SlowEnd {
    async fn load(&self, key: &ConversationKey, range: ReadRange) -> Result<Snapshot, StoreError> {
        self.inner.load(key, range).await
    }

    async fn read(
        &self,
        key: &ConversationKey,
        after: EntryId,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        self.inner.read(key, after, limit).await
    }

    async fn append(&self, key: &ConversationKey, at: Version, batch: Batch) -> Result<Version, StoreError> {
        if batch.entries.iter().any(|entry| matches!(entry.kind, EntryKind::TurnEnded(_))) {
            self.gate.pass().await;
        }
        self.inner.append(key, at, batch).await
    }

    async fn delete(&self, key: &ConversationKey) -> Result<(), StoreError> {
        self.inner.delete(key).await
    }

    async fn list(&self, page: &Page) -> Result<Vec<ConversationKey>, StoreError> {
        self.inner.list(page).await
    }
}

#[tokio::test]
async fn law_o6_completed_waits_for_the_last_append() {
    for memory in [Phase::Round, Phase::Turn] {
        for mode in MODES {
            let gate = Gate::new();
            let store = SlowEnd { inner: InMemoryStore::new(), gate: gate.clone() };
            let client = ChatClient::builder(ScriptedModel::new([Answer::from_text("Done.")]))
                .advisor(ToolCallAdvisor::builder().streaming(mode).build().unwrap())
                .advisor_in(memory, ChatMemoryAdvisor::new(store))
                .build()
                .unwrap();
            let mut turn = client.prompt().user("go").conversation("c").stream();
            while let Poll::Ready(item) = poll!(turn.next()) {
                let chunk = item.expect("the turn goes on").unwrap();
                assert!(chunk.completed().is_none(), "{memory:?} {mode:?}: the end is not stored yet");
            }
            assert!(gate.is_reached());
            gate.release();
            turn.call().await.unwrap();
        }
    }
}

/// Fails in `after` of one round.
struct FailingAfter(u32);

impl AdvisorInfo for FailingAfter {
    fn name(&self) -> &str {
        "failing"
    }

    fn placement(&self) -> Placement {
        Placement::new(Phase::Round)
    }
}

#[async_trait]
impl Advisor for FailingAfter {
    type State = ();

    async fn before(&self, request: ChatRequest) -> Result<(ChatRequest, ())> {
        Ok((request, ()))
    }

    async fn after(&self, (): (), response: &ChatResponse) -> Result<()> {
        if response.round() == self.0 {
            return Err(Error::new(ErrorKind::Advisor, "after failed"));
        }
        Ok(())
    }
}

#[tokio::test]
async fn law_o5_failing_after_runs_no_tool_and_answers_calls() {
    for memory in [Phase::Round, Phase::Turn] {
        for mode in MODES {
            for failing_round in [1, 2] {
                let journal = Journal::new();
                let model = ScriptedModel::new([
                    Answer::from_calls([("a", "work", "{}"), ("b", "work", "{}")]),
                    Answer::from_calls([("c", "work", "{}")]),
                    Answer::from_text("never"),
                ])
                .with_journal(&journal);
                let store = Arc::new(JournalStore::new(InMemoryStore::new(), &journal));
                let client = ChatClient::builder(model.clone())
                    .advisor(FailingAfter(failing_round))
                    .advisor_in(memory, ChatMemoryAdvisor::new(Arc::clone(&store)))
                    .advisor(Witness::new("inner", Phase::ModelCall, &journal))
                    .advisor(ToolCallAdvisor::builder().streaming(mode).build().unwrap())
                    .tool(journalling_tool(&journal))
                    .build()
                    .unwrap();
                let error = client.prompt().user("go").conversation("c").call().await.unwrap_err();
                eprintln!("{memory:?} {mode:?} round {failing_round}");
                assert_eq!(error.to_string(), "after failed");
                assert_eq!(model.calls(), failing_round as usize, "no further round");
                let ran = if failing_round == 1 { 0 } else { 2 };
                journal.assert_count("tool*", ran);
                // The stored entries are a valid conversation, and the next turn works.
                let key = ConversationKey::new("c").unwrap();
                let memory = ChatMemoryAdvisor::new(Arc::clone(&store));
                let transcript = memory.transcript(&key).await.unwrap();
                assert_eq!(validate_transcript(&transcript), []);
                let log = store.log(&key).await.unwrap();
                for call in log.iter().flat_map(Message::tool_calls) {
                    let results = log.iter().filter_map(Message::tool_result);
                    assert_eq!(results.filter(|result| result.call_id == call.id).count(), 1, "{}", call.id);
                }
            }
        }
    }
}

fn journalling_tool(journal: &Journal) -> FnTool {
    let journal = journal.clone();
    FnTool::new(
        ToolDefinition::new("work", "Works.", serde_json::json!({"type": "object"})),
        move |_: Value| {
            journal.record("tool ran");
            async { Ok("done") }
        },
    )
}

#[tokio::test]
async fn law_o5_failing_recorder_stops_turn_before_any_tool() {
    struct Refusing;
    #[async_trait]
    impl TurnRecorder for Refusing {
        async fn record(&self, record: &Record) -> Result<()> {
            match record.step {
                Step::Answer => Err(Error::new(ErrorKind::NotPersisted, "refused")),
                _ => Ok(()),
            }
        }
    }
    let journal = Journal::new();
    let model = ScriptedModel::new([Answer::from_calls([("a", "work", "{}")]), Answer::from_text("never")]);
    let registering = from_fn("registering", |request: ChatRequest, next: AdvisorChain| async move {
        request.turn.add_recorder(Arc::new(Refusing));
        next.next_stream(request).await
    });
    let client = ChatClient::builder(model.clone())
        .advisor(registering)
        .advisor(ToolCallAdvisor::new())
        .tool(journalling_tool(&journal))
        .build()
        .unwrap();
    let error = client.prompt().user("go").call().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotPersisted);
    assert_eq!(model.calls(), 1);
    journal.assert_count("tool ran", 0);
}

#[tokio::test]
async fn law_s6_folded_chunks_equal_call_result_and_memory() {
    for case in cases() {
        let (streamed, fold, from_stream) = case.run().await;
        let called = case.prepare();
        let from_call = called.client.prompt().user("Please work.").conversation("c").call().await.unwrap();
        eprintln!("{case:?}");
        let blocks: Vec<_> = from_call.blocks().map(|(id, block)| (id, block.clone())).collect();
        assert_eq!(fold.blocks(from_call.round()), blocks, "the deltas, not the completion, make the answer");
        assert_eq!(from_stream, *from_call);
        assert_eq!(streamed.transcript().await, called.transcript().await);
        let hooks = |ran: &Ran| {
            ran.journal.labels().into_iter().filter(|label| !label.starts_with("seen")).collect::<Vec<_>>()
        };
        assert_eq!(hooks(&streamed), hooks(&called), "the same hooks at the same times");
    }
}

#[tokio::test]
async fn recorded_end_names_how_the_turn_ended() {
    let case = Case { memory: Phase::Round, mode: MODES[0], tool_rounds: 1, calls: 1 };
    let (ran, _, response) = case.run().await;
    assert_eq!(response.transcript().len(), 4);
    let snapshot = ConversationStore::load(&*ran.store, &ran.key, ReadRange::All).await.unwrap();
    let ends: Vec<_> = snapshot
        .entries
        .iter()
        .filter_map(|entry| match &entry.kind {
            EntryKind::TurnEnded(end) => Some(end.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(ends, [TurnEnd::Completed(FinishReason::Stop)]);
}
