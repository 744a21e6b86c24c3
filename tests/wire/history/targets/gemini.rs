//! Gemini's API, and Vertex AI with an earlier model.

use advisor_tests::prelude::*;

use super::{Call, Item, ResultOf, Rule, Sent, Target, common, is_word, list, picture, word};
use crate::history::origins::gemini;
use crate::history::story::{DRAWING, LOCKED, THOUGHT};

pub(crate) const GOOGLE: Target = Target {
    name: "Gemini 3",
    server: "generativelanguage.googleapis.com",
    model: |transport| Arc::new(GeminiModel::new("gemini-3-pro").with_transport(transport)),
    answer: gemini,
    in_text: None,
    read,
    accepts_id: |id| !id.is_empty(),
    accepts_name: is_word,
    rules: &[common::RULES, RULES, GEMINI_3],
};

pub(crate) const VERTEX: Target = Target {
    name: "Gemini 2.5 on Vertex AI",
    server: "aiplatform.googleapis.com",
    model: |transport| {
        let base_url =
            "https://us-east1-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/google";
        let model = GeminiModel::new("gemini-2.5-flash").at_vertex_ai();
        Arc::new(model.with_base_url(base_url).with_transport(transport))
    },
    rules: &[common::RULES, RULES, VERTEX_AI],
    ..GOOGLE
};

fn read(body: &Value) -> Vec<Item> {
    let instruction = list(&body["systemInstruction"]["parts"]).iter();
    let mut items: Vec<_> = instruction.map(|part| with_part(Item::new(Role::System, part), part)).collect();
    for content in list(&body["contents"]) {
        let parts = list(&content["parts"]);
        if parts.iter().any(|part| part.get("functionResponse").is_some()) {
            parts.iter().for_each(|part| push_result(&mut items, part));
        } else {
            let role = if content["role"] == "model" { Role::Assistant } else { Role::User };
            items.push(parts.iter().fold(Item::new(role, content), with_part));
        }
    }
    items
}

/// Reads a result, or a picture beside the last one.
fn push_result(items: &mut Vec<Item>, part: &Value) {
    let Some(result) = part.get("functionResponse") else {
        items.last_mut().expect("a result").pictures.extend(picture(part));
        return;
    };
    let response = &result["response"];
    let text =
        word(response, "output").or_else(|| word(response, "error")).unwrap_or_else(|| response.to_string());
    let mut item = Item::new(Role::Tool, part).with_text(&text);
    item.pictures.extend(list(&result["parts"]).iter().filter_map(picture));
    item.result_of = Some(ResultOf { id: word(result, "id"), name: word(result, "name") });
    items.push(item);
}

fn with_part(mut item: Item, part: &Value) -> Item {
    if part["thought"] == true {
        return item;
    }
    if let Some(text) = part["text"].as_str() {
        return item.with_text(text);
    }
    if let Some(call) = part.get("functionCall") {
        let name = word(call, "name").expect("a name");
        item.calls.push(Call { id: word(call, "id"), name, arguments: call["args"].clone() });
    }
    item.pictures.extend(picture(part));
    item
}

/// Returns the parts of the model's content of a round, counted from 0.
fn parts_of<'a>(sent: &'a Sent<'_>, round: usize) -> &'a [Value] {
    list(&sent.answer(round).wire["parts"])
}

const RULES: &[Rule] = &[
    Rule {
        name: "the instruction stands beside the contents",
        check: |sent| {
            assert!(sent.body["systemInstruction"].get("role").is_none());
            let roles = list(&sent.body["contents"]).iter().map(|content| &content["role"]);
            assert!(roles.into_iter().all(|role| *role == "user" || *role == "model"));
        },
    },
    Rule {
        name: "contents take turns, and the user begins",
        check: |sent| {
            let roles: Vec<_> = list(&sent.body["contents"]).iter().map(|content| &content["role"]).collect();
            let turns = ["user", "model"].into_iter().cycle();
            assert!(roles.iter().zip(turns).all(|(role, turn)| **role == turn), "{roles:?}");
            assert_eq!(roles.len(), 9);
        },
    },
    Rule {
        name: "all results of an answer share one content, as its calls do",
        check: |sent| {
            let results = |place: usize| {
                let parts = list(&sent.body["contents"][place]["parts"]).iter();
                parts.filter(|part| part.get("functionResponse").is_some()).count()
            };
            assert_eq!((results(2), results(4)), (2, 2));
        },
    },
    Rule {
        name: "a structured result is the response, a text its output, a failure its error",
        check: |sent| {
            let responses: Vec<_> =
                sent.of(Role::Tool).map(|item| item.wire["functionResponse"]["response"].clone()).collect();
            assert_eq!(responses[0], json!({"output": "A cat."}));
            assert_eq!(responses[1], json!({"hour": 12}));
            assert_eq!(responses[3], json!({"error": LOCKED}));
        },
    },
    Rule {
        name: "thoughts of others are not sent",
        check: |sent| assert!(!sent.body.to_string().contains(THOUGHT), "{:#}", sent.body),
    },
];

const GEMINI_3: &[Rule] = &[
    Rule {
        name: "the first call of an answer has its signature, or Google's placeholder for calls of other models",
        check: |sent| {
            let signatures = |round| -> Vec<_> {
                let calls = parts_of(sent, round).iter().filter(|part| part.get("functionCall").is_some());
                calls.map(|part| part["thoughtSignature"].clone()).collect()
            };
            let placeholder = json!("skip_thought_signature_validator");
            let first = if sent.is_at_home() { json!("gemini-signature") } else { placeholder.clone() };
            assert_eq!(signatures(0), [first, Value::Null]);
            // The origin sent none with its second answer.
            assert_eq!(signatures(1), [placeholder, Value::Null]);
        },
    },
    Rule {
        name: "a result holds its picture",
        check: |sent| {
            let drawn = sent.of(Role::Tool).nth(2).expect("a result");
            assert_eq!(drawn.wire["functionResponse"]["parts"][0]["inlineData"]["data"], DRAWING);
        },
    },
    Rule {
        name: "calls and results have ids",
        check: |sent| assert!(sent.items.iter().flat_map(|item| &item.calls).all(|call| call.id.is_some())),
    },
];

const VERTEX_AI: &[Rule] = &[
    Rule {
        name: "no call has an id or a placeholder for a signature",
        check: |sent| {
            assert!(sent.items.iter().flat_map(|item| &item.calls).all(|call| call.id.is_none()));
            assert!(!sent.body.to_string().contains("thoughtSignature"));
        },
    },
    Rule {
        name: "the picture of a result stands beside it",
        check: |sent| {
            let drawn = sent.of(Role::Tool).nth(2).expect("a result");
            assert_eq!(drawn.pictures, [DRAWING]);
            assert!(drawn.wire["functionResponse"].get("parts").is_none());
        },
    },
];
