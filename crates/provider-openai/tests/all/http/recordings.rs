//! Recorded streams over a connection, and every place at which a stream can be cut.

use advisor_core::{ChatModel, ChatRequest, ChatResponse, Error, ErrorKind, Message, Result, async_trait};
use advisor_test_support::recordings;
use advisor_testkit::ChatTranscript;
use bytes::Bytes;
use futures::{StreamExt, stream};
use provider_openai::OpenAiModel;
use provider_openai::backoff::Backoff;
use provider_openai::transport::{ByteStream, Transport, TransportError};
use serde_json::{Value, json};

use crate::http::common::model;

#[tokio::test]
async fn law_s5_every_recording_over_http_at_any_split() {
    recordings::assert_replays(&recordings::all("openai-chat"), |_, server| model(server)).await;
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
async fn answer_cut_at_any_byte_has_one_outcome() {
    let call = |name: &str| json!({"id": name, "type": "function", "function": {"name": name, "arguments": "{\"ö\":\"😀\"}"}});
    let message = json!({"role": "assistant", "content": "Grüße 😀", "tool_calls": [call("f"), call("g")]});
    let choice = json!({"index": 0, "message": message, "finish_reason": "tool_calls"});
    let answer = json!({"id": "r", "choices": [choice], "usage": {"prompt_tokens": 1}}).to_string();
    let streamed = ChatTranscript::new("m")
        .text("Grüße 😀")
        .tool_call(0, "f", "f", &["{\"ö\":", "\"😀\"}"])
        .tool_call(1, "g", "g", &["{\"ö\":\"😀\"}"])
        .finish("tool_calls")
        .done();
    let calls = ["f", "g"].map(|name| (name.to_owned(), json!({"ö": "😀"})));
    let error = json!({"error": {"message": "überlastet", "code": 503}}).to_string();
    let failed = ChatTranscript::new("m").text("Hi").raw(&error).done();
    for (body, whole) in [
        (streamed, Outcome::Completed),
        (format!("\u{feff}{answer}").into(), Outcome::Completed),
        (error.into(), Outcome::Failed),
        (failed, Outcome::Failed),
    ] {
        assert_cut_anywhere(&body, whole, &calls).await;
    }
}

/// Before the signal that ends the answer, a cut gives a cut answer; after it, the outcome of the signal.
async fn assert_cut_anywhere(body: &Bytes, whole: Outcome, calls: &[(String, Value)]) {
    let name = String::from_utf8_lossy(body);
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
