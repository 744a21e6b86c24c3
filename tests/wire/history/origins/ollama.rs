//! Ollama: calls without ids, arguments as objects, reasoning without a signature, and an answer that was cut.

use advisor_tests::prelude::*;

use super::Origin;
use crate::history::story::{ANSWER, REFUSAL, TEXT, THOUGHT};

pub(crate) const LOCAL: Origin = Origin {
    name: "Ollama",
    server: "127.0.0.1:11434",
    model: |transport| Arc::new(OllamaModel::new("qwen3").with_transport(transport)),
    answers: || vec![first(), second(), said(ANSWER), answer([json!({"content": REFUSAL})], "length")],
    in_text: None,
    secrets: &[],
};

fn calls(calls: [(&str, Value); 2]) -> Value {
    let call = |(name, arguments)| json!({"function": {"name": name, "arguments": arguments}});
    json!({"content": "", "tool_calls": calls.map(call)})
}

fn first() -> String {
    let asked = calls([("look", json!({"at": "the door"})), ("clock.now", json!({}))]);
    answer([json!({"content": "", "thinking": THOUGHT}), json!({"content": TEXT}), asked], "stop")
}

fn second() -> String {
    answer([calls([("draw", json!({})), ("open", json!({"key": "none"}))])], "stop")
}

pub(crate) fn said(text: &str) -> String {
    answer([json!({"content": text})], "stop")
}

fn answer(messages: impl IntoIterator<Item = Value>, reason: &str) -> String {
    let piece = |mut message: Value| {
        message["role"] = "assistant".into();
        json!({"message": message, "done": false})
    };
    let end = json!({"message": {"role": "assistant", "content": ""}, "done": true, "done_reason": reason});
    messages.into_iter().map(piece).chain([end]).map(|line| format!("{line}\n")).collect()
}
