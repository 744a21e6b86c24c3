//! Signatures, against servers of Anthropic's Messages and of Gemini.

use advisor_core::{
    Block, BlockContent, ChatOptions, ChatRequest, Message, MessageContent, ToolDefinition, ToolResult,
};
use advisor_test_support::{GeminiTranscript, MessagesTranscript};
use advisor_testkit::{DescribedTool, ReplayServer, Reply, answer_of};
use serde_json::{Value, json};

use crate::Ask;

/// Answers a call that was made after signed reasoning, as it was and with other arguments. Checks that the server gets
/// back the reasoning as it was, and the call as it is.
///
/// # Panics
/// If the reasoning, its signature or the call is missing, or not in its place.
pub async fn assert_signed_reasoning(ask: Ask) {
    let call = MessagesTranscript::new("claude-sonnet-4-5")
        .reasoning("A question ")
        .reasoning("of weather.")
        .text("Let me look.")
        .tool_call("toolu_1", "weather", &["{\"city\":", "\"Oslo\"}"]);
    let end = || MessagesTranscript::new("claude-sonnet-4-5").text("Cold.");
    let replies = [call, end(), end()].map(|transcript| Reply::sse(transcript.done()));
    let server = ReplayServer::start(replies).await.expect("a port");
    let model = ask(&server.url());
    let request = question();
    let first = answer_of(&model, request.clone()).await.expect("a call");
    for city in ["Oslo", "Rome"] {
        let called = with_arguments(first.message(), &format!("{{\"city\":\"{city}\"}}"));
        let call = called.tool_calls().next().expect("a call");
        let result = Message::tool(ToolResult::new(call, vec!["4 degrees".into()]));
        let mut request = request.clone();
        request.messages.push(called);
        request.messages.push(result);
        assert_eq!(answer_of(&model, request).await.expect("an answer").text(), "Cold.");
        let sent = server.requests().pop().expect("a request").json().expect("JSON");
        let blocks: Vec<Value> = sent["messages"][1]["content"].as_array().expect("blocks").clone();
        let kinds: Vec<_> = blocks.iter().map(|block| block["type"].as_str().unwrap_or_default()).collect();
        assert_eq!(kinds, ["thinking", "text", "tool_use"], "{sent:#}");
        assert_eq!(blocks[0]["thinking"], "A question of weather.", "{sent:#}");
        assert_eq!(blocks[0]["signature"], "c2lnbmF0dXJl", "{sent:#}");
        assert_eq!(blocks[2]["input"], json!({ "city": city }), "{sent:#}");
    }
}

/// Answers a signed call of Gemini, which has no id, and checks that the server gets the signature back.
///
/// # Panics
/// If the call, its signature or its result is missing.
pub async fn assert_signed_call(ask: Ask) {
    let part = json!({
        "functionCall": { "name": "weather", "args": { "city": "Oslo" } },
        "thoughtSignature": "c2lnbmF0dXJl",
    });
    let call = GeminiTranscript::new("gemini-3-pro").part(part).finish("STOP");
    let end = GeminiTranscript::new("gemini-3-pro").text("Cold.").finish("STOP");
    let replies = [call, end].map(|transcript| Reply::sse(transcript.done()));
    let server = ReplayServer::start(replies).await.expect("a port");
    let model = ask(&server.url());
    let mut request = question();
    let first = answer_of(&model, request.clone()).await.expect("a call");
    let call = first.message().tool_calls().next().expect("a call");
    request.messages.push(first.message().clone());
    request.messages.push(Message::tool(ToolResult::new(call, vec!["4 degrees".into()])));
    assert_eq!(answer_of(&model, request).await.expect("an answer").text(), "Cold.");
    let sent = server.requests().pop().expect("a request").json().expect("JSON");
    let [call, result] = [1, 2].map(|at| &sent["contents"][at]["parts"][0]);
    assert_eq!(call["functionCall"]["args"], json!({"city": "Oslo"}), "{sent:#}");
    assert_eq!(call["thoughtSignature"], "c2lnbmF0dXJl", "{sent:#}");
    assert!(result["functionResponse"].to_string().contains("4 degrees"), "{sent:#}");
}

fn question() -> ChatRequest {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    let weather = DescribedTool::new(ToolDefinition::new("weather", "Tells the weather.", schema));
    ChatRequest {
        options: ChatOptions { max_tokens: Some(2_000), ..ChatOptions::default() },
        ..ChatRequest::new(Message::user("How is the weather?"))
    }
    .with_tool(weather)
}

/// Returns the message with other arguments of its call, as a person who approves it can set them.
fn with_arguments(message: &Message, arguments: &str) -> Message {
    let MessageContent::Assistant(blocks) = message.content() else { panic!("an answer") };
    let changed = blocks.iter().map(|block| match block.content() {
        BlockContent::ToolCall(call) => {
            let mut call = call.clone();
            call.arguments = arguments.into();
            Block::with_data(BlockContent::ToolCall(call), block.provider_data().to_vec())
        }
        _ => block.clone(),
    });
    Message::assistant_blocks(changed.collect())
}
