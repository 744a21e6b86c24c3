//! The laws of order, in both memory placements, all streaming modes, 0 to 50 tool rounds, one and four calls.

use std::task::Poll;

use advisor_chain::Advisor;
use advisor_testkit::{Around, Asked, JournalStore, StoreAround, Work};
use advisor_tests::matrix::{Case, Ran, Witness, cases};
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

/// Keeps the end of a turn waiting at a gate.
struct SlowEnd(Gate);

#[async_trait]
impl Around for SlowEnd {
    async fn around(&self, asked: Asked<'_>, work: Work<'_>) -> Result<Option<Version>, StoreError> {
        let ends =
            |batch: &Batch| batch.entries.iter().any(|entry| matches!(entry.kind, EntryKind::TurnEnded(_)));
        if matches!(asked, Asked::Append(batch) if ends(batch)) {
            self.0.pass().await;
        }
        work.await
    }
}

#[tokio::test]
async fn law_o6_completed_waits_for_the_last_append() {
    for memory in PLACES {
        for mode in MODES {
            let gate = Gate::new();
            let store = StoreAround::with(Arc::new(InMemoryStore::new()), SlowEnd(gate.clone()));
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
    for memory in PLACES {
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
