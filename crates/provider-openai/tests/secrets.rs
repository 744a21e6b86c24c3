//! The key is shown nowhere, and traces hold no content.
//!
//! A test program of its own: what is traced is decided per process.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a failing helper is a failing test")]

use std::io;
use std::sync::{Arc, Mutex};

use advisor_core::{ChatModel, ChatRequest, Chunk, Error, Message, Result};
use advisor_testkit::{ChatTranscript, ReplayServer, Reply};
use futures::StreamExt;
use provider_openai::OpenAiModel;
use provider_openai::backoff::Backoff;
use serde_json::json;
use tracing::Level;

const KEY: &str = "sk-canary-key-0123456789";
const HEADER: &str = "canary-header-value";
const BEARER: &str = "canary-behind-a-scheme";
const QUERY: &str = "canary-in-the-address";
const QUESTION: &str = "canary question";
const ANSWER: &str = "canary answer";

/// Everything that an error tells: its text, its debug form, and those of its sources.
fn all_of(error: &Error) -> String {
    let mut all = format!("{error} {error:?} {error:#?}");
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        all.push_str(&format!(" {cause} {cause:?} {cause:#?}"));
        source = cause.source();
    }
    all
}

/// The text of the answer.
async fn ask(model: &OpenAiModel) -> Result<String> {
    let mut stream = model.stream(ChatRequest::new(Message::user(QUESTION))).await?;
    let mut text = String::new();
    while let Some(chunk) = stream.next().await {
        text.push_str(Chunk::text(&chunk?).unwrap_or_default());
    }
    Ok(text)
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("unpoisoned").write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn law_r3_the_key_is_in_no_debug_error_or_trace() {
    let echo = json!({"error": {"message": format!("Incorrect API key provided: {KEY} {HEADER} {BEARER} {QUERY}"), "code": KEY}});
    let answer = ChatTranscript::new("m").text(ANSWER).finish("stop").done();
    let replies = [
        Reply::json(401, &echo),
        Reply::json(500, &echo),
        Reply::html(502, format!("<p>{KEY}")),
        Reply::html(200, format!("<p>{KEY}")),
        Reply::json(200, json!({"data": KEY})),
        Reply::sse(format!("data: {echo}\n\n")),
        Reply::sse(format!("data: {KEY}\n\n")),
        Reply::hang_up(),
        Reply::sse(answer),
        Reply::sse(ChatTranscript::new("m").text("Hello").without_done()).cut_after(999),
    ];
    let calls = replies.len();
    let server = ReplayServer::start(replies).await.expect("a port");
    let model = OpenAiModel::new("m")
        .with_base_url(format!("{}/v1?token={QUERY}", server.url()))
        .with_api_key(KEY)
        .with_header("x-secret", HEADER)
        .with_header("x-other", format!("Bearer {BEARER}"))
        .with_retries(Backoff::none());
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber =
        tracing_subscriber::fmt().with_max_level(Level::TRACE).with_writer(move || writer.clone()).finish();
    let _traced_from_here = tracing::subscriber::set_default(subscriber);
    let mut told = format!("{model:?} {model:#?}");
    let mut completed = 0;
    for _ in 0..calls {
        match ask(&model).await {
            Ok(text) => {
                assert_eq!(text, ANSWER);
                completed += 1;
            }
            Err(error) => told.push_str(&all_of(&error)),
        }
    }
    assert_eq!(completed, 1);
    let unusable = model.clone().with_base_url(format!("http://{KEY}:{KEY}@127.0.0.1:1/v1"));
    told.push_str(&format!("{unusable:?}"));
    told.push_str(&all_of(&ask(&unusable).await.expect_err("a user name")));
    let traced = String::from_utf8(lines.0.lock().expect("unpoisoned").clone()).expect("text");
    assert!(traced.contains("asking the model"), "the traces were captured: {traced}");
    assert!(server.requests()[0].path.contains(QUERY), "the key was sent");
    for secret in [KEY, HEADER, BEARER, QUERY] {
        assert!(!told.contains(secret), "{told}");
        assert!(!traced.contains(secret), "{traced}");
    }
    for content in [QUESTION, ANSWER] {
        assert!(!told.contains(content), "{told}");
        assert!(!traced.contains(content), "{traced}");
    }
}
