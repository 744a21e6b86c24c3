//! Checks that any split of any body of the Messages API gives the same chunks or error.
//! A complete answer can go back to the server.
//!
//! The input is a digit (seed of the split), then the body.
#![no_main]

#[path = "../../crates/message-aggregator/tests/all/common.rs"]
mod common;

use std::sync::{Arc, Mutex};

use advisor_core::{ChatModel, ChatRequest, ChatResponse, Chunk, Message, ToolResult, Turn, TurnId};
use advisor_fuzz::{Script, wait_for};
use advisor_testkit::split::random_splits;
use async_trait::async_trait;
use bytes::Bytes;
use common::{ROUND, Run};
use futures::{StreamExt, stream};
use libfuzzer_sys::fuzz_target;
use provider_anthropic::backoff::Backoff;
use provider_anthropic::transport::{ByteStream, Transport, TransportError};
use provider_anthropic::{AnthropicModel, PromptCaching};
use serde_json::Value;

fuzz_target!(|script: &[u8]| {
    let mut script = Script::new(script);
    let seed = script.number() as u64;
    let body = script.rest();
    let whole = answer(&[body]);
    let one_by_one = body.chunks(1).collect();
    for pieces in random_splits(body, seed, 1).map(|split| split.pieces).chain([one_by_one]) {
        assert_eq!(answer(&pieces), whole, "{} pieces", pieces.len());
    }
    let (mut chunks, error) = whole;
    let completed = chunks.iter().filter(|chunk| chunk.completed().is_some()).count();
    assert_eq!(completed, usize::from(error.is_none()), "one completion or one error");
    if let Some(Chunk::Completed(response)) = chunks.pop() {
        assert_sent_back(&response);
        Run { chunks, response, error: None }.assert_lawful();
    }
});

/// Returns the chunks of an answer whose body comes in these pieces, and the error that ends it.
fn answer(pieces: &[&[u8]]) -> (Vec<Chunk>, Option<String>) {
    let pieces = pieces.iter().map(|piece| Bytes::copy_from_slice(piece)).collect();
    ask(&Canned { pieces, asked: Arc::default() }, vec![Message::user("Hello")])
}

fn ask(server: &Canned, messages: Vec<Message>) -> (Vec<Chunk>, Option<String>) {
    let model = AnthropicModel::new("some-model")
        .with_prompt_caching(PromptCaching::FiveMinutes)
        .with_retries(Backoff::none())
        .with_transport(server.clone());
    // A turn of the same name, since ids are made of it.
    let turn = Turn::new(TurnId::new("turn").expect("a short name"));
    let mut request = ChatRequest { turn, ..ChatRequest::new(messages) };
    request.round = ROUND;
    wait_for(async {
        let mut all = Vec::new();
        let mut chunks = match model.stream(request).await {
            Ok(chunks) => chunks,
            Err(error) => return (all, Some(told(&error))),
        };
        while let Some(chunk) = chunks.next().await {
            match chunk {
                Ok(chunk) => all.push(chunk),
                Err(error) => return (all, Some(told(&error))),
            }
        }
        (all, None)
    })
}

/// Returns the text of the error, with the partial answer.
fn told(error: &advisor_core::Error) -> String {
    format!("{:?}: {error}; {:?}", error.kind(), error.partial())
}

/// Sends an answer back with a result for each call, and checks the messages of the request.
fn assert_sent_back(response: &ChatResponse) {
    let calls = response.tool_calls().map(|(_, call)| Message::tool(ToolResult::new(call, vec!["1".into()])));
    let answered = [Message::user("Hello"), response.message().clone()].into_iter().chain(calls);
    let server = Canned { pieces: Vec::new(), asked: Arc::default() };
    ask(&server, answered.chain([Message::user("And?")]).collect());
    let sent: Value = serde_json::from_slice(&server.asked.lock().expect("unpoisoned")).expect("JSON");
    let messages = sent["messages"].as_array().expect("messages");
    let mut called = Vec::new();
    for (place, message) in messages.iter().enumerate() {
        assert_eq!(message["role"], ["user", "assistant"][place % 2], "roles take turns");
        let content = message["content"].as_array().expect("a list");
        assert!(!content.is_empty(), "nothing empty is sent");
        let ids = |kind: &str, key: &str| {
            let blocks = content.iter().filter(|block| block["type"] == kind);
            blocks.map(|block| block[key].as_str().expect("an id").to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(ids("tool_result", "tool_use_id"), called, "each call has its result in the next message");
        called = ids("tool_use", "id");
        assert!(
            content.iter().filter(|block| block["type"] == "tool_use").all(|call| call["input"].is_object())
        );
    }
}

/// A server that gives every request the same answer, and keeps the last request.
#[derive(Clone)]
struct Canned {
    pieces: Vec<Bytes>,
    asked: Arc<Mutex<Vec<u8>>>,
}

#[async_trait]
impl Transport for Canned {
    async fn send(
        &self,
        request: http::Request<Bytes>,
    ) -> Result<http::Response<ByteStream>, TransportError> {
        *self.asked.lock().expect("unpoisoned") = request.into_body().to_vec();
        Ok(http::Response::new(stream::iter(self.pieces.clone().into_iter().map(Ok)).boxed()))
    }
}
