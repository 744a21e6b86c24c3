//! Clauses about requests.

use std::collections::BTreeSet;

use advisor_core::{ChatRequest, FinishReason, Message, MessageList, ToolDefinition, ToolResult, ToolSet};
use serde_json::{Value, json};

use super::family::AnswerPart::{Call, End, Finish, Text};
use super::family::WireFamily;
use super::run::{chain, question, reply, request, server, within};
use advisor_testkit::DescribedTool;

/// Names of two tools, one with a dot as in names of MCP servers. Without it they are equal.
const NAMES: [&str; 2] = ["docs.search", "docs_search"];

/// The next request of a turn sends the answer with its calls and the results, each result once and in call order.
pub async fn tool_results_are_sent_back(family: &dyn WireFamily) {
    let call = |id, arguments| Call { id, name: "weather", arguments };
    let calls = [
        Text("Let me look."),
        call("call_oslo_1", &["{\"city\":\"Oslo\"}"]),
        call("call_rome_1", &["{\"city\":\"Rome\"}"]),
        Finish(FinishReason::ToolCalls),
        End,
    ];
    let answer = [Text("Cold and warm."), Finish(FinishReason::Stop), End];
    let server = server([reply(family, &calls), reply(family, &answer)]).await;
    let chain = chain(family, &server);
    let first = within("the calls", chain.next_call(question())).await.expect("an answer with calls");
    let mut messages = MessageList::from(vec![Message::user("Hello"), first.message().clone()]);
    for ((_, call), words) in first.tool_calls().zip(["4 degrees", "31 degrees"]) {
        messages.push(Message::tool(ToolResult::new(call, vec![words.into()])));
    }
    let second =
        within("the answer", chain.next_call(request(messages))).await.expect("an answer to the results");
    assert_eq!(second.text(), "Cold and warm.");
    let sent = server.requests().pop().expect("the second request").body;
    let sent = String::from_utf8_lossy(&sent);
    let at = |words: &str| sent.find(words).unwrap_or_else(|| panic!("`{words}` is missing: {sent}"));
    let (said, results) = (at("Let me look.").max(at("Rome")), [at("4 degrees"), at("31 degrees")]);
    assert!(at("Oslo") < at("Rome"), "the calls are in order: {sent}");
    assert!(said < results[0] && results[0] < results[1], "the results follow, in call order: {sent}");
    for words in ["4 degrees", "31 degrees"] {
        assert_eq!(sent.matches(&format!("\"{words}")).count(), 1, "`{words}` is sent once: {sent}");
    }
}

/// A tool is offered, called and sent back under a name that the server accepts. The chain knows it under its own name.
pub async fn tool_names_come_back(family: &dyn WireFamily) {
    let asked = || ChatRequest {
        tools: NAMES.map(DescribedTool::named).into_iter().fold(ToolSet::new(), ToolSet::with),
        ..question()
    };
    let answer = [Text("Hi"), Finish(FinishReason::Stop), End];
    let offering = server([reply(family, &answer)]).await;
    within("an answer", chain(family, &offering).next_call(asked())).await.expect("an answer");
    let offer = offering.requests().pop().expect("a request").json().expect("JSON");
    let texts = all_values(&offer).into_iter().filter_map(Value::as_str);
    let wire_names: BTreeSet<_> = texts.filter(is_like_a_name).collect();
    assert_eq!(wire_names.len(), NAMES.len(), "each tool has a different name: {offer}");
    let mut called = BTreeSet::new();
    for wire_name in wire_names {
        let name: &'static str = Box::leak(wire_name.into());
        let call = Call { id: "call_docs_1", name, arguments: &["{}"] };
        let calling = [call, Finish(FinishReason::ToolCalls), End];
        let server = server([reply(family, &calling), reply(family, &answer)]).await;
        let chain = chain(family, &server);
        let first = within("the call", chain.next_call(asked())).await.expect("an answer with a call");
        let (_, call) = first.tool_calls().next().expect("the call");
        called.insert(call.name.to_string());
        let result = Message::tool(ToolResult::new(call, vec!["found".into()]));
        let messages = MessageList::from(vec![Message::user("Hello"), first.message().clone(), result]);
        let again = ChatRequest { tools: asked().tools, ..request(messages) };
        within("the answer", chain.next_call(again)).await.expect("an answer to the result");
        let sent = server.requests().pop().expect("the second request").body;
        let sent = String::from_utf8_lossy(&sent);
        let written = sent.matches(&format!("\"{wire_name}\"")).count();
        assert!(written > 1, "the tool and its call have the same name in a request: {sent}");
    }
    assert_eq!(called, BTreeSet::from(NAMES.map(str::to_owned)), "each call is of the offered tool");
}

/// The schema of a tool's arguments is sent as it is, beside the tool's name and description.
pub async fn schema_of_a_tool_is_sent_as_it_is(family: &dyn WireFamily) {
    let schema = json!({
        "type": "object",
        "properties": {
            "place": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
            "days": {"type": "array", "items": {"type": "integer"}},
            "unit": {"type": "string", "enum": ["c", "f"]},
        },
        "required": ["place"],
    });
    let look = DescribedTool::new(ToolDefinition::new("look", "Looks around.", schema.clone()));
    let server = server([reply(family, &[Text("Hi"), Finish(FinishReason::Stop), End])]).await;
    let asked = ChatRequest { tools: ToolSet::new().with(look), ..question() };
    within("an answer", chain(family, &server).next_call(asked)).await.expect("an answer");
    let sent = server.requests().pop().expect("a request").json().expect("JSON");
    let fields = [json!("look"), json!("Looks around."), schema];
    let mut objects = all_values(&sent).into_iter().filter_map(Value::as_object);
    let has_all = objects.any(|found| fields.iter().all(|field| found.values().any(|value| value == field)));
    assert!(has_all, "no tool with this name, description and schema: {sent:#}");
}

/// Returns a JSON value and all values in it.
fn all_values(json: &Value) -> Vec<&Value> {
    let inner: Vec<_> = match json {
        Value::Array(items) => items.iter().collect(),
        Value::Object(fields) => fields.values().collect(),
        _ => Vec::new(),
    };
    std::iter::once(json).chain(inner.into_iter().flat_map(all_values)).collect()
}

/// Checks whether a text begins like the names, with any character in place of the dot.
fn is_like_a_name(text: &&str) -> bool {
    text.chars().filter(char::is_ascii_alphanumeric).collect::<String>().starts_with("docssearch")
}
