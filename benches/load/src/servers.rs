//! The two servers, which share the source of their chunks.

use std::convert::Infallible;
use std::io::Read;
use std::time::{Duration, SystemTime};

use advisor_core::{
    ChatClient, ChatModel, ChatRequest, ChunkStream, Delta, FinishReason, MessageAggregator, Result,
    async_trait,
};
use advisor_server::{ChatServer, ServerLimits, serve};
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use chat_memory_advisor::{ChatMemoryAdvisor, InMemoryStore};
use futures::{Stream, StreamExt, stream};
use serde::Deserialize;
use tokio::net::TcpListener;

/// The time between two chunks of a stream.
const PAUSE: Duration = Duration::from_millis(50);

/// A server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    /// The server of this project.
    Chain,
    /// A handler that formats the same events.
    Bare,
}

impl Program {
    pub(crate) fn named(name: &str) -> Self {
        [Self::Chain, Self::Bare].into_iter().find(|program| program.name() == name).unwrap()
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Chain => "chain",
            Self::Bare => "bare handler",
        }
    }
}

/// Prints the address of the server, and serves until standard input ends.
pub(crate) fn run(program: Program) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        println!("{}", listener.local_addr().unwrap());
        let end = async {
            let reading = || std::io::stdin().read_to_end(&mut Vec::new());
            tokio::task::spawn_blocking(reading).await.unwrap().unwrap();
        };
        match program {
            Program::Chain => serve(listener, chain(), end, Duration::ZERO).await.unwrap(),
            Program::Bare => {
                let router = Router::new().route("/v1/chat/completions", post(bare));
                tokio::select! {
                    served = axum::serve(listener, router) => served.unwrap(),
                    () = end => {}
                }
            }
        }
    });
}

fn chain() -> ChatServer {
    let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
    let client = ChatClient::builder(Paced).advisor(memory.clone()).build().unwrap();
    // All streams are those of one tenant.
    let mut limits = ServerLimits::default();
    limits.running_turns_per_tenant = limits.running_turns;
    ChatServer::new(client, memory).with_limits(limits)
}

/// A model whose chunks are the times at which it sends them. The message is their number.
struct Paced;

#[async_trait]
impl ChatModel for Paced {
    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
        let chunks = request.messages.last().unwrap().text().parse().unwrap();
        let end = stream::iter([Delta::finish(FinishReason::Stop)]);
        let deltas = times(chunks).map(Delta::text).chain(end).map(Ok);
        Ok(ChunkStream::from_deltas(MessageAggregator::new(request.round), deltas))
    }
}

/// Returns the times at which a server sends its chunks, as text of a fixed length.
fn times(chunks: usize) -> impl Stream<Item = String> + Send {
    let clock = tokio::time::interval(PAUSE);
    stream::unfold(clock, |mut clock| async move {
        clock.tick().await;
        Some((format!("{:019}", now_ns()), clock))
    })
    .take(chunks)
}

/// Returns the nanoseconds of a clock that all processes of the machine share.
pub(crate) fn now_ns() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    u64::try_from(now.as_nanos()).unwrap()
}

#[derive(Deserialize)]
struct Asked {
    messages: [Message; 1],
}

#[derive(Deserialize)]
struct Message {
    content: String,
}

/// Sends the events of Chat Completions, without anything behind it.
async fn bare(headers: HeaderMap, Json(Asked { messages: [message] }): Json<Asked>) -> Response {
    let id = headers["idempotency-key"].to_str().unwrap();
    let created = now_ns() / 1_000_000_000;
    let head = format!(
        "data: {{\"id\":\"chatcmpl-{id}\",\"object\":\"chat.completion.chunk\",\"created\":{created},\
         \"model\":\"chain\",\"choices\":[{{\"index\":0,\"delta\":{{"
    );
    let open = "},\"finish_reason\":null}]}\n\n";
    let begin = format!("{head}\"role\":\"assistant\",\"content\":\"\"{open}");
    let end = format!("{head}}},\"finish_reason\":\"stop\"}}]}}\n\ndata: [DONE]\n\n");
    let chunks = times(message.content.parse().unwrap())
        .map(move |time| format!("{head}\"content\":\"{time}\"{open}"));
    let events = stream::iter([begin]).chain(chunks).chain(stream::iter([end]));
    let body = Body::from_stream(events.map(|event| Ok::<_, Infallible>(Bytes::from(event))));
    ([(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-cache")], body).into_response()
}
