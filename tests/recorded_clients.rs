//! Recorded streams of real servers, read by the provider's model and written for clients: every encoder keeps the rules
//! of its protocol.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "../crates/advisor-sse/tests/all/table.rs"]
mod table;

use std::sync::Arc;
use std::time::Duration;

use advisor_chain::anthropic::AnthropicModel;
use advisor_chain::gemini::{GeminiModel, Profile, StreamForm};
use advisor_chain::ollama::OllamaModel;
use advisor_chain::openai::OpenAiResponsesModel;
use advisor_chain::{ChatModel, ChatOptions, ChatRequest, Chunk, Message, OpenAiModel, Result};
use advisor_sse::{Frame, Frames};
use advisor_testkit::ReplayServer;
use advisor_testkit::recordings::{self, Recording};
use futures::StreamExt;

use table::{encode, protocols};

const LIMIT: Duration = Duration::from_secs(60);

/// Returns the model that reads a recording, at this address.
fn model(recording: &Recording, url: &str) -> Arc<dyn ChatModel> {
    match recording.api.as_str() {
        "openai-chat" => Arc::new(OpenAiModel::new("m").with_base_url(url)),
        "openai-responses" => Arc::new(OpenAiResponsesModel::new("m").with_base_url(url)),
        "anthropic-messages" => Arc::new(AnthropicModel::new("m").with_base_url(url)),
        "gemini" => {
            let mut profile = Profile::gemini_api();
            if recording.body.starts_with(b"[") {
                profile.stream = StreamForm::Array;
            }
            Arc::new(GeminiModel::new("m").with_profile(profile).with_base_url(url))
        }
        _ => Arc::new(OllamaModel::new("m").with_base_url(url)),
    }
}

/// Reads a recording to its end. One that cannot be read at all has no chunk.
async fn items(recording: &Recording) -> Vec<Result<Chunk>> {
    // A model that asks again gets the same answer.
    let server = ReplayServer::start((0..3).map(|_| recording.reply())).await.unwrap();
    let mut options = ChatOptions::new();
    options.choices = Some(recording.choices);
    let request = ChatRequest::new(Message::user("Hello")).with_options(options);
    match model(recording, &server.url()).stream(request).await {
        Ok(stream) => tokio::time::timeout(LIMIT, stream.collect()).await.unwrap(),
        Err(error) => vec![Err(error)],
    }
}

async fn check(api: &str) {
    for recording in &recordings::all(api) {
        if api == "other" && recording.provider != "ollama" {
            continue;
        }
        let items = items(recording).await;
        for (protocol, encoder, check) in protocols() {
            let stream = encode(encoder(), Frames::new(), &items);
            assert_eq!(
                check(&Frame::read_all(&stream)),
                Ok(()),
                "{} in {protocol}:\n{stream}",
                recording.name
            );
        }
    }
}

#[tokio::test]
async fn chat_completions_are_written_for_every_client() {
    check("openai-chat").await;
}

#[tokio::test]
async fn responses_are_written_for_every_client() {
    check("openai-responses").await;
}

#[tokio::test]
async fn messages_are_written_for_every_client() {
    check("anthropic-messages").await;
}

#[tokio::test]
async fn gemini_is_written_for_every_client() {
    check("gemini").await;
}

#[tokio::test]
async fn ollama_is_written_for_every_client() {
    check("other").await;
}
