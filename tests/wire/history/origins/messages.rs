//! Anthropic's Messages API: signed and encrypted thinking, and a call without any piece of arguments.

use advisor_tests::prelude::*;

use super::{Origin, named_events};
use crate::history::story::{ANSWER, REFUSAL, TEXT, THOUGHT};

pub(crate) const ANTHROPIC: Origin = Origin {
    name: "Messages",
    server: "api.anthropic.com",
    model: |transport| Arc::new(AnthropicModel::new("claude-sonnet-4-5").with_transport(transport)),
    answers: || vec![first(), second(), said(ANSWER), refused()],
    in_text: None,
    secrets: &["anthropic-signature", "anthropic-encrypted"],
};

type Block = (Value, Vec<Value>);

fn text(text: &str) -> Block {
    (json!({"type": "text", "text": ""}), vec![json!({"type": "text_delta", "text": text})])
}

fn call(name: &str, arguments: &[&str]) -> Block {
    let head = json!({"type": "tool_use", "id": format!("toolu_01{name}"), "name": name, "input": {}});
    let pieces = arguments.iter().map(|piece| json!({"type": "input_json_delta", "partial_json": piece}));
    (head, pieces.collect())
}

fn first() -> String {
    let thinking = vec![
        json!({"type": "thinking_delta", "thinking": THOUGHT}),
        json!({"type": "signature_delta", "signature": "anthropic-signature"}),
    ];
    let blocks = [
        (json!({"type": "thinking", "thinking": "", "signature": ""}), thinking),
        (json!({"type": "redacted_thinking", "data": "anthropic-encrypted"}), Vec::new()),
        text(TEXT),
        call("look", &["{\"at\":", "\"the door\"}"]),
        call("clock_now", &[]),
    ];
    answer(blocks, "tool_use")
}

fn second() -> String {
    answer([call("draw", &[""]), call("open", &["{\"key\":\"none\"}"])], "tool_use")
}

fn refused() -> String {
    answer([text(REFUSAL)], "refusal")
}

pub(crate) fn said(said: &str) -> String {
    answer([text(said)], "end_turn")
}

fn answer(blocks: impl IntoIterator<Item = Block>, stop_reason: &str) -> String {
    let mut events = vec![json!({"type": "message_start", "message": {"id": "msg_1", "content": []}})];
    for (index, (head, deltas)) in blocks.into_iter().enumerate() {
        events.push(json!({"type": "content_block_start", "index": index, "content_block": head}));
        let delta = |delta| json!({"type": "content_block_delta", "index": index, "delta": delta});
        events.extend(deltas.into_iter().map(delta));
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": stop_reason}}));
    events.push(json!({"type": "message_stop"}));
    named_events(events)
}
