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

/// The requests of protocols without resumption: streams, and whole answers.
fn requests() -> Vec<(&'static str, Value)> {
    let message =
        json!({"id": "u1", "role": "user", "content": "Hi", "parts": [{"type": "text", "text": "Hi"}]});
    let mut requests = vec![
        ("/api/chunks", json!({"message": "Hi", "conversation": "c1"})),
        ("/api/ag-ui", json!({"threadId": "c1", "runId": "r1", "messages": [message]})),
    ];
    for stream in [true, false] {
        requests.extend([
            ("/v1/chat/completions", json!({"messages": [message], "user": "c1", "stream": stream})),
            ("/v1/responses", json!({"input": "Hi", "conversation": "c1", "stream": stream})),
            ("/v1/messages", json!({"messages": [message], "max_tokens": 9, "stream": stream})),
        ]);
    }
    requests
}

/// When its only client disconnects, a turn stops in its next poll. It closes the request to the provider without
/// reading from it once more.
#[tokio::test]
async fn law_k2_disconnect_stops_the_request_to_the_provider() {
    let shown = ChatTranscript::new("m").text("It is").without_done();
    let whole = ChatTranscript::new("m").text("It is").text(" sunny.").finish("stop").done();
    for (path, body) in requests() {
        let stalled = Reply::sse(whole.clone()).stall_after(shown.len());
        let provider = ReplayServer::start([stalled]).await.unwrap();
        let polls = Arc::new(AtomicUsize::new(0));
        let model = OpenAiModel::new("m").with_base_url(format!("{}/v1", provider.url()));
        let model = Polled { model, polls: Arc::clone(&polls) };
        let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
        let client = ChatClient::builder(model).advisor(memory.clone()).build().unwrap();
        let (address, serving) = served(ChatServer::new(client, memory)).await;

        let mut client = connect(address, path, &body.to_string()).await;
        let is_stream = body["stream"] != json!(false);
        if is_stream {
            read_until(&mut client, "It is").await;
        } else {
            timeout(LIMIT, provider.until(|counts| counts.requests == 1)).await.unwrap();
        }
        let before = polls.load(Ordering::SeqCst);
        drop(client);
        timeout(LIMIT, provider.disconnected()).await.unwrap();
        let counts = provider.counts();
        assert_eq!((counts.requests, counts.replies, counts.disconnects), (1, 0, 1), "{path} {is_stream}");
        if is_stream {
            assert_eq!(polls.load(Ordering::SeqCst), before, "{path}");
        }
        serving.abort();
    }
}
