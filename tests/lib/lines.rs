//! Messages as lines of text, and whether they are a valid transcript (law M1).

use crate::prelude::*;
use advisor_chain::messages::MessageContent;

/// Fails with the transcript unless it is valid.
#[track_caller]
pub fn assert_valid(messages: &MessageList) {
    let defects = validate_transcript(messages);
    assert!(defects.is_empty(), "{defects:?}:\n{}", transcript_lines(messages).join("\n"));
}

/// Returns the messages, each with its role and content: `user: hi`, `call c1 look {}`, `result c1: sunny`.
pub fn transcript_lines<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Vec<String> {
    messages.into_iter().flat_map(message_lines).collect()
}

fn message_lines(message: &Message) -> Vec<String> {
    match message.content() {
        MessageContent::System(text) => vec![format!("system: {text}")],
        MessageContent::User(_) => vec![format!("user: {}", message.text())],
        MessageContent::Assistant(blocks) => blocks.iter().map(block_line).collect(),
        MessageContent::Tool(result) if result.is_error => {
            vec![format!("error {}: {}", result.call_id, result.text())]
        }
        MessageContent::Tool(result) => vec![format!("result {}: {}", result.call_id, result.text())],
        other => panic!("a message that these tests do not know: {other:?}"),
    }
}

fn block_line(block: &Block) -> String {
    match block.content() {
        BlockContent::Text(text) => format!("assistant: {text}"),
        BlockContent::Reasoning(text) => format!("reasoning: {text}"),
        BlockContent::ToolCall(call) => format!("call {} {} {}", call.id, call.name, call.arguments),
        other => format!("{:?}", other.kind()),
    }
}

/// Returns the messages in short, one line each: `text`, `text(look)`, `= result`.
pub fn short<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Vec<String> {
    let line = |message: &Message| match message.tool_result() {
        Some(result) => format!("= {}", result.text()),
        None => message.tool_calls().fold(message.text(), |line, call| format!("{line}({})", call.name)),
    };
    messages.into_iter().map(line).collect()
}

/// Returns the texts of the messages.
pub fn texts<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Vec<String> {
    messages.into_iter().map(Message::text).collect()
}
