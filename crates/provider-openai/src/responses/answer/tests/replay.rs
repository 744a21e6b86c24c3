//! Tests that the items of answers go back as they were, in the order of the answer, whatever the order of events.

use advisor_core::{AggregatorSettings, ChatRequest, ChatResponse, FinishReason, Message, ToolResult};
use advisor_test_support::decoding::read_answer;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use provider_http::answer::AnswerDecoder;
use provider_http::redaction::Redaction;
use provider_http::sse::SseLimits;
use serde_json::{Value, json};

use super::super::Responses;
use crate::responses::request::{BodySettings, InputForm, body};

const FORMAT: &str = "openai-responses@test";

/// A kind of item, with the number of its texts, or with a field that only some items of the kind have.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Reasoning(usize),
    Message { parts: usize, has_phase: bool },
    Call { has_caller: bool },
    Image,
    Server(&'static str),
}

/// The events of an item that a server sends. All servers send a snapshot at the end.
#[derive(Debug, Clone, Copy)]
enum Events {
    All,
    Unannounced,
    OnlyTheEnd,
    None,
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        3 => (0..3_usize).prop_map(Kind::Reasoning),
        2 => (1..3_usize, any::<bool>()).prop_map(|(parts, has_phase)| Kind::Message { parts, has_phase }),
        3 => any::<bool>().prop_map(|has_caller| Kind::Call { has_caller }),
        1 => Just(Kind::Image),
        2 => select(vec!["program", "program_output", "web_search_call"]).prop_map(Kind::Server),
    ]
}

/// The items of an answer. OpenAI ends none with reasoning.
fn answer() -> impl Strategy<Value = Vec<(Kind, Events)>> {
    let events =
        select(vec![Events::All, Events::All, Events::Unannounced, Events::OnlyTheEnd, Events::None]);
    vec((kind(), events), 1..6).prop_map(|mut items| {
        if let Some((Kind::Reasoning(_), _)) = items.last() {
            items.push((Kind::Message { parts: 1, has_phase: false }, Events::All));
        }
        items
    })
}

/// The item as the server sends it at its end.
fn item(id: &str, kind: Kind) -> Value {
    let texts = |kind: &str, count: usize| -> Vec<Value> {
        (0..count).map(|at| json!({"type": kind, "text": format!("{id} {at}")})).collect()
    };
    let mut item = match kind {
        Kind::Reasoning(count) => {
            json!({"type": "reasoning", "summary": texts("summary_text", count), "encrypted_content": format!("E{id}")})
        }
        Kind::Message { parts, has_phase } => {
            let mut content = texts("output_text", parts);
            content.iter_mut().for_each(|part| part["annotations"] = json!([]));
            let mut item =
                json!({"type": "message", "role": "assistant", "status": "completed", "content": content});
            if has_phase {
                item["phase"] = "commentary".into();
            }
            item
        }
        Kind::Call { has_caller } => {
            let mut item = json!({"type": "function_call", "call_id": format!("call_{id}"), "name": "f",
                "arguments": "{\"a\":1}", "status": "completed"});
            if has_caller {
                item["caller"] = json!({"type": "program", "caller_id": format!("call_p{id}")});
            }
            item
        }
        Kind::Image => {
            json!({"type": "image_generation_call", "status": "completed", "result": "iVBORw0KGgo="})
        }
        Kind::Server(name) => json!({"type": name, "status": "completed", "n": id}),
    };
    item["id"] = id.into();
    item
}

/// The events of an item, in their order.
fn events(index: usize, id: &str, kind: Kind, sent: Events) -> Vec<Value> {
    let whole = item(id, kind);
    let event = |name: &str, fields: Value| {
        let mut event = json!({"type": format!("response.{name}"), "item_id": id, "output_index": index});
        event
            .as_object_mut()
            .into_iter()
            .for_each(|event| event.extend(fields.as_object().cloned().unwrap_or_default()));
        event
    };
    let mut begun = whole.clone();
    for (field, nothing) in [("summary", json!([])), ("content", json!([])), ("arguments", json!(""))] {
        if let Some(field) = begun.get_mut(field) {
            *field = nothing;
        }
    }
    for field in ["encrypted_content", "result"] {
        begun.as_object_mut().map(|begun| begun.remove(field));
    }
    let added = event("output_item.added", json!({"item": begun}));
    let done = event("output_item.done", json!({"item": whole}));
    let texts = |name: &str, index: &str, count: usize| -> Vec<Value> {
        let piece = |at: usize, text: String| event(name, json!({index: at, "delta": text}));
        (0..count).flat_map(|at| [piece(at, format!("{id} ")), piece(at, at.to_string())]).collect()
    };
    let pieces: Vec<Value> = match kind {
        Kind::Reasoning(count) => texts("reasoning_summary_text.delta", "summary_index", count),
        Kind::Message { parts, .. } => texts("output_text.delta", "content_index", parts),
        Kind::Call { .. } => ["{\"a\"", ":1}"]
            .map(|piece| event("function_call_arguments.delta", json!({"delta": piece})))
            .to_vec(),
        Kind::Image | Kind::Server(_) => Vec::new(),
    };
    match sent {
        Events::All => [vec![added], pieces, vec![done]].concat(),
        Events::Unannounced => [pieces, vec![done]].concat(),
        Events::OnlyTheEnd => vec![done],
        Events::None => Vec::new(),
    }
}

/// Merges the events of all items. `picks` says of which item the next one is.
fn merged(mut queues: Vec<Vec<Value>>, picks: &[usize]) -> Vec<Value> {
    let mut merged = Vec::new();
    let mut picks = picks.iter().cycle();
    queues.retain(|queue| !queue.is_empty());
    while !queues.is_empty() {
        let at = picks.next().map_or(0, |pick| pick % queues.len());
        merged.push(queues[at].remove(0));
        queues.retain(|queue| !queue.is_empty());
    }
    merged
}

fn read(events: &[Value]) -> ChatResponse {
    let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    let decoder = || {
        let format = Responses::new(FORMAT);
        AnswerDecoder::new(format, SseLimits::default(), Redaction::default())
    };
    read_answer(decoder(), AggregatorSettings::default(), &[body.as_bytes()]).response.expect("an answer")
}

/// The item as it goes back: a message for each of its parts. OpenAI looks in vain for the ids of messages and calls
/// that it did not store.
fn sent_back(id: &str, kind: Kind) -> Vec<Value> {
    let mut item = item(id, kind);
    let fields = item.as_object_mut().expect("an item");
    match kind {
        Kind::Message { .. } => drop(fields.remove("id")),
        Kind::Call { .. } => ["id", "status"].into_iter().for_each(|field| drop(fields.remove(field))),
        Kind::Reasoning(_) | Kind::Image | Kind::Server(_) => {}
    }
    let Kind::Message { parts, .. } = kind else { return vec![item] };
    let alone = |at: usize| {
        let mut message = item.clone();
        message["content"] = json!([item["content"][at]]);
        message
    };
    (0..parts).map(alone).collect()
}

proptest! {
    #[test]
    fn items_go_back_unchanged_and_in_the_order_of_the_answer(
        answers in vec((answer(), vec(any::<usize>(), 1..40)), 1..4)
    ) {
        let mut messages = vec![Message::user("Go.")];
        let mut expected = vec![json!({"role": "user", "content": "Go."})];
        for (number, (items, picks)) in answers.iter().enumerate() {
            let named: Vec<(String, Kind, Events)> =
                (0..).zip(items).map(|(at, (kind, sent))| (format!("{number}i{at}"), *kind, *sent)).collect();
            let queues = named.iter().enumerate().map(|(at, (id, kind, sent))| events(at, id, *kind, *sent));
            let mut events = merged(queues.collect(), picks);
            let output: Vec<Value> = named.iter().map(|(id, kind, _)| item(id, *kind)).collect();
            events.push(json!({"type": "response.completed", "response": {"status": "completed", "output": output}}));
            let response = read(&events);

            let has = |wanted: fn(&Kind) -> bool| items.iter().any(|(kind, _)| wanted(kind));
            let calls = has(|kind| matches!(kind, Kind::Call { .. }));
            let says = has(|kind| matches!(kind, Kind::Message { .. }));
            let ran = has(|kind| matches!(kind, Kind::Server("program_output")));
            let finish = match () {
                () if calls => FinishReason::ToolCalls,
                () if ran && !says => FinishReason::Paused,
                () => FinishReason::Stop,
            };
            prop_assert_eq!(&response.finish.reason, &finish);

            messages.push(response.message().clone());
            expected.extend(named.iter().flat_map(|(id, kind, _)| sent_back(id, *kind)));
            for (_, call) in response.tool_calls() {
                messages.push(Message::tool(ToolResult::new(call, vec!["ok".into()])));
                let mut output = json!({"type": "function_call_output", "call_id": call.id, "output": "ok"});
                let asked = named.iter().map(|(id, kind, _)| item(id, *kind)).find(|item| item["call_id"] == call.id.as_str());
                if let Some(caller) = asked.and_then(|mut asked| asked.as_object_mut()?.remove("caller")) {
                    output["caller"] = caller;
                }
                expected.push(output);
            }
        }
        let form = InputForm::new(FORMAT.into());
        let (json, _) = body(&ChatRequest::new(messages), "m", &BodySettings::default(), &form).expect("a body");
        let mut sent: Value = serde_json::from_slice(&json).expect("JSON");
        prop_assert_eq!(sent["input"].take(), Value::Array(expected));
    }
}
