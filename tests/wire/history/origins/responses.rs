//! The Responses API: encrypted reasoning, and ids longer than those of Chat Completions.

use advisor_tests::prelude::*;

use super::{Origin, named_events};
use crate::history::story::{ANSWER, REFUSAL, TEXT, THOUGHT};

pub(crate) const OPENAI: Origin = Origin {
    name: "Responses",
    server: "api.openai.com",
    model: |transport| Arc::new(OpenAiResponsesModel::new("gpt-5").with_transport(transport)),
    answers: || vec![first(), second(), said(ANSWER), refused()],
    in_text: None,
    secrets: &["openai-encrypted"],
};

/// A call whose id has 50 characters.
fn call(name: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "id": format!("fc_{name}"), "call_id": format!("call_{name:a<45}"), "name": name,
        "arguments": arguments, "status": "completed"})
}

fn first() -> String {
    let reasoning = json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "openai-encrypted",
        "summary": [{"type": "summary_text", "text": THOUGHT}]});
    answer([reasoning, message(TEXT), call("look", "{\"at\":\"the door\"}"), call("clock_now", "{}")])
}

fn second() -> String {
    answer([call("draw", ""), call("open", "{\"key\":\"none\"}")])
}

fn refused() -> String {
    answer([json!({"type": "message", "id": "msg_1", "role": "assistant",
        "content": [{"type": "refusal", "refusal": REFUSAL}]})])
}

fn message(text: &str) -> Value {
    json!({"type": "message", "id": "msg_1", "role": "assistant",
        "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

pub(crate) fn said(text: &str) -> String {
    answer([message(text)])
}

/// Writes an answer whose items come whole.
fn answer(items: impl IntoIterator<Item = Value>) -> String {
    let done =
        |(index, item)| json!({"type": "response.output_item.done", "output_index": index, "item": item});
    let end = json!({"type": "response.completed", "response": {"id": "resp_1", "status": "completed"}});
    named_events(items.into_iter().enumerate().map(done).chain([end]))
}
