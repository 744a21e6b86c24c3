//! The testkit scripts answers in each wire format, and the real clients read them over HTTP.

use advisor_test_support::{GeminiTranscript, MessagesTranscript, OllamaTranscript, ResponsesTranscript};
use advisor_testkit::{ChatTranscript, answer_of};
use advisor_tests::prelude::*;

use crate::entity_wires::wire::wires;

/// A wire format: an answer in it with an error after its text, and a client of it.
struct Format {
    name: &'static str,
    answer: Reply,
    broken: Reply,
}

const ARGUMENTS: [&str; 2] = [r#"{"ci"#, r#"ty":"Oslo"}"#];

fn chat() -> Format {
    let begun = ChatTranscript::new("m").reasoning("Hm.").text("Let me ").text("look.");
    let calls = begun.clone().tool_call(0, "a", "weather", &ARGUMENTS).tool_call(1, "b", "time", &["{}"]);
    Format {
        name: "Chat Completions",
        answer: Reply::sse(calls.finish("tool_calls").usage(10, 5).done()),
        broken: Reply::sse(begun.error("server_error", "It is broken.").without_done()),
    }
}

fn responses() -> Format {
    let begun = ResponsesTranscript::new("m").reasoning("Hm.").text("Let me ").text("look.");
    let calls = begun.clone().tool_call("a", "weather", &ARGUMENTS).tool_call("b", "time", &["{}"]);
    Format {
        name: "Responses",
        answer: Reply::sse(calls.usage(10, 5).done()),
        broken: Reply::sse(begun.error("server_error", "It is broken.").without_end()),
    }
}

fn messages() -> Format {
    let begun = MessagesTranscript::new("m").reasoning("Hm.").text("Let me ").text("look.");
    let calls = begun.clone().tool_call("a", "weather", &ARGUMENTS).tool_call("b", "time", &["{}"]);
    Format {
        name: "Messages",
        answer: Reply::sse(calls.usage(10, 5).done()),
        broken: Reply::sse(begun.error("api_error", "It is broken.").without_end()),
    }
}

fn gemini() -> Format {
    let begun = GeminiTranscript::new("m").reasoning("Hm.").text("Let me ").text("look.");
    let calls = begun.clone().tool_call("a", "weather", json!({"city": "Oslo"}));
    Format {
        name: "Gemini",
        answer: Reply::sse(calls.tool_call("b", "time", json!({})).usage(10, 5).done()),
        broken: Reply::sse(begun.error(500, "INTERNAL", "It is broken.").without_end()),
    }
}

fn ollama() -> Format {
    let begun = OllamaTranscript::new("m").reasoning("Hm.").text("Let me ").text("look.");
    let calls = begun.clone().tool_call("weather", json!({"city": "Oslo"})).tool_call("time", json!({}));
    Format {
        name: "Ollama",
        answer: Reply::ndjson(calls.usage(10, 5).done()),
        broken: Reply::ndjson(begun.error("It is broken.").without_end()),
    }
}

/// Makes a model whose server is at this address.
type MakeModel = fn(&str) -> Arc<dyn ChatModel>;

/// The formats, each with a model that reads it.
fn formats() -> impl Iterator<Item = (Format, MakeModel)> {
    let formats = [chat(), responses(), messages(), gemini(), ollama()];
    formats.into_iter().zip(wires().map(|wire| wire.model))
}

async fn ask(model: Arc<dyn ChatModel>) -> Result<ChatResponse> {
    answer_of(&model, ChatRequest::new(Message::user("How is the weather?"))).await
}

/// The texts of reasoning in a message.
fn reasoning(message: &Message) -> String {
    let text = |content: &BlockContent| match content {
        BlockContent::Reasoning(text) => Some(text.to_string()),
        _ => None,
    };
    message.blocks().iter().filter_map(|block| text(block.content())).collect()
}

#[tokio::test]
async fn each_format_scripts_reasoning_text_parallel_calls_and_usage() {
    for (format, model) in formats() {
        let server = ReplayServer::start([format.answer.split_every(7)]).await.unwrap();
        let answer = ask(model(&server.url())).await.unwrap();
        assert_eq!(answer.text(), "Let me look.", "{}", format.name);
        assert_eq!(reasoning(answer.message()), "Hm.", "{}", format.name);
        let calls: Vec<(&str, Value)> = answer
            .message()
            .tool_calls()
            .map(|call| (call.name.as_str(), serde_json::from_str(&call.arguments).unwrap()))
            .collect();
        assert_eq!(calls, [("weather", json!({"city": "Oslo"})), ("time", json!({}))], "{}", format.name);
        let usage = answer.usage().unwrap();
        assert_eq!((usage.input_tokens, usage.output_tokens), (Some(10), Some(5)), "{}", format.name);
    }
}

#[tokio::test]
async fn each_format_scripts_an_error_after_text() {
    for (format, model) in formats() {
        let server = ReplayServer::start([format.broken]).await.unwrap();
        let error = ask(model(&server.url())).await.unwrap_err();
        assert!(error.to_string().starts_with("the provider failed"), "{}: {error}", format.name);
        let partial = error.partial().map(ChatResponse::text).unwrap_or_default();
        assert_eq!(partial, "Let me look.", "{}", format.name);
    }
}
