//! The order of the blocks of an answer that goes back.

use super::messages::{found, search, server_tools};
use super::*;

fn call(id: &str) -> Block {
    ToolCall::new(id, "f", "{}").into()
}

fn signed(signature: &str) -> Block {
    thought("Hm.", FORMAT, json!({"signature": signature}))
}

/// The blocks of an answer on the wire in short: their text, signature or id, else their type.
fn sent(answer: Vec<Block>) -> Vec<String> {
    let short = |block: &Value| {
        let keys = ["text", "signature", "id", "tool_use_id", "type"];
        keys.iter().find_map(|key| block[key].as_str()).unwrap_or_default().to_owned()
    };
    let content = content_of(Message::assistant_blocks(answer));
    content.as_array().into_iter().flatten().map(short).collect()
}

/// The API refuses other content behind a call: "`tool_use` ids were found without `tool_result` blocks immediately
/// after". A denial that stands behind an allowed call is such content.
#[test]
fn law_m1_calls_are_sent_behind_other_content() {
    let text = Block::text;
    assert_eq!(sent(vec![text("a"), call("c1"), text("b"), call("c2")]), ["a", "b", "c1", "c2"]);
    assert_eq!(sent(vec![call("c1"), search("s"), found("s")]), ["s", "s", "c1"]);
    let media = Block::new(BlockContent::Media(advisor_core::Media::from_bytes("image/png", vec![1])));
    assert_eq!(sent(vec![call("c1"), media]), ["[image]", "c1"]);
    // What is not sent is no border.
    let foreign = || Block::new(BlockContent::Reasoning("Hm.".into()));
    assert_eq!(sent(vec![call("c1"), foreign(), text("b")]), ["b", "c1"]);
}

/// The API refuses thinking that has changed its place among calls, so no block passes it.
#[test]
fn signed_thinking_keeps_its_place_among_calls() {
    let text = Block::text;
    let blocks = vec![signed("s1"), call("c1"), text("a"), signed("s2"), call("c2"), text("b")];
    assert_eq!(sent(blocks), ["s1", "a", "c1", "s2", "b", "c2"]);
    let hidden = opaque(json!({"type": "redacted_thinking", "data": "ZGF0YQ=="}));
    assert_eq!(sent(vec![call("c1"), text("a"), hidden, call("c2")]), ["a", "c1", "redacted_thinking", "c2"]);
}

#[test]
fn tools_of_the_server_keep_their_order() {
    let blocks = vec![Block::text("a"), search("s"), found("s"), Block::text("b"), search("t"), found("t")];
    assert_eq!(sent(blocks), ["a", "s", "s", "b", "t", "t"]);
}

/// If the model also calls a tool of the caller, the server waits for its result and then runs its own tool.
#[test]
fn tool_of_the_server_waits_for_results_of_the_caller() {
    let (first, second) = (ToolCall::new("c1", "f", "{}"), ToolCall::new("c2", "f", "{}"));
    let ask = || Message::user("Hi");
    let mixed = || Message::assistant_blocks(vec![search("s"), first.clone().into(), second.clone().into()]);
    let results = || [&first, &second].map(|call| Message::tool(ToolResult::new(call, vec!["1".into()])));
    let after = |more: Vec<Message>| {
        server_tools([ask(), mixed()].into_iter().chain(results()).chain(more).collect())
    };
    assert_eq!(after(vec![]), ["s", "c1", "c2", "c1", "c2"]);
    let goes_on = Message::assistant_blocks(vec![found("s"), Block::text("x")]);
    assert_eq!(after(vec![goes_on, Message::user("And?")]), ["s", "c1", "c2", "c1", "c2", "s"]);
    // The server runs it only if nothing but results follows.
    assert_eq!(after(vec![Message::user("And?")]), ["c1", "c2", "c1", "c2"]);
    // An answer without the result ends nothing: a program may wait for more.
    assert_eq!(after(vec![Message::assistant("x")]), ["s", "c1", "c2", "c1", "c2"]);
}
