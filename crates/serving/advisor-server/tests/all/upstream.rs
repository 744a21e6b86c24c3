//! Clients that disconnect while a provider answers over HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use advisor_core::{ChatClient, ChatModel, ChatRequest, ChunkStream, Result, async_trait};
use advisor_server::ChatServer;
use advisor_testkit::{ChatTranscript, ReplayServer, Reply};
use chat_memory_advisor::{ChatMemoryAdvisor, InMemoryStore};
use futures::StreamExt;
use provider_openai::OpenAiModel;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::connection::{connect, read_until, served};
use crate::disconnects::{bodies, in_one_piece};
use crate::setting::LIMIT;

/// A model that counts the polls of its answers.
struct Polled {
    model: OpenAiModel,
    polls: Arc<AtomicUsize>,
}

#[async_trait]
impl ChatModel for Polled {
    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
        let (mut answer, polls) = (self.model.stream(request).await?, Arc::clone(&self.polls));
        Ok(ChunkStream::new(futures::stream::poll_fn(move |cx| {
            polls.fetch_add(1, Ordering::SeqCst);
            answer.poll_next_unpin(cx)
        })))
    }
}

/// The moment at which a client disconnects. The provider is silent from then on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaves {
    /// The server has not answered yet.
    BeforeTheHead,
    /// The server has sent the head, since the provider is slow, and no event of the answer.
    BeforeTheFirstEvent,
    AfterText,
}

/// Starts a request, disconnects, and waits until the request to the provider is closed.
async fn leave(path: &'static str, body: Value, leaves: Leaves) {
    let case = format!("{path} {body} {leaves:?}");
    let shown = ChatTranscript::new("m").text("It is").without_done();
    let whole = ChatTranscript::new("m").text("It is").text(" sunny.").finish("stop").done();
    let sent = if leaves == Leaves::AfterText { shown.len() } else { 0 };
    let provider = ReplayServer::start([Reply::sse(whole).stall_after(sent)]).await.unwrap();
    let polls = Arc::new(AtomicUsize::new(0));
    let model = OpenAiModel::new("m").with_base_url(format!("{}/v1", provider.url()));
    let model = Polled { model, polls: Arc::clone(&polls) };
    let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
    let client = ChatClient::builder(model).advisor(memory.clone()).build().unwrap();
    let (address, serving) = served(ChatServer::new(client, memory)).await;

    let mut client = connect(address, path, &body.to_string()).await;
    let asked = timeout(LIMIT, provider.until(|counts| counts.requests == 1)).await;
    assert!(asked.is_ok(), "{case}");
    match leaves {
        Leaves::BeforeTheHead => {}
        Leaves::BeforeTheFirstEvent => drop(read_until(&mut client, "\r\n\r\n").await),
        Leaves::AfterText => drop(read_until(&mut client, "It is").await),
    }
    let before = polls.load(Ordering::SeqCst);
    drop(client);
    assert!(timeout(LIMIT, provider.disconnected()).await.is_ok(), "{case}");
    let counts = provider.counts();
    assert_eq!((counts.requests, counts.replies, counts.disconnects), (1, 0, 1), "{case}");
    if leaves != Leaves::BeforeTheHead {
        assert_eq!(polls.load(Ordering::SeqCst), before, "{case}");
    }
    serving.abort();
}

/// When its only client disconnects, a turn stops in its next poll. It closes the request to the provider without
/// reading from it once more.
#[tokio::test]
async fn law_k2_disconnect_stops_the_request_to_the_provider() {
    let moments = [Leaves::BeforeTheHead, Leaves::BeforeTheFirstEvent, Leaves::AfterText];
    // The protocols without resumption.
    let requests = bodies().into_iter().skip(2).chain(in_one_piece());
    let cases = requests.flat_map(|(path, body)| {
        let is_stream = body["stream"] != json!(false);
        // An answer in one piece has no head before its end.
        let moments = moments.into_iter().take(if is_stream { 3 } else { 1 });
        moments.map(move |leaves| leave(path, body.clone(), leaves))
    });
    // At once: the server waits a moment before it sends the head of a slow answer.
    futures::future::join_all(cases).await;
}
