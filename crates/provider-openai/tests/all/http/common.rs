//! Shared parts of the tests.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use advisor_core::{ChatRequest, ChatResponse, Error, Message, Result, async_trait};
use advisor_testkit::{ChatTranscript, ReplayServer, answer_of};
use bytes::Bytes;
use futures::{StreamExt, stream};
use provider_openai::OpenAiModel;
use provider_openai::backoff::Backoff;
use provider_openai::transport::{ByteStream, Transport, TransportError};
use tokio::time::sleep;

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// A model at this server that asks once.
pub(crate) fn model(server: &ReplayServer) -> OpenAiModel {
    OpenAiModel::new("m").with_base_url(format!("{}/v1", server.url())).with_retries(Backoff::none())
}

pub(crate) fn request() -> ChatRequest {
    ChatRequest::new(Message::user("Hello"))
}

/// Asks and reads to the end.
pub(crate) async fn call(model: &OpenAiModel) -> Result<ChatResponse> {
    call_with(model, request()).await
}

pub(crate) async fn call_with(model: &OpenAiModel, request: ChatRequest) -> Result<ChatResponse> {
    answer_of(model, request).await
}

pub(crate) async fn fail(model: &OpenAiModel) -> Error {
    call(model).await.expect_err("the call fails")
}

/// An answer that says "Hello there" and stops.
pub(crate) fn hello() -> ChatTranscript {
    ChatTranscript::new("m").text("Hello").text(" there").finish("stop")
}

/// The next action of a [`Scripted`] transport.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// The body continues with this text.
    Send(&'static str),
    /// Nothing happens for so long.
    Wait(Duration),
    /// The connection breaks.
    Break,
    /// Nothing happens any more.
    Hang,
}

/// An answer of a [`Scripted`] transport.
struct ScriptedAnswer {
    status: u16,
    retry_after: Option<&'static str>,
    acts: Vec<Act>,
}

/// A transport without a network: one answer per request, with its status and the actions of its body.
#[derive(Clone, Default)]
pub(crate) struct Scripted {
    answers: Arc<Mutex<VecDeque<ScriptedAnswer>>>,
    pub(crate) requests: Arc<Mutex<usize>>,
}

impl Scripted {
    pub(crate) fn answer(self, acts: impl Into<Vec<Act>>) -> Self {
        self.status(200, None, acts)
    }

    /// An answer with this status and `Retry-After`.
    pub(crate) fn status(
        self,
        status: u16,
        retry_after: Option<&'static str>,
        acts: impl Into<Vec<Act>>,
    ) -> Self {
        let answer = ScriptedAnswer { status, retry_after, acts: acts.into() };
        self.answers.lock().expect("unpoisoned").push_back(answer);
        self
    }

    pub(crate) fn model(&self) -> OpenAiModel {
        OpenAiModel::new("m").with_transport(self.clone()).with_retries(Backoff::none())
    }

    pub(crate) fn requests(&self) -> usize {
        *self.requests.lock().expect("unpoisoned")
    }
}

#[async_trait]
impl Transport for Scripted {
    async fn send(&self, _: http::Request<Bytes>) -> Result<http::Response<ByteStream>, TransportError> {
        *self.requests.lock().expect("unpoisoned") += 1;
        let answer = self.answers.lock().expect("unpoisoned").pop_front();
        let ScriptedAnswer { status, retry_after, acts } = answer.expect("an answer is left in the script");
        let mut acts = VecDeque::from(acts);
        // Waits before the first byte of the body happen before the response head.
        while let Some(act @ (Act::Wait(_) | Act::Hang)) = acts.front().copied() {
            acts.pop_front();
            wait(&act).await;
        }
        let mut response = http::Response::builder().status(status);
        if let Some(retry_after) = retry_after {
            response = response.header("retry-after", retry_after);
        }
        let body = stream::unfold(acts, |mut acts| async move {
            loop {
                match acts.pop_front()? {
                    Act::Send(text) => return Some((Ok(Bytes::from(text)), acts)),
                    Act::Break => {
                        let source = "reset".into();
                        return Some((Err(TransportError::Broken { source }), VecDeque::new()));
                    }
                    act => wait(&act).await,
                }
            }
        });
        Ok(response.body(body.boxed() as ByteStream).expect("a response"))
    }
}

async fn wait(act: &Act) {
    match act {
        Act::Wait(time) => sleep(*time).await,
        _ => std::future::pending().await,
    }
}

/// Events of a scripted answer.
pub(crate) const HI: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n";
pub(crate) const STOP: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
pub(crate) const DONE: &str = "data: [DONE]\n\n";
