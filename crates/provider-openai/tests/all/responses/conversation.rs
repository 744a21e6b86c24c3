//! Conversations over several requests.

use advisor_core::{
    ChatOptions, ChatRequest, Message, Tool, ToolDefinition, ToolError, ToolInvocation, ToolOutput,
    ToolResult, async_trait,
};
use advisor_testkit::{ReplayServer, Reply};
use provider_openai::OpenAiModel;
use serde_json::{Value, json};

use crate::responses::{call_with, completed, done, framed, hello, model, request};

struct Add(ToolDefinition);

impl Add {
    fn new() -> Self {
        Self(ToolDefinition::new("math.add", "Adds.", json!({"type": "object"})))
    }
}

#[async_trait]
impl Tool for Add {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }
    async fn run(&self, _: ToolInvocation) -> Result<ToolOutput, ToolError> {
        Ok("2".into())
    }
}

fn reasoning() -> Value {
    json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}], "encrypted_content": "secret"})
}

/// Reasoning, and a call of the tool by its name on the wire.
fn calling() -> String {
    let call = |arguments: &str| json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "math_add", "arguments": arguments});
    framed(&[
        done(0, &reasoning()),
        json!({"type": "response.output_item.added", "output_index": 1, "item": call("")}),
        json!({"type": "response.function_call_arguments.delta", "output_index": 1, "delta": "{}"}),
        done(1, &call("{}")),
        completed(),
    ])
}

/// The requests of a turn with one tool round.
async fn two_rounds(server: &ReplayServer) -> Vec<Value> {
    let model = model(server).with_api_key("sk-example");
    let question = request().with_tool(Add::new());
    let first = call_with(&model, question.clone()).await.expect("an answer");
    let (_, call) = first.tool_calls().next().expect("a call");
    assert_eq!((call.name.as_str(), call.complete), ("math.add", true), "the tool's own name");
    let result = Message::tool(ToolResult::new(call, vec!["2".into()]));
    let second = question.with_message(first.message().clone()).with_message(result);
    let answer = call_with(&model, second).await.expect("an answer");
    assert_eq!(answer.text(), "Hello there");
    server.requests().iter().map(|request| request.json().expect("JSON")).collect()
}

#[tokio::test]
async fn reasoning_and_call_go_back_with_the_result() {
    let server = ReplayServer::start([Reply::sse(calling()), Reply::sse(hello())]).await.expect("a port");
    let requests = two_rounds(&server).await;
    let received = server.requests();
    assert_eq!(
        (received[0].path.as_str(), received[0].header("authorization")),
        ("/v1/responses", Some("Bearer sk-example"))
    );
    assert_eq!(requests[0]["tools"][0]["name"], "math_add");
    assert_eq!((&requests[0]["store"], &requests[0]["stream"]), (&json!(false), &json!(true)));
    assert_eq!(
        requests[1]["input"],
        json!([
            {"role": "user", "content": "Hello"},
            reasoning(),
            {"type": "function_call", "call_id": "call_1", "name": "math_add", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call_1", "output": "2"},
        ])
    );
}

#[tokio::test]
async fn conversation_continues_over_chat_completions_and_back() {
    let answers = [
        Reply::sse(calling()),
        Reply::sse(
            "data: {\"choices\":[{\"delta\":{\"content\":\"Two.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
        ),
        Reply::sse(hello()),
    ];
    let server = ReplayServer::start(answers).await.expect("a port");
    let question = request().with_tool(Add::new());
    let first = call_with(&model(&server), question.clone()).await.expect("an answer");
    let (_, call) = first.tool_calls().next().expect("a call");
    let result = Message::tool(ToolResult::new(call, vec!["2".into()]));
    let second = question.with_message(first.message().clone()).with_message(result);

    let chat = OpenAiModel::new("m").with_base_url(format!("{}/v1", server.url()));
    let answer = call_with(&chat, second.clone()).await.expect("an answer");
    let third = second.with_message(answer.message().clone()).with_message(Message::user("And?"));
    call_with(&model(&server), third).await.expect("an answer");

    let requests: Vec<Value> =
        server.requests().iter().map(|request| request.json().expect("JSON")).collect();
    assert_eq!(requests[1]["messages"][1]["tool_calls"][0]["function"]["name"], "math_add");
    assert!(!requests[1].to_string().contains("secret"), "reasoning of the Responses API stays out");
    let input = requests[2]["input"].as_array().expect("a list");
    assert_eq!(input[1], reasoning());
    assert_eq!(input[4]["content"][0]["text"], "Two.");
    assert_eq!(input.len(), 6);
}

#[tokio::test]
async fn whole_answers_give_the_same() {
    let answer = json!({"id": "resp_1", "object": "response", "status": "completed",
        "output": [{"type": "message", "content": [{"type": "output_text", "text": "Hello there"}]}]});
    let server = ReplayServer::start([Reply::json(200, &answer)]).await.expect("a port");
    let response = call_with(&model(&server).with_streaming(false), request()).await.expect("an answer");
    assert_eq!(response.text(), "Hello there");
    assert_eq!(server.requests()[0].json().expect("JSON")["stream"], false);
}

#[tokio::test]
async fn settings_reach_the_request() {
    let server = ReplayServer::start([Reply::sse(hello())]).await.expect("a port");
    let options = ChatOptions { model: Some("other".into()), ..ChatOptions::default() }
        .with_extra("reasoning", json!({"effort": "low"}))
        .with_extra("store", true);
    let model = model(&server).with_server_tools([json!({"type": "web_search"})]);
    call_with(&model, ChatRequest { options, ..ChatRequest::new(Message::user("x")) })
        .await
        .expect("an answer");
    let body = server.requests()[0].json().expect("JSON");
    assert_eq!((&body["model"], &body["store"]), (&json!("other"), &json!(true)));
    assert_eq!(body["tools"], json!([{"type": "web_search"}]));
    assert_eq!(body["reasoning"], json!({"effort": "low"}));
}

#[tokio::test]
async fn connection_is_reused_after_the_last_event() {
    let server = ReplayServer::start([Reply::sse(calling()), Reply::sse(hello())]).await.expect("a port");
    two_rounds(&server).await;
    assert_eq!(server.counts().connections, 1);
}
