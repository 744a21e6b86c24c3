//! Chat Completions, with the profiles of servers that differ.

use advisor_tests::prelude::*;

use super::{Call, Item, ResultOf, Rule, Sent, Target, common, is_word, list, word};
use crate::history::origins::chat;
use crate::history::story::{DRAWING, THOUGHT};
use crate::transport::ScriptedTransport;

pub(crate) const OPENAI: Target = Target {
    name: "OpenAI",
    server: "api.openai.com/chat",
    model: |transport| at("https://api.openai.com/v1", transport),
    answer: chat,
    in_text: None,
    read,
    accepts_id: |id| (1..=40).contains(&id.len()),
    accepts_name: is_word,
    rules: &[common::RULES, RULES, ONLY_TEXT_IN_RESULTS, NO_REASONING],
};

pub(crate) const MISTRAL: Target = Target {
    name: "Mistral",
    server: "api.mistral.ai",
    model: |transport| at("https://api.mistral.ai/v1", transport),
    accepts_id: |id| id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()),
    rules: &[common::RULES, RULES, ONLY_TEXT_IN_RESULTS, NO_REASONING, NAMED_RESULTS],
    ..OPENAI
};

pub(crate) const DEEPSEEK: Target = Target {
    name: "DeepSeek",
    server: "api.deepseek.com",
    model: |transport| at("https://api.deepseek.com", transport),
    accepts_id: |_| true,
    rules: &[common::RULES, RULES, ONLY_TEXT_IN_RESULTS, REASONING_WITH_CALLS],
    ..OPENAI
};

pub(crate) const OPENROUTER: Target = Target {
    name: "OpenRouter",
    server: "openrouter.ai",
    model: |transport| at("https://openrouter.ai/api/v1", transport),
    accepts_id: |_| true,
    rules: &[common::RULES, RULES, PICTURES_IN_RESULTS, REASONING_WITH_DETAILS],
    ..OPENAI
};

pub(crate) const COMPATIBLE: Target = Target {
    name: "a compatible server",
    server: "llm.example",
    model: |transport| at("https://llm.example/v1", transport),
    accepts_id: |_| true,
    rules: &[common::RULES, RULES, ONLY_TEXT_IN_RESULTS, NO_REASONING],
    ..OPENAI
};

pub(crate) fn at(base_url: &str, transport: ScriptedTransport) -> Arc<dyn ChatModel> {
    Arc::new(OpenAiModel::new("m").with_base_url(base_url).with_transport(transport))
}

pub(crate) fn read(body: &Value) -> Vec<Item> {
    list(&body["messages"]).iter().map(item).collect()
}

fn item(message: &Value) -> Item {
    let role = match word(message, "role").as_deref() {
        Some("system") => Role::System,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("tool") => Role::Tool,
        other => panic!("unknown role {other:?}"),
    };
    let mut item = Item::new(role, message).with_content(&message["content"]);
    item.calls = list(&message["tool_calls"]).iter().map(call).collect();
    item.result_of = (role == Role::Tool)
        .then(|| ResultOf { id: word(message, "tool_call_id"), name: word(message, "name") });
    item
}

fn call(call: &Value) -> Call {
    assert_eq!(call["type"], "function");
    let arguments = word(&call["function"], "arguments").expect("arguments are text");
    Call {
        id: word(call, "id"),
        name: word(&call["function"], "name").expect("a name"),
        arguments: serde_json::from_str(&arguments).expect("JSON"),
    }
}

pub(crate) const RULES: &[Rule] = &[
    Rule {
        name: "an answer has text, or calls beside null or an empty text",
        check: |sent| {
            for answer in sent.of(Role::Assistant) {
                let content = &answer.wire["content"];
                let is_silent = content.is_null() || *content == "";
                assert!(
                    content.as_str().is_some_and(|text| !text.is_empty())
                        || (is_silent && !answer.calls.is_empty())
                );
            }
        },
    },
    Rule {
        name: "a refusal of another API is text, as the user saw it",
        check: |sent| assert!(sent.of(Role::Assistant).all(|answer| answer.wire.get("refusal").is_none())),
    },
    Rule {
        name: "only the fields of the API are sent",
        check: |sent| {
            const KNOWN: [&str; 8] = [
                "role", "content", "tool_calls", "tool_call_id", "name", "reasoning", "reasoning_content",
                "reasoning_details",
            ];
            for item in &sent.items {
                let mut keys = item.wire.as_object().expect("an object").keys();
                assert!(keys.all(|key| KNOWN.contains(&key.as_str())), "{:#}", item.wire);
            }
        },
    },
];

const ONLY_TEXT_IN_RESULTS: &[Rule] = &[Rule {
    name: "a result is text; a note replaces its picture",
    check: |sent| {
        assert!(sent.of(Role::Tool).all(|result| result.wire["content"].is_string()));
        let drawn = sent.of(Role::Tool).nth(2).expect("a result");
        assert!(drawn.text.contains("[image/png left out"), "{drawn:#?}");
    },
}];

const PICTURES_IN_RESULTS: &[Rule] = &[Rule {
    name: "a result may hold its picture",
    check: |sent| assert_eq!(sent.of(Role::Tool).nth(2).expect("a result").pictures, [DRAWING]),
}];

const NAMED_RESULTS: &[Rule] = &[Rule {
    name: "a result names its tool",
    check: |sent| assert!(sent.of(Role::Tool).all(|result| result.wire.get("name").is_some())),
}];

pub(crate) const NO_REASONING: &[Rule] = &[Rule {
    name: "reasoning is never sent",
    check: |sent| assert!(!sent.body.to_string().contains(THOUGHT), "{:#}", sent.body),
}];

const REASONING_WITH_CALLS: &[Rule] = &[Rule {
    name: "each answer with calls has reasoning, if only an empty one, and no other answer does",
    check: |sent| {
        let reasoning = |answer: &Item| answer.wire.get("reasoning_content").cloned();
        let all: Vec<_> = sent.of(Role::Assistant).map(reasoning).collect();
        assert_eq!(all, [Some(json!(THOUGHT)), Some(json!("")), None, None]);
    },
}];

const REASONING_WITH_DETAILS: &[Rule] = &[Rule {
    name: "reasoning goes back with its details, that of others as text",
    check: |sent: &Sent<'_>| {
        let first = &sent.answer(0).wire;
        let details = json!([{"type": "reasoning.text", "index": 0, "text": THOUGHT, "signature": "openrouter-signature"}]);
        let expected = if sent.is_at_home() { (Value::Null, details) } else { (json!(THOUGHT), Value::Null) };
        assert_eq!((first["reasoning"].clone(), first["reasoning_details"].clone()), expected);
    },
}];
