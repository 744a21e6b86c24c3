//! Tests of a hook that steers the loop after a round: the calls that run, how they run, and whether the turn
//! continues.

use advisor_chain::ToolDefinition;
use advisor_tests::prelude::*;

use crate::tool_loop::support::*;

fn hooked(hooks: impl LoopHooks) -> ToolCallAdvisor {
    ToolCallAdvisor::builder().hooks(hooks).build().unwrap()
}

type Steer = fn(ChatResponse) -> ChatResponse;

/// Steers the loop after its first round.
struct Steering(Steer);

#[async_trait]
impl LoopHooks for Steering {
    async fn after_round(&self, response: ChatResponse, round: u32) -> Result<ChatResponse> {
        Ok(if round == 1 { self.0(response) } else { response })
    }
}

/// The response without its blocks.
fn emptied(response: ChatResponse) -> ChatResponse {
    response.with_blocks([])
}

/// The response with its calls changed.
fn with_calls(response: ChatResponse, change: fn(&mut ToolCall)) -> ChatResponse {
    let blocks = response.blocks().map(|(id, block)| match block.as_tool_call() {
        Some(call) => {
            let mut call = call.clone();
            change(&mut call);
            (id, call.into())
        }
        None => (id, block.clone()),
    });
    let blocks: Vec<_> = blocks.collect();
    response.with_blocks(blocks)
}

async fn steered(steer: Steer) -> (ChatResponse, ScriptedModel, Arc<Mutex<Vec<Value>>>) {
    let model = ScriptedModel::new([
        Answer::new().text("Let me look.").call("c1", "look", "{\"a\":1}").finish(FinishReason::ToolCalls),
        Answer::from_text("Done."),
    ]);
    let (look, given) = invoked("look");
    let run =
        go(client(&model, hooked(Steering(steer))).tool(look).tool(tool("other", "from another"))).await;
    assert_valid(run.response().transcript());
    (run.response().clone(), model, given)
}

/// A hook that leaves out all calls ends the turn; they are answered, and nothing is asked any more.
#[tokio::test]
async fn a_steering_hook_can_end_the_turn() {
    let (response, model, given) =
        steered(|response| emptied(response).with_finish(FinishReason::Stop)).await;
    assert_eq!((model.calls(), given.lock().unwrap().len()), (1, 0));
    assert_eq!(response.finish().reason, FinishReason::Stop);
    assert_eq!(
        transcript_lines(response.transcript())[1..4],
        [
            "assistant: Let me look.",
            "call c1 look {\"a\":1}",
            "error c1: not started: the application ended the turn"
        ]
    );
}

/// A hook that vetoes with a custom finish reason: no call runs.
#[tokio::test]
async fn a_steering_hook_can_veto() {
    let (response, model, given) =
        steered(|response| response.with_finish(FinishReason::ContentFilter)).await;
    assert_eq!((model.calls(), given.lock().unwrap().len()), (1, 0));
    assert_eq!(response.finish().reason, FinishReason::ContentFilter);
    assert!(transcript_lines(response.transcript())[3].contains("content filter"));
}

/// A hook may change the arguments of a tool; the transcript keeps those of the model.
#[tokio::test]
async fn a_steering_hook_can_change_arguments() {
    let (response, _, given) =
        steered(|response| with_calls(response, |call| call.arguments = String::from("{\"a\":2}"))).await;
    assert_eq!(*given.lock().unwrap(), [serde_json::json!({"a": 2})]);
    assert_eq!(transcript_lines(response.transcript())[2..4], ["call c1 look {\"a\":1}", "result c1: ok"]);
}

/// A hook may send a call to another tool; its result still answers the call that the model made.
#[tokio::test]
async fn a_steering_hook_can_redirect_a_call() {
    let (response, _, given) =
        steered(|response| with_calls(response, |call| call.name = "other".into())).await;
    assert!(given.lock().unwrap().is_empty());
    let result = response.transcript().iter().find_map(|message| message.tool_result().cloned()).unwrap();
    assert_eq!((result.call_id.as_str(), result.name.as_str()), ("c1", "look"));
    assert_eq!(result.text(), "from another");
}

/// The tool to which a hook redirects a call decides whether the caller answers it.
#[tokio::test]
async fn steering_hook_can_withhold_or_return_calls() {
    let redirected: [(&str, Steer); 2] = [
        ("callers", |response| with_calls(response, |call| call.name = "look".into())),
        ("look", |response| with_calls(response, |call| call.name = "callers".into())),
    ];
    for (called, steer) in redirected {
        let model =
            ScriptedModel::new([Answer::from_calls([("c1", called, "{}")]), Answer::from_text("Done.")]);
        let (look, given) = invoked("look");
        let callers =
            ToolDefinition::new("callers", "Is run elsewhere.", serde_json::json!({"type": "object"}));
        let callers =
            FnTool::new(ToolDefinition { client_side: true, ..callers }, |_: Value| async { Ok("never") });
        let client = client(&model, hooked(Steering(steer))).tool(look).tool(callers).build().unwrap();
        let response = read(client.prompt().user("go").stream()).await.response().clone();
        let (ran, reason) = match called {
            "look" => (0, FinishReason::ToolCalls),
            _ => (1, FinishReason::Stop),
        };
        assert_eq!((given.lock().unwrap().len(), &response.finish().reason), (ran, &reason), "{called}");
    }
}

/// Calls that the model did not make do not run, since the model could not read their results.
#[tokio::test]
async fn a_steering_hook_cannot_add_calls() {
    let (response, model, given) = steered(|response| {
        let call = ToolCall::new("c9", "look", "{}");
        let mut blocks: Vec<_> = response.blocks().map(|(id, block)| (id, block.clone())).collect();
        blocks.push((BlockId::new(1, 9), call.into()));
        response.with_blocks(blocks)
    })
    .await;
    assert_eq!((model.calls(), given.lock().unwrap().len()), (2, 1));
    assert_eq!(response.transcript().len(), 4);
}

/// A hook leaves out the calls and continues: they are answered, and the model is asked again.
#[tokio::test]
async fn steering_hook_can_continue_without_the_calls() {
    let (response, model, given) =
        steered(|response| emptied(response).with_finish(FinishReason::Paused)).await;
    assert_eq!((model.calls(), given.lock().unwrap().len()), (2, 0));
    assert_eq!(response.text(), "Done.");
    let lines = transcript_lines(response.transcript());
    assert_eq!(lines[3], "error c1: not started: the application left this call out");
}

/// A hook can have the model asked again after an answer; the answer stays.
#[tokio::test]
async fn a_steering_hook_can_ask_again() {
    let model = ScriptedModel::new([Answer::from_text("First."), Answer::from_text("Second.")]);
    let run =
        go(client(&model, hooked(Steering(|response| response.with_finish(FinishReason::Paused))))).await;
    assert_eq!(run.text(), "First.Second.");
    assert_eq!(
        transcript_lines(run.response().transcript()),
        ["user: go", "assistant: First.", "assistant: Second."]
    );
}
