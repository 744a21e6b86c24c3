//! Requests on the wire.

use advisor_core::{
    Block, BlockContent, ChatOptions, ChatRequest, Media, Message, Part, ResponseFormat, ToolCall,
    ToolChoice, ToolDefinition, ToolResult,
};
use advisor_testkit::{ChatTranscript, DescribedTool, ReplayServer, Reply, answer_of};
use serde_json::{Value, json};

use crate::Ask;

/// Returns the body that the client sends for a request.
async fn sent(ask: Ask, request: ChatRequest) -> Value {
    let answer = ChatTranscript::new("m").text("Hi").finish("stop").done();
    let server = ReplayServer::start([Reply::sse(answer)]).await.expect("a port");
    answer_of(&ask(&server.url()), request).await.expect("an answer");
    server.requests().pop().expect("a request").json().expect("JSON")
}

/// Sends a message of each role.
///
/// # Panics
/// If one of them is missing, or is not in its place.
pub async fn assert_transcript(ask: Ask) {
    let call = ToolCall::new("call_1", "look", "{\"at\":\"it\"}");
    let picture = Media::from_bytes("image/png", vec![1, 2, 3]);
    let request = ChatRequest::new(vec![
        Message::system("Be brief."),
        Message::user_parts(vec![Part::from("What is this?"), Part::Image(picture)]),
        Message::assistant_blocks(vec![
            Block::new(BlockContent::Reasoning("Hm.".into())),
            Block::text("Let me look."),
            call.clone().into(),
        ]),
        Message::tool(ToolResult::new(&call, vec![json!({"seen": "a cat"}).into()])),
        Message::assistant("A cat."),
        Message::user("Thanks."),
    ]);
    let look = ToolDefinition::new("look", "Looks around.", json!({"type": "object", "properties": {}}));
    let sent = sent(ask, request.with_tool(DescribedTool::new(look))).await;
    let roles: Vec<_> =
        sent["messages"].as_array().into_iter().flatten().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "assistant", "user"], "{sent:#}");
    let message = |at: usize| sent["messages"][at].to_string();
    for (at, words) in [
        (0, "Be brief."),
        (1, "What is this?"),
        (1, "data:image/png;base64,AQID"),
        (2, "Let me look."),
        (2, "call_1"),
        (2, "{\\\"at\\\":\\\"it\\\"}"),
        (3, "call_1"),
        (3, "{\\\"seen\\\":\\\"a cat\\\"}"),
        (4, "A cat."),
        (5, "Thanks."),
    ] {
        assert!(message(at).contains(words), "`{words}` is missing in message {at}: {sent:#}");
    }
}

/// Sends the options that every adapter passes on, and compares the fields in the body with these.
///
/// # Panics
/// If a field differs.
pub async fn assert_options(ask: Ask, options: ChatOptions, fields: &[(&str, Value)]) {
    let look = ToolDefinition::new("look", "Looks around.", json!({"type": "object", "properties": {}}));
    // One library takes the name from the title.
    let schema = json!({
        "title": "answer",
        "type": "object",
        "properties": {"n": {"type": "number"}},
        "required": ["n"],
        "additionalProperties": false,
    });
    let format = ResponseFormat::JsonSchema { name: "answer".into(), schema: schema.clone(), strict: true };
    let options = ChatOptions {
        tool_choice: Some(ToolChoice::Tool("look".into())),
        max_tokens: Some(100),
        top_p: Some(0.25),
        temperature: Some(0.5),
        ..options
    };
    let request = ChatRequest::new(Message::user("Hello"));
    let asked = ChatRequest { options, ..request.clone() }.with_tool(DescribedTool::new(look));
    let body = sent(ask, asked).await;
    let common = [
        ("/model", json!("example-model")),
        ("/stream", json!(true)),
        ("/stream_options/include_usage", json!(true)),
        ("/temperature", json!(0.5)),
        ("/top_p", json!(0.25)),
        ("/tool_choice/function/name", json!("look")),
        ("/tools/0/function/name", json!("look")),
    ];
    for (place, value) in common.iter().chain(fields) {
        assert_eq!(body.pointer(place), Some(value), "{place}: {body:#}");
    }
    let formed = ChatRequest {
        options: ChatOptions { response_format: Some(format), ..ChatOptions::default() },
        ..request
    };
    let body = sent(ask, formed).await;
    let format = &body["response_format"];
    assert_eq!(format["type"], "json_schema", "{body:#}");
    assert_eq!(format["json_schema"]["name"], "answer", "{body:#}");
    assert_eq!(format["json_schema"]["schema"], schema, "{body:#}");
}
