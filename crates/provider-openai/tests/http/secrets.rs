//! The key is shown nowhere, and traces hold no content.

use std::io;
use std::sync::{Arc, Mutex};

use advisor_core::{ChatRequest, Error, Message};
use advisor_testkit::{ReplayServer, Reply};
use provider_openai::OpenAiModel;
use provider_openai::backoff::Backoff;
use serde_json::json;
use tracing::Level;
use tracing::instrument::WithSubscriber;

use crate::common::{call_with, hello};

const KEY: &str = "sk-canary-key-0123456789";
const HEADER: &str = "canary-header-value";
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
    let echo =
        json!({"error": {"message": format!("Incorrect API key provided: {KEY} {HEADER}"), "code": KEY}});
    let answer = advisor_testkit::ChatTranscript::new("m").text(ANSWER).finish("stop").done();
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
        Reply::sse(hello().without_done()).cut_after(250),
    ];
    let calls = replies.len();
    let server = ReplayServer::start(replies).await.expect("a port");
    let model = OpenAiModel::new("m")
        .with_base_url(format!("{}/v1?token={KEY}", server.url()))
        .with_api_key(KEY)
        .with_header("x-secret", HEADER)
        .with_retries(Backoff::none());
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber =
        tracing_subscriber::fmt().with_max_level(Level::TRACE).with_writer(move || writer.clone()).finish();
    let run = async {
        let mut told = format!("{model:?} {model:#?}");
        for _ in 0..calls {
            match call_with(&model, ChatRequest::new(Message::user(QUESTION))).await {
                Ok(response) => assert_eq!(response.text(), ANSWER),
                Err(error) => told.push_str(&all_of(&error)),
            }
        }
        let unreachable = model.clone().with_base_url(format!("http://{KEY}:{KEY}@127.0.0.1:1/v1"));
        told.push_str(&format!("{unreachable:?}"));
        let error =
            call_with(&unreachable, ChatRequest::new(Message::user(QUESTION))).await.expect_err("refused");
        told.push_str(&all_of(&error));
        told
    };
    let told = run.with_subscriber(subscriber).await;
    let traced = String::from_utf8(lines.0.lock().expect("unpoisoned").clone()).expect("text");
    assert!(traced.contains("asking the model"), "the traces were captured: {traced}");
    for secret in [KEY, HEADER] {
        assert!(server.requests()[0].path.contains(KEY), "the key was sent");
        assert!(!told.contains(secret), "{told}");
        assert!(!traced.contains(secret), "{traced}");
    }
    for content in [QUESTION, ANSWER] {
        assert!(!told.contains(content), "{told}");
        assert!(!traced.contains(content), "{traced}");
    }
}
