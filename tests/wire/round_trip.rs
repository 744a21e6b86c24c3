//! One conversation goes round five providers twice, with calls in the text for some, and a word is redacted.
//!
//! Every answer has the word in its reasoning and its text, cut within it. Neither the memory nor any request has it,
//! and each request pairs calls and results by the rules of its API.

use std::sync::Arc;

use advisor_chain::anthropic::AnthropicModel;
use advisor_chain::gemini::GeminiModel;
use advisor_chain::memory::validate_transcript;
use advisor_chain::ollama::OllamaModel;
use advisor_chain::openai::{OpenAiModel, OpenAiResponsesModel};
use advisor_chain::stream_policy::ReplaceText;
use advisor_chain::text_tool_calls::{PromptFormat, TextToolCalls, ToolManifest};
use advisor_chain::{
    ChatClient, ChatMemoryAdvisor, ChatModel, ConversationKey, FnTool, InMemoryStore, Message,
    ToolCallAdvisor, ToolDefinition,
};
use advisor_testkit::{
    ChatTranscript, GeminiTranscript, MessagesTranscript, OllamaTranscript, ReplayServer, Reply,
    ResponsesTranscript,
};
use bytes::Bytes;
use serde_json::{Value, json};

const WORD: &str = "Mallory";
const INSTEAD: &str = "[name]";
const CITIES: [&str; 2] = ["Oslo", "Rome"];

/// A provider of the round.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Api {
    Chat,
    Responses,
    Messages,
    Gemini,
    Ollama,
}

/// A turn with a provider; some have calls in their text.
#[derive(Debug, Clone, Copy)]
struct Leg {
    api: Api,
    in_text: Option<PromptFormat>,
}

const XML: Option<PromptFormat> = Some(PromptFormat::Xml);
const JSON: Option<PromptFormat> = Some(PromptFormat::Json);

const LEGS: [Leg; 10] = [
    Leg { api: Api::Chat, in_text: XML },
    Leg { api: Api::Responses, in_text: None },
    Leg { api: Api::Messages, in_text: None },
    Leg { api: Api::Gemini, in_text: None },
    Leg { api: Api::Ollama, in_text: JSON },
    Leg { api: Api::Chat, in_text: None },
    Leg { api: Api::Responses, in_text: JSON },
    Leg { api: Api::Messages, in_text: XML },
    Leg { api: Api::Gemini, in_text: JSON },
    Leg { api: Api::Ollama, in_text: None },
];

fn weather() -> ToolDefinition {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    ToolDefinition::new("weather", "Tells the weather.", schema)
}

/// The parts of an answer: reasoning, pieces of text, and the cities of its calls.
struct Said {
    text: Vec<String>,
    cities: &'static [&'static str],
}

impl Said {
    fn of(leg: Leg, round: usize) -> Self {
        let mut text = vec!["I know Mal".to_owned(), "lory. ".to_owned()];
        let cities: &[&str] = if round == 0 { &CITIES } else { &[] };
        let Some(format) = leg.in_text else { return Self { text, cities } };
        let manifest = ToolManifest::new(format, [&weather()]);
        text.extend(cities.iter().map(|city| manifest.call("weather", &json!({"city": city}).to_string())));
        Self { text, cities: &[] }
    }
}

/// Writes an answer as the server of this API; `turn` makes the ids of its calls unique.
fn reply(leg: Leg, turn: usize, round: usize) -> Reply {
    let said = Said::of(leg, round);
    let calls: Vec<(String, Value)> = said
        .cities
        .iter()
        .enumerate()
        .map(|(place, city)| (format!("call_{turn}_{place}"), json!({"city": city})))
        .collect();
    macro_rules! written {
        ($transcript:ident, $call:expr) => {{
            let begun = $transcript::new("m").reasoning("Mal").reasoning("lory asks.");
            let told = said.text.iter().fold(begun, |begun, piece| begun.text(piece));
            calls.iter().enumerate().fold(told, $call)
        }};
    }
    let body: Bytes = match leg.api {
        Api::Chat => {
            let call = |answer: ChatTranscript, (at, (id, arguments)): (usize, &(String, Value))| {
                answer.tool_call(i64::try_from(at).unwrap(), id, "weather", &[&arguments.to_string()])
            };
            let reason = if calls.is_empty() { "stop" } else { "tool_calls" };
            written!(ChatTranscript, call).finish(reason).usage(3, 2).done()
        }
        Api::Responses => {
            let call = |answer: ResponsesTranscript, (_, (id, arguments)): (usize, &(String, Value))| {
                answer.tool_call(id, "weather", &[&arguments.to_string()])
            };
            written!(ResponsesTranscript, call).usage(3, 2).done()
        }
        Api::Messages => {
            let call = |answer: MessagesTranscript, (_, (id, arguments)): (usize, &(String, Value))| {
                answer.tool_call(id, "weather", &[&arguments.to_string()])
            };
            written!(MessagesTranscript, call).usage(3, 2).done()
        }
        Api::Gemini => {
            let call = |answer: GeminiTranscript, (_, (id, arguments)): (usize, &(String, Value))| {
                answer.tool_call(id, "weather", arguments)
            };
            written!(GeminiTranscript, call).usage(3, 2).done()
        }
        Api::Ollama => {
            let call = |answer: OllamaTranscript, (_, (_, arguments)): (usize, &(String, Value))| {
                answer.tool_call("weather", arguments)
            };
            return Reply::ndjson(written!(OllamaTranscript, call).usage(3, 2).done()).split_every(5);
        }
    };
    Reply::sse(body).split_every(5)
}

fn model(api: Api, url: &str) -> Arc<dyn ChatModel> {
    match api {
        Api::Chat => Arc::new(OpenAiModel::new("m").with_base_url(format!("{url}/v1")).with_api_key("k")),
        Api::Responses => {
            Arc::new(OpenAiResponsesModel::new("m").with_base_url(format!("{url}/v1")).with_api_key("k"))
        }
        Api::Messages => Arc::new(AnthropicModel::new("m").with_base_url(url).with_api_key("k")),
        Api::Gemini => Arc::new(GeminiModel::new("m").with_base_url(url).with_api_key("k")),
        Api::Ollama => Arc::new(OllamaModel::new("m").with_base_url(url)),
    }
}

/// Runs a turn. Returns the bodies of its requests.
async fn run(leg: Leg, turn: usize, memory: &ChatMemoryAdvisor) -> Vec<Value> {
    let server = ReplayServer::start((0..2).map(|round| reply(leg, turn, round))).await.unwrap();
    let tool = FnTool::new(weather(), |arguments: Value| async move {
        Ok(format!("It rains in {}.", arguments["city"].as_str().unwrap_or_default()))
    });
    let builder = ChatClient::builder(model(leg.api, &server.url()))
        .advisor(ToolCallAdvisor::builder().build().unwrap())
        .advisor(memory.clone())
        .advisor(ReplaceText::new([(WORD, INSTEAD)]))
        .tool(tool);
    let builder = match leg.in_text {
        Some(format) => builder.advisor(TextToolCalls::new(format)),
        None => builder,
    };
    let question = format!("Question {turn}?");
    let answer = builder.build().unwrap().prompt().user(question).conversation("c").call().await.unwrap();
    assert_eq!(answer.text(), format!("I know {INSTEAD}. "), "{leg:?}");
    server.requests().iter().map(|request| request.json().unwrap()).collect()
}

/// Collects the objects in a value that have this member, in order.
fn with_member<'a>(value: &'a Value, name: &str, found: &mut Vec<&'a Value>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| with_member(item, name, found)),
        Value::Object(members) => {
            if members.contains_key(name) {
                found.push(value);
            }
            members.values().for_each(|member| with_member(member, name, found));
        }
        _ => {}
    }
}

/// A step of a conversation on the wire: a call, a result, or something else.
#[derive(Debug, PartialEq)]
enum Step {
    Call(String),
    Result(String),
    Other,
}

/// The steps in the messages of a request. Ollama and Gemini tell calls apart by their places.
fn steps(api: Api, body: &Value) -> Vec<Step> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let id = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut steps = Vec::new();
    match api {
        Api::Chat | Api::Ollama => {
            for message in list(&body["messages"]) {
                steps.push(match message["role"] == "tool" {
                    true => Step::Result(id(&message["tool_call_id"])),
                    false => Step::Other,
                });
                steps.extend(list(&message["tool_calls"]).iter().map(|call| Step::Call(id(&call["id"]))));
            }
            if api == Api::Ollama {
                for step in &mut steps {
                    if let Step::Call(id) | Step::Result(id) = step {
                        id.clear();
                    }
                }
            }
        }
        Api::Responses => steps.extend(list(&body["input"]).iter().map(|item| match item["type"].as_str() {
            Some("function_call") => Step::Call(id(&item["call_id"])),
            Some("function_call_output") => Step::Result(id(&item["call_id"])),
            _ => Step::Other,
        })),
        Api::Messages => {
            for message in list(&body["messages"]) {
                steps.extend(list(&message["content"]).iter().map(|part| match part["type"].as_str() {
                    Some("tool_use") => Step::Call(id(&part["id"])),
                    Some("tool_result") => Step::Result(id(&part["tool_use_id"])),
                    _ => Step::Other,
                }));
            }
        }
        Api::Gemini => {
            for content in list(&body["contents"]) {
                steps.extend(list(&content["parts"]).iter().map(|part| {
                    match (part.get("functionCall"), part.get("functionResponse")) {
                        (Some(call), _) => Step::Call(id(&call["name"])),
                        (_, Some(response)) => Step::Result(id(&response["name"])),
                        _ => Step::Other,
                    }
                }));
            }
        }
    }
    steps
}

/// Checks that the results of calls follow them at once, in order. Returns the number of pairs.
fn pairs(steps: &[Step]) -> usize {
    let (mut waiting, mut count) = (Vec::new(), 0);
    for step in steps {
        match step {
            Step::Call(id) => waiting.push(id),
            Step::Result(id) => {
                assert!(!waiting.is_empty() && waiting.remove(0) == id, "{steps:?}");
                count += 1;
            }
            Step::Other => assert!(waiting.is_empty(), "{steps:?}"),
        }
    }
    assert!(waiting.is_empty(), "{steps:?}");
    count
}

#[tokio::test]
async fn law_m1_round_trip_over_five_providers_is_valid() {
    let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
    for (turn, leg) in LEGS.into_iter().enumerate() {
        let requests = run(leg, turn, &memory).await;
        assert_eq!(requests.len(), 2, "{leg:?}");
        for (round, body) in requests.iter().enumerate() {
            let written = body.to_string();
            assert!(!written.contains(WORD), "{leg:?}: {written}");
            assert_eq!(written.contains(INSTEAD), turn + round > 0, "{leg:?}: {written}");
            let questions = (0..=turn).all(|turn| written.contains(&format!("Question {turn}?")));
            assert!(questions, "{leg:?}: {written}");
            let expected = if leg.in_text.is_some() { 0 } else { 2 * (turn + round) };
            assert_eq!(pairs(&steps(leg.api, body)), expected, "{leg:?}: {written}");
            // The signature of a server is for the text that it signed.
            let mut signed = Vec::new();
            with_member(body, "signature", &mut signed);
            assert!(signed.iter().all(|block| !block.to_string().contains(INSTEAD)), "{leg:?}: {signed:?}");
        }
        let transcript = memory.transcript(&ConversationKey::new("c").unwrap()).await.unwrap();
        assert_eq!(validate_transcript(&transcript), [], "{leg:?}");
        let messages: Vec<Message> = transcript.iter().cloned().collect();
        assert_eq!(messages.len(), 5 * (turn + 1));
        assert!(!serde_json::to_string(&messages).unwrap().contains(WORD), "{leg:?}");
    }
}
