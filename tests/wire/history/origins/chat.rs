//! Chat Completions, as OpenRouter sends it: ids of Kimi's form, signed reasoning, and data on a call.

use advisor_tests::prelude::*;

use super::{Origin, events};
use crate::history::story::{ANSWER, REFUSAL, TEXT, THOUGHT};

pub(crate) const OPENROUTER: Origin = Origin {
    name: "Chat Completions",
    server: "openrouter.ai",
    model: |transport| {
        let model = OpenAiModel::new("moonshotai/kimi-k2").with_base_url("https://openrouter.ai/api/v1");
        Arc::new(model.with_transport(transport))
    },
    answers: || vec![first(), second(), said(ANSWER), refused()],
    in_text: None,
    secrets: &["openrouter-signature", "openrouter-call-data"],
};

fn first() -> String {
    let detail = |more: Value| {
        let mut detail = json!({"type": "reasoning.text", "index": 0});
        detail.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
        detail
    };
    let google = json!({"google": {"thought_signature": "openrouter-call-data"}});
    answer(
        [
            json!({"reasoning": THOUGHT, "reasoning_details": [detail(json!({"text": THOUGHT}))]}),
            json!({"reasoning_details": [detail(json!({"signature": "openrouter-signature"}))]}),
            json!({"content": TEXT}),
            json!({"tool_calls": [
                {"index": 0, "id": "functions.look:0", "type": "function",
                    "function": {"name": "look", "arguments": "{\"at\":"}, "extra_content": google},
                {"index": 1, "id": "functions.clock_now:1", "type": "function",
                    "function": {"name": "clock_now", "arguments": ""}},
            ]}),
            json!({"tool_calls": [{"index": 0, "function": {"arguments": "\"the door\"}"}}]}),
        ],
        "tool_calls",
    )
}

fn second() -> String {
    let call = |index: u32, name: &str, arguments: &str| {
        json!({"index": index, "id": format!("functions.{name}:{index}"), "type": "function",
            "function": {"name": name, "arguments": arguments}})
    };
    answer(
        [json!({"tool_calls": [call(0, "draw", "{}"), call(1, "open", "{\"key\":\"none\"}")]})],
        "tool_calls",
    )
}

fn refused() -> String {
    answer([json!({"refusal": REFUSAL})], "stop")
}

pub(crate) fn said(text: &str) -> String {
    answer([json!({"content": text})], "stop")
}

pub(crate) fn answer(deltas: impl IntoIterator<Item = Value>, finish: &str) -> String {
    let piece = |delta: Value| json!({"id": "c", "choices": [{"index": 0, "delta": delta}]});
    let end = json!({"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]});
    format!("{}data: [DONE]\n\n", events(deltas.into_iter().map(piece).chain([end])))
}
