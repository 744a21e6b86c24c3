//! The model over a connection: recordings, failures, secrets, the tool loop's requests.

use advisor_core::{ChatRequest, ChatResponse, Error, ErrorKind, Message, Result, text_with_sources};
use advisor_test_support::recordings;
use advisor_testkit::{DescribedTool, ReplayServer, Reply, answer_of};
use provider_ollama::backoff::Backoff;
use provider_ollama::{OllamaModel, ProviderError};
use serde_json::json;

fn model(server: &ReplayServer) -> OllamaModel {
    OllamaModel::new("qwen3").with_base_url(server.url()).with_retries(Backoff::none())
}

async fn server(replies: impl IntoIterator<Item = Reply>) -> ReplayServer {
    ReplayServer::start(replies).await.expect("a port")
}

fn lines(body: impl Into<bytes::Bytes>) -> Reply {
    Reply::sse(body).with_header("content-type", "application/x-ndjson")
}

async fn ask(model: &OllamaModel) -> Result<ChatResponse> {
    answer_of(model, ChatRequest::new(Message::user("Hello"))).await
}

async fn fail(reply: Reply) -> Error {
    let server = server([reply]).await;
    ask(&model(&server)).await.expect_err("the call fails")
}

fn said(error: &Error) -> &ProviderError {
    let source = std::error::Error::source(error).expect("a source");
    source.downcast_ref().expect("the provider's words")
}

#[tokio::test]
async fn law_s5_every_recording_over_http_at_any_split() {
    let recordings = recordings::all("other");
    let own = recordings.iter().filter(|recording| recording.provider == "ollama");
    recordings::assert_replays(own, |_, server| model(server)).await;
}

#[tokio::test]
async fn missing_model_says_what_to_do() {
    for words in ["model 'qwen3' not found", "model \"qwen3\" not found, try pulling it first"] {
        let error = fail(Reply::json(404, json!({ "error": words }))).await;
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.to_string().contains("`ollama pull qwen3`"), "{error}");
        assert_eq!((said(&error).message.as_str(), said(&error).status), (words, Some(404)));
    }
    let other = fail(Reply::html(404, "404 page not found")).await;
    assert!(!other.to_string().contains("ollama pull"), "{other}");
}

#[tokio::test]
async fn failures_of_ollama_have_kinds() {
    let cases = [
        (400, "registry.ollama.ai/library/gemma:2b does not support tools", ErrorKind::InvalidRequest),
        (400, "the input length exceeds the context length", ErrorKind::ContextOverflow),
        (400, "prompt too long; exceeded max context length by 12 tokens", ErrorKind::ContextOverflow),
        (401, "unauthorized", ErrorKind::Authentication),
        (429, "you have reached your limit", ErrorKind::RateLimited { retry_after: None }),
        (500, "model runner has unexpectedly stopped", ErrorKind::Provider { status: Some(500) }),
        (503, "server busy, please try again", ErrorKind::Provider { status: Some(503) }),
    ];
    for (status, words, kind) in cases {
        let error = fail(Reply::json(status, json!({ "error": words }))).await;
        assert_eq!((error.kind(), said(&error).message.as_str()), (kind, words));
    }
}

#[tokio::test]
async fn failure_before_anything_was_shown_is_retried() {
    let load = "{\"error\":\"model failed to load, this may be due to resource limitations\"}\n";
    let answer =
        "{\"message\":{\"content\":\"Hi\"},\"done\":false}\n{\"done\":true,\"done_reason\":\"stop\"}\n";
    let server = server([Reply::status(503), lines(load), lines(answer)]).await;
    let waits = Backoff {
        first: std::time::Duration::from_millis(1),
        longest: std::time::Duration::from_millis(1),
        ..Backoff::default()
    };
    let response = ask(&model(&server).with_retries(waits)).await.expect("an answer");
    assert_eq!((response.text().as_str(), server.requests().len()), ("Hi", 3));
}

#[tokio::test]
async fn whole_answer_is_asked_for_and_read() {
    let whole = json!({"model": "qwen3", "message": {"role": "assistant", "content": "Hi", "tool_calls": [
        {"function": {"name": "f", "arguments": {"a": 1}}},
    ]}, "done": true, "done_reason": "stop", "prompt_eval_count": 4, "eval_count": 2});
    let server = server([Reply::json(200, whole)]).await;
    let response = ask(&model(&server).with_streaming(false)).await.expect("an answer");
    assert_eq!((response.text().as_str(), response.tool_calls().count()), ("Hi", 1));
    assert_eq!(response.usage.and_then(|usage| usage.output_tokens), Some(2));
    assert_eq!(server.requests()[0].json().expect("JSON")["stream"], false);
}

#[tokio::test]
async fn request_goes_to_the_chat_path() {
    let server = server([lines("{\"done\":true}\n")]).await;
    ask(&model(&server).with_api_key("key-0123456789")).await.expect("an answer");
    let request = server.requests().pop().expect("a request");
    assert_eq!(
        (request.path.as_str(), request.header("content-type")),
        ("/api/chat", Some("application/json"))
    );
    assert_eq!(request.header("authorization"), Some("Bearer key-0123456789"));
}

#[tokio::test]
async fn law_r3_server_that_repeats_the_key_reveals_nothing() {
    const KEY: &str = "canary-key-0123456789";
    let call = |name: &str| {
        json!({"model": KEY, "message": {"role": "assistant", "content": "", "tool_calls": [
            {"id": KEY, "function": {"name": name, "arguments": {}}},
        ]}, "done": true, "done_reason": KEY})
    };
    let replies = [
        Reply::json(401, json!({ "error": format!("bad key {KEY}") })),
        lines(format!("{{\"error\":\"{KEY}\"}}\n")),
        lines(format!("{KEY}\n")),
        lines(format!("{{\"status\":\"{KEY}\"}}\n")),
        lines(format!("{}\n", call(KEY))),
    ];
    for reply in replies {
        let server = server([reply]).await;
        let shown = match ask(&model(&server).with_api_key(KEY)).await {
            Ok(response) => format!("{response:?}"),
            Err(error) => format!("{error:?} {}", text_with_sources(&error)),
        };
        assert!(!shown.contains("canary"), "{shown}");
    }
    // The name of an offered tool is no secret, whatever it looks like.
    let server = server([lines(format!("{}\n", call("sk-tool-0123456789")))]).await;
    let request = ChatRequest::new(Message::user("x")).with_tool(DescribedTool::named("sk-tool-0123456789"));
    let response = answer_of(&model(&server), request).await.expect("an answer");
    assert_eq!(response.tool_calls().next().expect("a call").1.name, "sk-tool-0123456789");
}
