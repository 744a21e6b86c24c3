//! Answers that call client-side tools beside tools of the loop: the loop runs its own calls and leaves the others.

use advisor_chain::tools::ToolCallStreaming::{All, FinalAnswerOnly, TextOnly};
use advisor_chain::tools::{ToolBatch, ToolExecution};
use advisor_tests::prelude::*;

use crate::tool_loop::support::*;

/// An answer that calls `look`, which the loop runs, beside `sign`, which the caller runs.
fn mixed() -> Answer {
    Answer::from_calls([("c1", "look", "{}"), ("c2", "sign", "{}"), ("c3", "look", "{\"a\":1}")])
}

fn model() -> ScriptedModel {
    ScriptedModel::new([mixed(), Answer::from_text("Signed.")])
}

fn with_sign(model: &ScriptedModel, advisor: ToolCallAdvisor) -> ChatClientBuilder {
    client(model, advisor).tool(ClientSideTool::new(definition("sign")))
}

fn open_ids(response: &ChatResponse) -> Vec<&str> {
    response.open_calls().map(|(_, call)| call.id.as_str()).collect()
}

#[tokio::test]
async fn law_o4_results_beside_client_side_calls_are_recorded() {
    for mode in [TextOnly, FinalAnswerOnly, All] {
        let (model, ledger) = (model(), Ledger::default());
        let (look, given) = invoked("look");
        let run = go(with_sign(&model, streaming(mode)).advisor(ledger.clone()).tool(look)).await;
        let first = run.response();
        assert_eq!((model.calls(), given.lock().unwrap().len()), (1, 2), "{mode:?}");
        assert_eq!(first.finish.reason, FinishReason::ToolCalls);
        assert_eq!(open_ids(first), ["c2"]);
        let lines = transcript_lines(&first.transcript);
        let calls = ["user: go", "call c1 look {}", "call c2 sign {}", "call c3 look {\"a\":1}"];
        assert_eq!(lines, [&calls[..], &["result c1: ok", "result c3: ok"]].concat());
        assert_eq!(transcript_lines(&ledger.transcript()), lines);
        assert_eq!(ledger.steps(), ["answer", "results", "end"]);
        assert_eq!(ledger.end(), Some(TurnEnd::Completed(FinishReason::ToolCalls)));
    }
}

#[tokio::test]
async fn results_of_the_caller_continue_a_mixed_round() {
    let model = model();
    let client = with_sign(&model, ToolCallAdvisor::new()).tool(tool("look", "sunny")).build().unwrap();
    let first = client.prompt().user("go").call().await.unwrap();
    let signed =
        first.open_calls().map(|(_, call)| Message::tool(ToolResult::new(call, vec!["here".into()])));
    let prompt = client.prompt().messages(first.transcript.iter().cloned()).messages(signed);
    assert_eq!(prompt.call().await.unwrap().text(), "Signed.");
    let sent = transcript_lines(&model.prompts()[1].messages);
    assert_eq!(sent[4..], ["result c1: sunny", "result c2: here", "result c3: sunny"], "in call order");
    assert_valid(&model.prompts()[1].messages.iter().cloned().collect());
}

/// The limit of rounds denies no call, since no round follows. The other limits do.
#[tokio::test]
async fn law_t3_limits_hold_beside_client_side_calls() {
    let at_once = ToolLimits { rounds: Some(1), ..ToolLimits::default() };
    let one = ToolLimits { calls: Some(1), ..ToolLimits::default() };
    for (limits, ran) in [(at_once, 2), (one, 1)] {
        let model = model();
        let (look, given) = invoked("look");
        let client = with_sign(&model, limited(limits)).tool(look).build().unwrap();
        let response = read(client.prompt().user("go").stream()).await.response().clone();
        assert_eq!(
            (response.finish.reason.clone(), given.lock().unwrap().len()),
            (FinishReason::ToolCalls, ran)
        );
        assert_eq!(open_ids(&response), ["c2"]);
        let denied =
            transcript_lines(&response.transcript).into_iter().filter(|line| line.contains("not started"));
        assert_eq!(denied.count(), 2 - ran);
    }
}

/// A result for an id goes to its first call without one, so the later call must not have its result first.
#[tokio::test]
async fn law_t6_repeated_id_of_client_side_call_runs_nothing() {
    for (tools, open, ran) in [(["sign", "look"], vec!["c1", "c1"], 0), (["look", "sign"], vec!["c1"], 1)] {
        // An answer of an advisor: the ids of a model's answer are unique.
        let repeats = from_fn("repeats", move |request: ChatRequest, _: AdvisorChain| async move {
            let calls = tools.map(|tool| ToolCall::new("c1", tool, "{}").into());
            let answer = Message::assistant_blocks(calls.to_vec());
            Ok(request.answer(ChatResponse::new(request.round, answer, FinishReason::ToolCalls)))
        });
        let repeats = repeats.with_placement(Placement::new(Phase::ModelCall));
        let (look, given) = invoked("look");
        let client = with_sign(&ScriptedModel::new([]), ToolCallAdvisor::new()).advisor(repeats).tool(look);
        let stream = client.build().unwrap().prompt().user("go").stream();
        let response = read(stream).await.response().clone();
        assert_eq!((open_ids(&response), given.lock().unwrap().len()), (open, ran), "{tools:?}");
    }
}

/// The results of a return-direct tool are not the answer while the caller's are missing.
#[tokio::test]
async fn return_direct_beside_client_side_call_waits() {
    let model = ScriptedModel::new([Answer::from_calls([("c1", "direct", "{}"), ("c2", "sign", "{}")])]);
    let direct = ToolDefinition { return_direct: true, ..definition("direct") };
    let direct = FnTool::new(direct, |_: Value| async { Ok("to the user") });
    let response = response_of(with_sign(&model, ToolCallAdvisor::new()).tool(direct)).await;
    assert_eq!((response.finish.reason.clone(), open_ids(&response)), (FinishReason::ToolCalls, vec!["c2"]));
}

/// An approval: calls that are not eligible wait, the others run.
#[tokio::test]
async fn ineligible_call_waits_beside_eligible_ones() {
    let model = ScriptedModel::new([Answer::from_calls([("c1", "look", "{}"), ("c2", "pay", "{}")])]);
    let (pay, paid) = invoked("pay");
    let (look, looked) = invoked("look");
    let advisor = ToolCallAdvisor::builder().eligible(|call| call.name != "pay").build().unwrap();
    let client = client(&model, advisor.clone()).tool(look).tool(pay).build().unwrap();
    let response = client.prompt().user("go").call().await.unwrap();
    assert_eq!((looked.lock().unwrap().len(), paid.lock().unwrap().len()), (1, 0));
    assert_eq!(open_ids(&response), ["c2"]);
}

/// The turn fails before the caller gets its calls, so they are answered like the others.
#[tokio::test]
async fn law_o5_client_side_call_of_failed_turn_is_answered() {
    struct Broken;
    #[async_trait]
    impl ToolExecution for Broken {
        async fn execute(&self, _batch: ToolBatch) -> Result<Vec<ToolResult>> {
            Err(Error::new(ErrorKind::Tool, "broken"))
        }
    }
    let (model, ledger) = (model(), Ledger::default());
    let advisor = ToolCallAdvisor::builder().execution(Broken).build().unwrap();
    let run = go(with_sign(&model, advisor).advisor(ledger.clone()).tool(tool("look", "sunny"))).await;
    assert_eq!(run.error().kind(), ErrorKind::Tool);
    assert_valid(&ledger.transcript());
    assert!(transcript_lines(&ledger.transcript())[5].starts_with("error c2: not started"));
}

/// The turn's time runs out while the loop's tools run: their calls get errors, the caller's stay open.
#[tokio::test(start_paused = true)]
async fn law_t3_late_tools_leave_client_side_call_open() {
    let second = Duration::from_secs(1);
    let slow = FnTool::new(definition("look"), move |_: Value| async move {
        tokio::time::sleep(9 * second).await;
        Ok("late")
    });
    let limits = ToolLimits { turn_timeout: Some(5 * second), ..ToolLimits::default() };
    let response = response_of(with_sign(&model(), limited(limits)).tool(slow)).await;
    assert_eq!(open_ids(&response), ["c2"]);
    assert_eq!(response.finish.reason, FinishReason::ToolCalls);
    assert_eq!(
        response.transcript.iter().filter_map(Message::tool_result).filter(|result| result.is_error).count(),
        2
    );
}
