//! Recorded streams over a connection: one HTTP chunk for each piece, and every place at which a stream can be cut.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use advisor_core::{
    ChatModel, ChatRequest, ChatResponse, Chunk, Error, ErrorKind, Message, Result, async_trait,
};
use advisor_test_support::recordings::{self, Recording};
use advisor_testkit::{ReplayServer, Reply, split};
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use provider_openai::OpenAiModel;
use provider_openai::backoff::Backoff;
use provider_openai::transport::{ByteStream, ReqwestTransport, Transport, TransportError};
use serde_json::{Value, json};

use crate::http::common::{call_with, model};

/// Records the pieces of the body.
#[derive(Clone)]
struct Watched {
    inner: ReqwestTransport,
    received: Arc<Mutex<Vec<Bytes>>>,
}

#[async_trait]
impl Transport for Watched {
    async fn send(
        &self,
        request: http::Request<Bytes>,
    ) -> Result<http::Response<ByteStream>, TransportError> {
        let received = Arc::clone(&self.received);
        let keep = move |bytes: &Bytes| received.lock().expect("unpoisoned").push(bytes.clone());
        let response = self.inner.send(request).await?;
        Ok(response.map(|body| body.inspect_ok(keep).boxed() as ByteStream))
    }
}

fn request() -> ChatRequest {
    ChatRequest::new(Message::user("x"))
}

fn ends(pieces: &[Bytes]) -> BTreeSet<usize> {
    let lengths = pieces.iter().map(Bytes::len);
    lengths
        .scan(0, |end, length| {
            *end += length;
            Some(*end)
        })
        .collect()
}

/// Replays a recording in these pieces, and checks the input of the decoder and its result.
async fn replay(recording: &Recording, reply: Reply) {
    let pieces = reply.pieces();
    let server = ReplayServer::start([reply]).await.expect("a port");
    let received = Arc::new(Mutex::new(Vec::new()));
    let inner = ReqwestTransport::new(None).expect("a transport");
    let watched = Watched { inner, received: Arc::clone(&received) };
    let result = call_with(&model(&server).with_transport(watched), request()).await;

    let got = recordings::outcome(&result);
    let differences = recording.differences(&got);
    assert!(differences.is_empty(), "{}: {differences:?}\n{got:#}", recording.name);

    // The received body is cut at least where the server cut it, so no piece waits for the next one.
    let received = received.lock().expect("unpoisoned").clone();
    let body: Vec<u8> = received.concat();
    assert!(recording.body.starts_with(&body), "{}", recording.name);
    let sent: BTreeSet<usize> = ends(&pieces).into_iter().filter(|end| *end <= body.len()).collect();
    assert!(ends(&received).is_superset(&sent), "{}: pieces were joined on the way", recording.name);
    if result.is_ok() {
        assert_eq!(body, recording.body, "{}: the body was read to its end", recording.name);
    }
}

#[tokio::test]
async fn every_recording_replays_over_http_whole_and_split() {
    for recording in &recordings::all("openai-chat") {
        replay(recording, recording.reply()).await;
        replay(recording, recording.reply().split_at(&recording.chunk_ends)).await;
    }
}

#[tokio::test]
async fn law_s5_every_recording_over_http_at_random_splits() {
    for recording in &recordings::all("openai-chat") {
        for seed in 0..20 {
            // From a few pieces to many; each is one HTTP chunk.
            let pieces = 2 << (seed % 7);
            let offsets = split::random_offsets(recording.body.len(), seed, pieces);
            replay(recording, recording.reply().split_at(&offsets)).await;
        }
    }
}

#[tokio::test]
async fn law_s5_every_recording_over_http_byte_by_byte() {
    for recording in &recordings::all("openai-chat") {
        replay(recording, recording.reply().split_every(1)).await;
    }
}

/// Answers each request with the beginning of a body, and then its end or a break.
#[derive(Clone)]
struct Cut {
    body: Bytes,
    breaks: bool,
}

#[async_trait]
impl Transport for Cut {
    async fn send(&self, _: http::Request<Bytes>) -> Result<http::Response<ByteStream>, TransportError> {
        let broken = self.breaks.then(|| Err(TransportError::Broken { source: "cut".into() }));
        let items = [Ok(self.body.clone())].into_iter().chain(broken);
        Ok(http::Response::new(stream::iter(items).boxed()))
    }
}

/// The outcome of a cut stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Completed,
    Cut,
    Failed,
}

/// `calls` are those of the whole answer: nothing else may run.
async fn outcome_of_cut(body: Bytes, breaks: bool, calls: &[(String, Value)]) -> Outcome {
    let model = OpenAiModel::new("m").with_transport(Cut { body, breaks }).with_retries(Backoff::none());
    let mut ends = 0;
    let mut last = None;
    match model.stream(ChatRequest::new(Message::user("x"))).await {
        Err(error) => last = Some(Err(error)),
        Ok(mut stream) => {
            while let Some(item) = stream.next().await {
                assert!(ends == 0, "nothing follows the end");
                if !matches!(&item, Ok(chunk) if chunk.completed().is_none()) {
                    ends += 1;
                }
                last = Some(item);
            }
        }
    }
    let cut = if breaks { ErrorKind::Connection } else { ErrorKind::Truncated };
    match last.expect("something comes") {
        Ok(chunk) => {
            let response = chunk.completed().expect("the last chunk").clone();
            assert!(runnable(&response).iter().all(|call| calls.contains(call)), "{:?}", runnable(&response));
            Outcome::Completed
        }
        Err(error) => {
            assert_nothing_runs(&error);
            if error.kind() == cut { Outcome::Cut } else { Outcome::Failed }
        }
    }
}

/// The calls that a tool loop would run.
fn runnable(response: &ChatResponse) -> Vec<(String, Value)> {
    let calls = response.tool_calls().map(|(_, call)| call).filter(|call| call.complete);
    calls.filter_map(|call| Some((call.name.to_string(), call.parsed_arguments().ok()?))).collect()
}

fn assert_nothing_runs(error: &Error) {
    let calls = error.partial().into_iter().flat_map(|partial| partial.tool_calls());
    assert!(calls.into_iter().all(|(_, call)| !call.complete), "a call of a cut answer is not complete");
}

#[tokio::test]
async fn stream_cut_at_any_byte_has_one_outcome() {
    let recordings = recordings::all("openai-chat");
    let names = [
        "openai-gpt-4o-2024-08-06-forced-tool-finish-stop-01",
        "groq-meta-llama-llama-4-scout-17b-16e-instruct-error-event-only-01",
        "together-meta-llama-meta-llama-3-1-70b-instruct-turbo-parallel-tools-01",
    ];
    let chosen: Vec<&Recording> =
        recordings.iter().filter(|recording| names.contains(&recording.name.as_str())).collect();
    assert!(recordings.is_empty() || chosen.len() == names.len(), "{chosen:?}");
    for recording in chosen {
        let expected = recording.expected["tool_calls"].as_array().cloned().unwrap_or_default();
        let calls: Vec<(String, Value)> = expected
            .iter()
            .map(|call| {
                (call["name"].as_str().unwrap_or_default().to_owned(), call["arguments_json"].clone())
            })
            .collect();
        let whole = if recording.expected["error"].is_null() { Outcome::Completed } else { Outcome::Failed };
        assert_cut_anywhere(&recording.name, &recording.body, whole, &calls).await;
    }
}

#[tokio::test]
async fn whole_answer_cut_at_any_byte_is_truncated() {
    let call = |name: &str| json!({"id": name, "type": "function", "function": {"name": name, "arguments": "{\"ö\":\"😀\"}"}});
    let message = json!({"role": "assistant", "content": "Grüße 😀", "tool_calls": [call("f"), call("g")]});
    let choice = json!({"index": 0, "message": message, "finish_reason": "tool_calls"});
    let answer = json!({"id": "r", "choices": [choice], "usage": {"prompt_tokens": 1}}).to_string();
    let calls = ["f", "g"].map(|name| (name.to_owned(), json!({"ö": "😀"})));
    let error = json!({"error": {"message": "überlastet", "code": 503}}).to_string();
    let marked = format!("\u{feff}{answer}");
    for (body, whole) in
        [(&answer, Outcome::Completed), (&marked, Outcome::Completed), (&error, Outcome::Failed)]
    {
        assert_cut_anywhere(body, body.as_bytes(), whole, &calls).await;
    }
}

/// Before the signal that ends the answer, a cut gives a cut answer; after it, the outcome of the signal.
async fn assert_cut_anywhere(name: &str, body: &[u8], whole: Outcome, calls: &[(String, Value)]) {
    let body = Bytes::copy_from_slice(body);
    for breaks in [false, true] {
        let mut outcomes = Vec::new();
        for end in 0..=body.len() {
            outcomes.push(outcome_of_cut(body.slice(..end), breaks, calls).await);
        }
        assert_eq!(outcomes.last(), Some(&whole), "{name}");
        let turns = outcomes.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert_eq!((outcomes[0], turns), (Outcome::Cut, 1), "{name}");
    }
}

#[test]
fn chunk_kinds_match_assumptions_of_these_checks() {
    let response = ChatResponse::from("");
    assert!(Chunk::Completed(response.clone()).completed().is_some());
    assert!(Chunk::RoundCompleted(response).completed().is_none());
}
