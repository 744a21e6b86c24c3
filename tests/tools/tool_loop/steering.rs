//! Tests of a hook that steers the loop after a round: the calls that run, how they run, and whether the turn
//! continues.

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

/// What a hook makes of the first answer: how often the model is asked, what `look` is given, the reason of the turn's end,
/// and the line of the call's result. The call stays as the model made it.
#[tokio::test]
async fn steering_hook_decides_about_the_calls() {
    let table: [(Steer, usize, &[Value], FinishReason, &str); 6] = [
        (
            |response| emptied(response).with_finish(FinishReason::Stop),
            1,
            &[],
            FinishReason::Stop,
            "error c1: not started: the application ended the turn",
        ),
        (
            |response| response.with_finish(FinishReason::ContentFilter),
            1,
            &[],
            FinishReason::ContentFilter,
            "error c1: not started: the answer was cut off (content filter)",
        ),
        (
            |response| emptied(response).with_finish(FinishReason::Paused),
            2,
            &[],
            FinishReason::Stop,
            "error c1: not started: the application left this call out",
        ),
        (
            |response| with_calls(response, |call| call.arguments = String::from("{\"a\":2}")),
            2,
            &[json!({"a": 2})],
            FinishReason::Stop,
            "result c1: ok",
        ),
        (
            |response| with_calls(response, |call| call.name = "other".into()),
            2,
            &[],
            FinishReason::Stop,
            "result c1: from another",
        ),
        // The model could not read the result of a call that it did not make.
        (
            |response| {
                let call = ToolCall::new("c9", "look", "{}");
                let mut blocks: Vec<_> = response.blocks().map(|(id, block)| (id, block.clone())).collect();
                blocks.push((BlockId::new(1, 9), call.into()));
                response.with_blocks(blocks)
            },
            2,
            &[json!({"a": 1})],
            FinishReason::Stop,
            "result c1: ok",
        ),
    ];
    for (steer, asked, arguments, reason, result) in table {
        let model = ScriptedModel::new([
            Answer::new()
                .text("Let me look.")
                .call("c1", "look", "{\"a\":1}")
                .finish(FinishReason::ToolCalls),
            Answer::from_text("Done."),
        ]);
        let (look, given) = invoked("look");
        let client = client(&model, hooked(Steering(steer))).tool(look).tool(tool("other", "from another"));
        let run = go(client).await;
        let response = run.response();
        assert_valid(&response.transcript);
        assert_eq!((model.calls(), &response.finish.reason), (asked, &reason), "{result}");
        assert_eq!(*given.lock().unwrap(), arguments, "{result}");
        let lines = transcript_lines(&response.transcript);
        assert_eq!(lines[1..4], ["assistant: Let me look.", "call c1 look {\"a\":1}", result]);
        assert_eq!(lines.len(), 5, "{lines:?}");
    }
}

/// A call that a hook left out counts for no limit.
#[tokio::test]
async fn law_t3_left_out_calls_do_not_count() {
    let model = ScriptedModel::new([
        Answer::from_calls([("c1", "look", "{}")]),
        Answer::from_calls([("c2", "look", "{}")]),
        Answer::from_text("Done."),
    ]);
    let (look, given) = invoked("look");
    let hooks = Steering(|response| emptied(response).with_finish(FinishReason::Paused));
    let limits = ToolLimits { calls: Some(1), calls_per_tool: Some(1), ..ToolLimits::default() };
    let advisor = ToolCallAdvisor::builder().hooks(hooks).limits(limits).build().unwrap();
    let run = go(client(&model, advisor).tool(look)).await;
    assert_eq!((run.response().text().as_str(), given.lock().unwrap().len()), ("Done.", 1));
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
        assert_eq!((given.lock().unwrap().len(), &response.finish.reason), (ran, &reason), "{called}");
    }
}
