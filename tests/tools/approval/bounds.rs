//! The turn in which approved tools run.

use advisor_chain::tools::{ParallelTools, ToolBatch, ToolExecution};
use advisor_testkit::{Around, Asked, StoreAround, Work};
use advisor_tests::prelude::*;
use tokio::time::Instant;

use crate::approval::process::*;

/// An approved tool runs in the turn that continues: with its extensions and its conversation, within the loop's time and
/// as deep as its other tools. A denial is in the application's words.
#[tokio::test(start_paused = true)]
async fn law_t3_approved_call_has_turn_and_bounds() {
    #[derive(Clone)]
    struct User(&'static str);
    let pay = FnTool::with_invocation(definition("pay"), |call: ToolInvocation| async move {
        let user = call.turn.extensions().get::<User>().unwrap().0;
        let bounds = call.turn.facts(|facts| facts.nested_bounds).unwrap();
        assert_eq!((call.conversation.unwrap().conversation(), bounds.depth), ("c", 1));
        let left = bounds.deadline.unwrap() - Instant::now();
        if call.arguments["cents"] == 3 {
            std::future::pending::<()>().await;
        }
        Ok(ToolOutput::from(format!("{user} has {} s", left.as_secs())))
    });
    let limits = ToolLimits { turn_timeout: Some(Duration::from_secs(5)), ..ToolLimits::default() };
    let tool_loop = ToolCallAdvisor::builder().hooks(AskToPay).limits(limits);
    let model =
        ScriptedModel::new([then_done(two_payments()), then_done(two_payments())].into_iter().flatten());
    let client = ChatClient::builder(model.clone())
        .advisor(ChatMemoryAdvisor::new(InMemoryStore::new()))
        .advisor(tool_loop.build().unwrap())
        .tool(pay)
        .tool(FnTool::new(definition("look"), |_: Value| async { Ok("seen") }))
        .build()
        .unwrap();
    for (denial, expected, seconds) in [(None, "c3: stopped", 5), (Some("no"), "c3: not started: no", 0)] {
        client.prompt().user("Pay.").conversation("c").call().await.unwrap();
        let pending = client.pending_calls("c").await.unwrap();
        let second = denial.map_or_else(|| pending[1].approve(), |reason| pending[1].deny(reason));
        let begun = Instant::now();
        let resumed =
            client.prompt().conversation("c").resume([pending[0].approve().unwrap(), second.unwrap()]);
        resumed.extension(User("ann")).call().await.unwrap();
        let sent: Vec<_> = model.prompts().pop().unwrap().messages.iter().map(line).collect();
        let results = &sent[sent.len() - 3..];
        assert_eq!(results[0], "c1: ann has 5 s");
        assert!(results[2].starts_with(expected), "{results:?}");
        assert_eq!(begun.elapsed(), Duration::from_secs(seconds));
    }
}

/// A store that takes a while for each append and load.
struct Slow;

#[async_trait]
impl Around for Slow {
    async fn around(
        &self,
        asked: Asked<'_>,
        work: Work<'_>,
    ) -> std::result::Result<Option<Version>, StoreError> {
        if matches!(asked, Asked::Append(_) | Asked::Load) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        work.await
    }
}

/// Runs tools, and takes a while to return their results.
#[derive(Default)]
struct SlowExecution(ParallelTools);

#[async_trait]
impl ToolExecution for SlowExecution {
    async fn execute(&self, batch: ToolBatch) -> Result<Vec<ToolResult>> {
        let results = self.0.execute(batch).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        results
    }
}

/// At the end of the turn's time, the results of approved calls are stored: of those that ran, and of those that were
/// stopped.
#[tokio::test(start_paused = true)]
async fn law_t3_time_of_approved_calls_loses_no_result() {
    for place in PLACES {
        let store = Arc::new(StoreAround::with(Arc::new(InMemoryStore::new()), Slow));
        let pay = FnTool::new(definition("pay"), |arguments: Value| async move {
            if arguments["cents"] == 3 {
                std::future::pending::<()>().await;
            }
            Ok("paid")
        });
        let limits = ToolLimits { turn_timeout: Some(Duration::from_secs(5)), ..ToolLimits::default() };
        let tool_loop = ToolCallAdvisor::builder().hooks(AskToPay).limits(limits);
        let model = ScriptedModel::new(then_done(two_payments()).into_iter().chain(done()));
        let client = ChatClient::builder(model.clone())
            .advisor_in(place, ChatMemoryAdvisor::new(store))
            .advisor(tool_loop.execution(SlowExecution::default()).build().unwrap())
            .tool(pay)
            .tool(FnTool::new(definition("look"), |_: Value| async { Ok("seen") }))
            .build()
            .unwrap();
        client.prompt().user("Pay.").conversation("c").call().await.unwrap();
        let pending = client.pending_calls("c").await.unwrap();
        let both = pending.iter().map(|call| call.approve().unwrap());
        let resumed = client.prompt().conversation("c").resume(both).call().await.unwrap();
        assert_eq!(resumed.finish.reason, FinishReason::Limit(Limit::Time(5_000)), "{place:?}");
        client.prompt().user("And?").conversation("c").call().await.unwrap();
        let sent: Vec<_> = model.prompts().pop().unwrap().messages.iter().map(line).collect();
        assert_eq!(sent[2], "c1: paid", "{place:?}");
        assert!(sent[4].starts_with("c3: stopped"), "{place:?} {sent:?}");
    }
}

/// A process that asks before it pays, within these limits. Its tool `pay` returns the calls that are left to turns inside.
fn limited(
    place: Phase,
    store: &Arc<InMemoryStore>,
    limits: ToolLimits,
    model: &ScriptedModel,
) -> ChatClient {
    let pay = FnTool::with_invocation(definition("pay"), |call: ToolInvocation| async move {
        let bounds = call.turn.facts(|facts| facts.nested_bounds).unwrap();
        Ok(ToolOutput::from(format!("paid, {:?} left", bounds.calls)))
    });
    let tool_loop = ToolCallAdvisor::builder().hooks(AskToPay).limits(limits).build().unwrap();
    ChatClient::builder(model.clone())
        .advisor_in(place, ChatMemoryAdvisor::new(Arc::clone(store)))
        .advisor(tool_loop)
        .tool(pay)
        .tool(FnTool::new(definition("look"), |_: Value| async { Ok("seen") }))
        .build()
        .unwrap()
}

/// Decided calls are calls of the turn that continues, whether a person approves or denies them. Its model gets only what
/// they leave.
#[tokio::test]
async fn law_t3_decided_calls_count_in_their_turn() {
    let pay_again = ("c4", "pay", r#"{ "cents": 1 }"#);
    let table = [
        (
            ToolLimits { calls: Some(3), ..ToolLimits::default() },
            [("c4", "look", "{}"), ("c5", "look", "{}")],
            Limit::Calls(3),
        ),
        (
            ToolLimits { calls_per_tool: Some(2), ..ToolLimits::default() },
            [("c5", "look", "{}"), pay_again],
            Limit::CallsPerTool { tool: "pay".into(), limit: 2 },
        ),
        (
            ToolLimits { same_calls: Some(1), ..ToolLimits::default() },
            [("c5", "look", "{}"), pay_again],
            Limit::SameCall { tool: "pay".into(), limit: 1 },
        ),
    ];
    for place in PLACES {
        for (limits, calls, reached) in &table {
            let store = Arc::new(InMemoryStore::new());
            // The model is told of equal calls before they end the turn.
            let further = [Answer::from_calls(*calls), Answer::from_calls(*calls)];
            let model = ScriptedModel::new(two_payments().into_iter().chain(further));
            let client = limited(place, &store, limits.clone(), &model);
            client.prompt().user("Pay.").conversation("c").call().await.unwrap();
            let pending = client.pending_calls("c").await.unwrap();
            let decisions = [pending[0].approve().unwrap(), pending[1].deny("no").unwrap()];
            let resumed = client.prompt().conversation("c").resume(decisions).call().await.unwrap();
            assert_eq!(resumed.finish.reason, FinishReason::Limit(reached.clone()), "{place:?}");
            let lines: Vec<_> = resumed.transcript.iter().map(line).collect();
            assert!(lines.iter().any(|line| line.ends_with("seen")), "one call is left: {lines:?}");
            let left = limits.calls.map(|calls| calls - 2);
            let sent = model.prompts().pop().unwrap().messages;
            assert!(sent.iter().any(|message| message.text() == format!("paid, {left:?} left")), "{sent:?}");
        }
    }
}

/// What counts is the arguments with which approved calls run, and only of those that may run.
#[tokio::test]
async fn law_r1_values_of_approved_calls_are_bounded() {
    let note = |values: usize| json!({"cents": 1, "note": vec![0; values]});
    let arguments = note(60_000).to_string();
    let calls = ["c1", "c2"].map(|id| (id, "pay", arguments.as_str()));
    let (all, one) = (ToolLimits::default(), ToolLimits { calls: Some(1), ..ToolLimits::default() });
    for place in PLACES {
        for (limits, changed, second) in [
            (&all, note(1), "c2: paid"),
            (&all, note(100_000), "c2: not started: the arguments of the calls of an answer may have"),
            (&one, note(100_000), "c2: not started: the limit of 1 tool calls"),
        ] {
            let store = Arc::new(InMemoryStore::new());
            let model = ScriptedModel::new(then_done(vec![Answer::from_calls(calls)]));
            let asking = limited(place, &store, all.clone(), &model);
            asking.prompt().user("Pay.").conversation("c").call().await.unwrap();
            let pending = asking.pending_calls("c").await.unwrap();
            let decisions = [pending[0].approve_with(changed).unwrap(), pending[1].approve().unwrap()];
            let client = limited(place, &store, limits.clone(), &model);
            assert_eq!(
                client.prompt().conversation("c").resume(decisions).call().await.unwrap().text(),
                "Done."
            );
            let sent: Vec<_> = model.prompts().pop().unwrap().messages.iter().map(line).collect();
            assert!(sent[2].starts_with("c1: The call ran"), "{place:?}: {:.90}", sent[2]);
            assert!(sent[3].starts_with(second), "{place:?}: {:.90}", sent[3]);
        }
    }
}
