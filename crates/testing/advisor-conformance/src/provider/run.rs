//! One answer, from the replay server to the chunks.

use std::future::Future;
use std::time::Duration;

use advisor_core::{AdvisorChain, ChatClient, ChatRequest, ChunkStream, Message, MessageList, Turn, TurnId};
use bytes::Bytes;
use futures::StreamExt;

use super::family::{AnswerPart, WireFamily};
use crate::run::Run;
use advisor_testkit::{ReplayServer, Reply};

/// The longest wait for anything. No wait of a correct provider is near it.
const LIMIT: Duration = Duration::from_secs(10);

/// Waits for a future, and fails if it takes too long.
pub(super) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(LIMIT, future).await {
        Ok(output) => output,
        Err(_) => panic!("waiting for {what} takes too long"),
    }
}

/// Returns a request whose turn has a fixed id, since ids of calls may be made of it.
pub(super) fn request(messages: impl Into<MessageList>) -> ChatRequest {
    ChatRequest {
        turn: Turn::new(TurnId::new("conformance").expect("a short id")),
        ..ChatRequest::new(messages)
    }
}

pub(super) fn question() -> ChatRequest {
    request(Message::user("Hello"))
}

/// Returns the chain of the provider's model alone, at this server.
pub(super) fn chain(family: &dyn WireFamily, server: &ReplayServer) -> AdvisorChain {
    ChatClient::builder(family.model(&server.url()))
        .build()
        .expect("a chain of a model alone")
        .chain()
        .clone()
}

pub(super) async fn server(replies: impl IntoIterator<Item = Reply>) -> ReplayServer {
    ReplayServer::start(replies).await.expect("a port of 127.0.0.1")
}

/// Returns the bytes of each part; `None` if the format cannot express one.
pub(super) fn written(family: &dyn WireFamily, parts: &[AnswerPart]) -> Option<Vec<Bytes>> {
    let written = family.write(parts)?;
    assert_eq!(written.len(), parts.len(), "`write` returns one entry for each part");
    Some(written)
}

/// Returns the reply with these parts, which every format can express.
pub(super) fn reply(family: &dyn WireFamily, parts: &[AnswerPart]) -> Reply {
    let written = written(family, parts);
    family.reply(written.unwrap_or_else(|| panic!("every format can express {parts:?}")).concat().into())
}

/// Reads an answer to its end.
pub(super) async fn read(chain: &AdvisorChain, request: ChatRequest) -> Run {
    let stream = match within("the answer", chain.next_stream(request)).await {
        Ok(stream) => stream,
        Err(error) => return Run { chunks: Vec::new(), end: Err(error) },
    };
    let run = within("the end of the answer", Run::read(stream)).await;
    run.expect("law S1: a stream ends with a completion or an error")
}

/// Returns the next piece of text. One limit holds for all chunks up to it.
pub(super) async fn next_text(stream: &mut ChunkStream) -> String {
    within("the next piece of text", async {
        loop {
            let chunk = stream.next().await.expect("more chunks").expect("no error");
            if let Some(text) = chunk.text() {
                return text.to_owned();
            }
        }
    })
    .await
}
