//! Requests that real clients sent are read into messages, tools and options of ours, and written again.
//!
//! Each request of a recording is read by a reader of its API, which knows no rule of any provider crate. The
//! provider's model writes it again, with the profile that the server has. Then both are compared.
//!
//! Several spellings mean the same. The list `RULES` of each API names them with their reasons, and the test prints
//! how many requests differ without each of them (`--nocapture`). A rule that no request needs fails the test. No rule
//! can hide content: every text, argument, id and signature of the recorded messages must be in the written request,
//! before any rule is applied.
//!
//! Left out are the requests of APIs that no provider of ours speaks: Bedrock's Converse and Cohere's.

mod chat;
mod gemini;
mod messages;
mod ollama;
mod read;
mod responses;
mod rule;
use advisor_test_support::recordings::{self, Recording};
use advisor_tests::prelude::*;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use read::Asked;
use rule::{Rule, needed, normalised};

use crate::transport::ScriptedTransport;

/// An API, with the reader of its requests.
struct Api {
    /// The name in the index of the recordings.
    name: &'static str,
    /// The fields of a request that hold what was said.
    said: &'static [&'static str],
    rules: &'static [Rule],
    read: fn(&Value, &str, ScriptedTransport) -> Asked,
    /// The number of recorded requests. More may be added.
    at_least: usize,
}

const CHAT: Api =
    Api { name: "openai-chat", said: &["messages"], rules: chat::RULES, read: chat::read, at_least: 64 };
const RESPONSES: Api = Api {
    name: "openai-responses",
    said: &["instructions", "input"],
    rules: responses::RULES,
    read: responses::read,
    at_least: 14,
};
const MESSAGES: Api = Api {
    name: "anthropic-messages",
    said: &["system", "messages"],
    rules: messages::RULES,
    read: messages::read,
    at_least: 16,
};
const GEMINI: Api = Api {
    name: "gemini",
    said: &["systemInstruction", "contents"],
    rules: gemini::RULES,
    read: gemini::read,
    at_least: 11,
};
const OLLAMA: Api =
    Api { name: "other", said: &["messages"], rules: ollama::RULES, read: ollama::read, at_least: 2 };

/// Returns the request of a recording, if the recorder kept it. One was kept in base64.
fn request_of(recording: &Recording, directory: &std::path::Path) -> Option<Value> {
    let file = std::fs::read(directory.join(format!("{}.request.json", recording.name))).ok()?;
    let request: Value = serde_json::from_slice(&file).expect("JSON");
    let Some(encoded) = request["b64"].as_str() else { return Some(request) };
    Some(serde_json::from_slice(&STANDARD.decode(encoded).expect("base64")).expect("JSON"))
}

/// Returns all texts and numbers in a value, except the words of the wire format.
fn leaves(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| leaves(item, into)),
        Value::Object(fields) => {
            let content =
                fields.iter().filter(|(key, _)| !matches!(key.as_str(), "role" | "type" | "cache_control"));
            content.for_each(|(_, value)| leaves(value, into));
        }
        Value::Null => {}
        Value::String(text) if text.is_empty() => {}
        other => drop(into.insert(other.to_string())),
    }
}

async fn rebuild(api: &Api) {
    let all = recordings::all(api.name);
    let Some(directory) = all.directory() else { return };
    let (mut uses, mut count) = (BTreeMap::<&str, usize>::new(), 0);
    for recording in all.iter().filter(|recording| recording.api != "other" || recording.provider == "ollama")
    {
        let Some(recorded) = request_of(recording, directory) else { continue };
        let transport = ScriptedTransport::default();
        let Asked { request, model } = (api.read)(&recorded, &recording.provider, transport.clone());
        // The answer is none; only the request matters.
        let _answer = model.stream(request).await;
        let written = transport.requests().pop().expect("a request");

        let [mut said, mut sent] = [BTreeSet::new(), BTreeSet::new()];
        api.said.iter().for_each(|field| leaves(&recorded[field], &mut said));
        leaves(&written, &mut sent);
        let lost: Vec<_> = said.difference(&sent).collect();
        assert!(lost.is_empty(), "{}: not sent: {lost:?}", recording.name);

        let expected = normalised(api.rules.iter(), &recorded, &recorded);
        assert_eq!(normalised(api.rules.iter(), &written, &recorded), expected, "{}", recording.name);
        needed(api.rules, &written, &recorded)
            .into_iter()
            .for_each(|rule| *uses.entry(rule).or_default() += 1);
        count += 1;
    }
    println!("{count} requests of {}", api.name);
    for rule in api.rules {
        let times = uses.get(rule.name).copied().unwrap_or_default();
        println!("{times:3} {}: {}", rule.name, rule.reason);
        assert!(times > 0, "no request needs the rule `{}`", rule.name);
    }
    assert!(count >= api.at_least, "only {count} requests");
}

#[tokio::test]
async fn chat_completions_are_written_as_recorded() {
    rebuild(&CHAT).await;
}

#[tokio::test]
async fn responses_are_written_as_recorded() {
    rebuild(&RESPONSES).await;
}

#[tokio::test]
async fn messages_are_written_as_recorded() {
    rebuild(&MESSAGES).await;
}

#[tokio::test]
async fn gemini_contents_are_written_as_recorded() {
    rebuild(&GEMINI).await;
}

#[tokio::test]
async fn ollama_chats_are_written_as_recorded() {
    rebuild(&OLLAMA).await;
}
