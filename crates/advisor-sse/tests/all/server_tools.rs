//! Tools that the server runs, in the forms of providers' protocols.

use advisor_core::{
    BlockContent, BlockDelta, BlockHead, BlockId, BlockKind, ChatResponse, Chunk, FinishReason, Message,
    Part, ToolCall, ToolEvent, ToolEventKind, ToolResult,
};
use advisor_sse::{AnswerInfo, AnthropicMessages, Encoder, Frame, Frames, OpenAiResponses};
use advisor_testkit::Answer;
use serde_json::{Value, json};

use crate::table::{encode, protocols};
use crate::turns::{Turn, play};
use crate::validate;

fn info() -> AnswerInfo {
    AnswerInfo::new("answer-1", "chain", 1_700_000_000)
}

/// A turn with a tool that succeeds, one that fails, and one that does not exist.
async fn turn() -> Turn {
    let answer = Answer::new()
        .text("Let me look.")
        .call("c1", "weather", r#"{"city":"Oslo"}"#)
        .call("c2", "broken", "{}")
        .call("c3", "wether", r#"{"a":1}"#);
    play([answer.done(), Answer::from_text("It is sunny.")]).await
}

fn events(encoder: impl Encoder + 'static, turn: &Turn) -> Vec<Value> {
    let stream = encode(Box::new(encoder), Frames::new(), turn);
    Frame::read_all(&stream).iter().filter_map(Frame::json).collect()
}

#[tokio::test]
async fn messages_show_calls_and_results_as_blocks() {
    let encoder = AnthropicMessages::new(info()).with_server_tools();
    let blocks: Vec<_> = events(encoder, &turn().await)
        .iter()
        .filter(|event| event["type"] == "content_block_start")
        .map(|event| event["content_block"].clone())
        .collect();
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let call = |id: &str, name: &str, input: Value| json!({"type": "mcp_tool_use", "id": id, "name": name, "server_name": "chain", "input": input});
    let of = |id: &str| {
        let mut blocks =
            blocks.iter().filter(|block| [&block["id"], &block["tool_use_id"]].contains(&&json!(id)));
        (blocks.next().unwrap().clone(), blocks.next().unwrap().clone())
    };
    assert_eq!(blocks.len(), 8, "two texts, and two blocks of each call");
    let (used, result) = of("c1");
    assert_eq!(used, call("c1", "weather", json!({"city": "Oslo"})));
    assert_eq!(result["content"], text(r#"{"sky":"clear"}"#));
    let (used, result) = of("c2");
    assert_eq!(used, call("c2", "broken", json!({})));
    assert_eq!((&result["is_error"], &result["content"]), (&json!(true), &text("the service is down")));
    let (used, result) = of("c3");
    assert_eq!((used, &result["is_error"]), (call("c3", "wether", json!({"a": 1})), &json!(true)));
}

#[tokio::test]
async fn responses_show_calls_and_results_as_items() {
    let encoder = OpenAiResponses::new(info()).with_server_tools();
    let events = events(encoder, &turn().await);
    let output = events.last().unwrap()["response"]["output"].as_array().unwrap();
    let call = |name: &str| output.iter().find(|item| item["name"] == name).unwrap();
    let id = call("weather")["id"].clone();
    let expected = json!({
        "type": "mcp_call", "id": id, "status": "completed", "server_label": "chain", "name": "weather",
        "arguments": r#"{"city":"Oslo"}"#, "output": r#"{"sky":"clear"}"#, "error": null,
        "approval_request_id": null,
    });
    assert_eq!(call("weather"), &expected);
    for (name, error) in [("broken", "the service is down"), ("wether", "")] {
        assert_eq!((&call(name)["status"], &call(name)["output"]), (&json!("failed"), &Value::Null));
        let told = &call(name)["error"];
        assert_eq!(told["type"], "mcp_tool_execution_error", "{name}");
        assert!(told["content"][0]["text"].as_str().unwrap().contains(error), "{name}");
    }
    let of_call = events.iter().filter(|event| event["item_id"] == id || event["item"]["id"] == id);
    let names: Vec<_> = of_call.map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "response.output_item.added",
            "response.mcp_call.in_progress",
            "response.mcp_call_arguments.delta",
            "response.mcp_call_arguments.done",
            "response.mcp_call.completed",
            "response.output_item.done",
        ]
    );
}

#[tokio::test]
async fn tools_of_the_server_are_hidden_by_default() {
    let turn = turn().await;
    for (name, encoder, _) in protocols()
        .into_iter()
        .filter(|(name, ..)| ["Chat Completions", "Responses", "Messages"].contains(name))
    {
        let stream = encode(encoder(), Frames::new(), &turn);
        assert!(!stream.contains("weather") && !stream.contains("clear"), "{name}: {stream}");
    }
}

/// Another advisor may still show a text while a tool runs.
#[test]
fn tool_within_an_open_text_waits_for_its_place() {
    let (text, call) = (BlockId::new(1, 0), BlockId::new(1, 1));
    let tool = |kind| Chunk::Tool(Box::new(ToolEvent::new(call, "c1".into(), "weather".into(), kind)));
    let piece = |text: &str| BlockDelta::Text(text.into());
    let turn: Turn = [
        Chunk::Opened { block: text, head: BlockHead::new(BlockKind::Text) },
        Chunk::Delta { block: text, delta: piece("It ") },
        tool(ToolEventKind::Started { arguments: "{}".into() }),
        Chunk::Delta { block: text, delta: piece("rains.") },
        tool(ToolEventKind::Finished(ToolResult::new(
            &ToolCall::new("c1", "weather", "{}"),
            vec![Part::Text("rain".into())],
        ))),
        Chunk::Closed { block: text, content: BlockContent::Text("It rains.".into()).into() },
        Chunk::Completed(ChatResponse::new(1, Message::assistant("It rains."), FinishReason::Stop)),
    ]
    .map(Ok)
    .into();
    let encoder = AnthropicMessages::new(info()).with_server_tools();
    let stream = encode(Box::new(encoder), Frames::new(), &turn);
    let frames = Frame::read_all(&stream);
    assert_eq!(validate::anthropic_messages(&frames), Ok(()));
    let starts: Vec<_> = frames
        .iter()
        .filter_map(Frame::json)
        .filter(|event| event["type"] == "content_block_start")
        .map(|event| event["content_block"]["type"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(starts, ["text", "mcp_tool_use", "mcp_tool_result"]);
    let texts: String = frames
        .iter()
        .filter_map(Frame::json)
        .filter_map(|event| event["delta"]["text"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(texts, "It rains.");
}
