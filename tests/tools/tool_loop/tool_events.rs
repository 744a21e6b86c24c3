//! Tests of the events that observers of tools receive.

use advisor_chain::tools::{ToolBatch, ToolExecution};
use advisor_tests::prelude::*;

use crate::tool_loop::support::*;

/// A call that cannot run is reported before any tool of its round starts, in call order. A hanging tool does
/// not delay this report.
#[tokio::test]
async fn unrunnable_calls_are_reported_before_any_tool_starts() {
    let model = ScriptedModel::new([Answer::from_calls([
        ("c1", "look", "{}"),
        ("c2", "nonesuch", "{}"),
        ("c3", "look", "{"),
    ])]);
    let hanging = FnTool::new(definition("look"), |_: Value| async {
        std::future::pending::<()>().await;
        Ok("never")
    });
    let client = client(&model, streaming(ToolCallStreaming::All)).tool(hanging).build().unwrap();
    let lines = Reader::new(client.prompt().user("go").stream()).so_far().await;
    let events: Vec<_> = lines.iter().filter_map(|line| line.strip_prefix("tool ")).collect();
    let [unknown, malformed, started] = events[..] else { panic!("{events:?}") };
    assert!(unknown.starts_with("c2 unknown_tool: there is no tool"), "{unknown}");
    assert!(malformed.starts_with("c3 invalid_arguments: not started"), "{malformed}");
    assert_eq!(started, "c1 started {}");
}

/// The events of tools, each without its text: `c1 started`, `c1 limit`.
fn events(run: &Run) -> Vec<String> {
    let words = |line: String| {
        let words = line.strip_prefix("tool ")?.split([' ', ':']).take(2);
        Some(words.collect::<Vec<_>>().join(" "))
    };
    run.lines().into_iter().filter_map(words).collect()
}

/// Changes the calls of each answer, or leaves them out and ends the turn.
#[derive(Clone, Copy)]
enum Steering {
    Incomplete,
    LeftOut,
}

#[async_trait]
impl LoopHooks for Steering {
    async fn after_round(&self, response: ChatResponse, _round: u32) -> Result<ChatResponse> {
        let mut calls: Vec<_> = response.tool_calls().map(|(id, call)| (id, call.clone())).collect();
        match self {
            Self::Incomplete => calls.iter_mut().for_each(|(_, call)| call.complete = false),
            Self::LeftOut => calls.clear(),
        }
        Ok(response.with_blocks(calls.into_iter().map(|(id, call)| (id, call.into()))))
    }
}

async fn turn(answer: Answer, advisor: ToolCallAdvisor) -> Run {
    let model = ScriptedModel::new([answer, Answer::from_text("Done.")]);
    let client = client(&model, advisor);
    let client = client.tool(tool("look", "sunny")).tool(tool("delete", "gone")).build().unwrap();
    read(client.prompt().user("go").stream()).await
}

#[tokio::test]
async fn law_t2_call_that_never_starts_has_no_started_event() {
    let all = || ToolCallAdvisor::builder().streaming(ToolCallStreaming::All);
    let limited = |limits: ToolLimits| all().limits(limits).build().unwrap();
    let steered = |steering: Steering| all().hooks(steering).build().unwrap();
    let called = |name, arguments| Answer::from_calls([("c1", name, arguments)]);
    let look = || called("look", "{}");
    let limits = ToolLimits::default;
    let goes_on = ToolLimits { calls: Some(0), on_limit: OnLimit::TellModel, ..limits() };
    let cut_off = Answer::new().call("c1", "look", "{}").finish(FinishReason::Length);
    let table = [
        (called("nonesuch", "{}"), all().build().unwrap(), "c1 unknown_tool"),
        (called("look", "{"), all().build().unwrap(), "c1 invalid_arguments"),
        (called("look", "[]"), all().build().unwrap(), "c1 invalid_arguments"),
        (look(), steered(Steering::Incomplete), "c1 incomplete_call"),
        (look(), steered(Steering::LeftOut), "c1 denied"),
        (called("delete", "{}"), all().hooks(Denying).build().unwrap(), "c1 denied"),
        (look(), limited(ToolLimits { calls: Some(0), ..limits() }), "c1 limit"),
        (look(), limited(goes_on), "c1 limit"),
        (
            look(),
            limited(ToolLimits { tools: BTreeMap::from([("look".into(), Some(0))]), ..limits() }),
            "c1 limit",
        ),
        (look(), limited(ToolLimits { rounds: Some(1), ..limits() }), "c1 limit"),
        (cut_off, all().build().unwrap(), "c1 answer_cut_off"),
        (look(), all().build().unwrap(), "c1 started"),
    ];
    for (answer, advisor, expected) in table {
        let run = turn(answer, advisor).await;
        let expected = if expected == "c1 started" { vec![expected, "c1 finished"] } else { vec![expected] };
        assert_eq!(events(&run), expected);
        let answered = run.response().transcript.iter().filter_map(Message::tool_result);
        let told = run.chunks.iter().filter_map(|chunk| match chunk {
            Chunk::Tool(event) => event.result(),
            _ => None,
        });
        assert!(told.eq(answered), "the event has the result that the model reads: {:?}", run.lines());
    }
}

#[tokio::test]
async fn law_t2_t5_call_started_before_has_no_started_event() {
    let charge = ToolDefinition { effect: Some(Effect::AtMostOnce), ..definition("charge") };
    let charge = FnTool::new(charge, |_: Value| async { Ok("charged") });
    let model =
        ScriptedModel::new([Answer::from_calls([("c1", "charge", "{}")]), Answer::from_text("I see.")]);
    let client = client(&model, streaming(ToolCallStreaming::All)).tool(charge).build().unwrap();
    let stream = client.prompt().user("go").stream();
    let key = CallKey::new(stream.turn().id().clone(), 1, 0);
    stream.turn().facts(|facts| facts.started.insert(key));
    assert_eq!(events(&read(stream).await), ["c1 already_started"]);
}

/// Wherever a turn fails, a call that was shown has an end, and one that did not start has no start.
#[tokio::test]
async fn law_t2_o5_shown_call_ends_once_in_any_failure() {
    let ran: &[&str] = &["c1 started", "c1 finished"];
    let not_run: &[&str] = &["c1 turn_failed"];
    for (stages, expected) in [
        (["before_round 1", "before 1", "open 1", "text 1"].as_slice(), &[][..]),
        (&["arguments 1", "after 1", "after_round 1", "record answer 1"], not_run),
        (&["record results 1", "next_messages 1", "open 2", "text 2", "record end 2", "outer after 1"], ran),
    ] {
        for stage in stages {
            let run = read(staged_in(ToolCallStreaming::All, &Stages::failing_at(stage)).turn).await;
            assert_eq!(run.error().kind(), ErrorKind::Advisor, "{stage}");
            assert_eq!(events(&run), expected, "{stage}");
        }
    }
}

/// An advisor reads a first answer to its end and fails. The loop has not begun, and the call still has its event.
#[tokio::test]
async fn law_t2_call_of_swallowed_first_answer_has_its_event() {
    let swallow = |request: ChatRequest, next: AdvisorChain| async move {
        let answer = next.next_call(request).await?;
        Err(Error::new(ErrorKind::Advisor, "the answer was not wanted").or_partial(answer))
    };
    let model = ScriptedModel::new([Answer::from_calls([("c1", "look", "{}")])]);
    let run = go(client(&model, streaming(ToolCallStreaming::All))
        .advisor_in(Phase::Round, from_fn("swallow", swallow))
        .tool(tool("look", "sunny")))
    .await;
    assert_eq!((run.error().kind(), events(&run)), (ErrorKind::Advisor, vec!["c1 turn_failed".into()]));
}

/// The events of unrun calls come out although the end of the turn cannot be recorded.
#[tokio::test]
async fn law_t2_o5_unrun_call_ends_once_if_end_is_unrecorded() {
    let add = |client: ChatClientBuilder| {
        client.advisor(Ledger::at(&Stages::failing_at("record end 2"))).tool(tool("look", "sunny"))
    };
    let model = ScriptedModel::new([Answer::new().call("c1", "look", "{}").finish(FinishReason::Length)]);
    let run = go(add(client(&model, streaming(ToolCallStreaming::All)))).await;
    assert_eq!((run.error().kind(), events(&run)), (ErrorKind::Advisor, vec!["c1 answer_cut_off".into()]));
    let history = run.error().history().unwrap();
    assert_eq!(history.iter().filter(|message| message.tool_result().is_some()).count(), 1);
}

/// An execution that reports nothing, or the wrong things.
struct Careless(fn(&ToolBatch) -> Result<Vec<ToolResult>>);

#[async_trait]
impl ToolExecution for Careless {
    async fn execute(&self, batch: ToolBatch) -> Result<Vec<ToolResult>> {
        let results = (self.0)(&batch);
        if let (Ok(results), [_, second, third]) = (&results, &batch.calls[..]) {
            batch.events.finished(second, &results[1]).await;
            batch.events.started(second).await;
            batch.events.finished(third, &results[2]).await;
            batch.events.progress(third, "too late".into()).await;
        }
        Ok(results?)
    }
}

#[tokio::test]
async fn law_t2_replaced_execution_ends_each_call_once() {
    type Execute = fn(&ToolBatch) -> Result<Vec<ToolResult>>;
    let dry: Execute = |batch| {
        let error = |call: &advisor_chain::tools::ReadyCall| ToolResult::error(&call.call, "dry run");
        Ok(batch.calls.iter().map(error).collect())
    };
    let fails: Execute = |_| Err(Error::new(ErrorKind::Tool, "the engine is down"));
    let whole = ["c1 started", "c1 failed", "c2 started", "c2 failed"];
    for (execute, ends, expected) in [
        (
            dry,
            None,
            ["c2 started", "c2 failed", "c3 started", "c3 failed", "c1 started", "c1 failed"].to_vec(),
        ),
        (fails, Some(ErrorKind::Tool), [&whole[..], &["c3 started", "c3 failed"]].concat()),
    ] {
        let advisor =
            ToolCallAdvisor::builder().streaming(ToolCallStreaming::All).execution(Careless(execute));
        let answer = Answer::from_calls(["c1", "c2", "c3"].map(|id| (id, "look", "{}")));
        let run = turn(answer, advisor.build().unwrap()).await;
        assert_eq!(events(&run), expected);
        assert_eq!(run.outcome.as_ref().err().map(Error::kind), ends);
    }
}
