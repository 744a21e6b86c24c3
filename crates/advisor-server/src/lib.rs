//! A chain as an HTTP service.
//!
//! [`ChatServer`] mounts one chain under the protocols that clients already speak. All of them share conversations,
//! memory, tools and limits. Its [router](ChatServer::router) fits into any axum application; [`serve`] is a whole
//! server.
//!
//! | route | protocol |
//! | --- | --- |
//! | `GET /` | a chat page |
//! | `POST /api/chat` | the page's events, see [`ChatEvents`](advisor_sse::ChatEvents) |
//! | `POST /api/ui`, `GET /api/ui/{id}/stream` | AI SDK, `useChat` |
//! | `GET /api/ui/{id}` | the messages of a chat for a page of `useChat` that is loaded again |
//! | `POST /api/ag-ui` | AG-UI |
//! | `POST /api/chunks` | the chunks in their own JSON form |
//! | `POST /v1/chat/completions`, `POST /v1/responses`, `GET /v1/models` | OpenAI clients |
//! | `POST /v1/messages` | Anthropic clients |
//! | `GET /api/conversations`, `GET` and `DELETE /api/conversations/{id}` | the conversations |
//! | `GET /api/conversations/{id}/export` | all messages of a conversation, one a line |
//! | `GET /api/conversations/{id}/stream` | the running turn, from the first chunk or behind `Last-Event-ID` |
//! | `POST /api/conversations/{id}/stop` | stops the running turn and those that wait |
//! | `GET /api/conversations/{id}/turns/{turn}/journal` | the order of work in a turn, with an [`Inspector`] |
//! | `GET /healthz`, `GET /readyz` | whether the process runs, and whether turns can begin |
//! | `GET /openapi.json` | the OpenAPI description of the routes |
//! | `GET /metrics` | counters for Prometheus, [if asked for](ChatServer::with_metrics) |
//!
//! With `?view=page`, the page's routes also send reasoning, and the blocks of each answer.

mod access;
mod inspector;
mod large_bodies;
mod markdown;
mod metrics;
mod panics;
mod places;
mod readiness;
mod refusal;
mod relay;
mod request_id;
mod routes;
mod serve;
mod server;
mod turns;

pub use access::limits::ServerLimits;
pub use access::origins::AllowedOrigins;
pub use access::tokens::Tokens;
pub use inspector::Inspector;
#[cfg(feature = "redis")]
pub use relay::RedisRelay;
pub use relay::{
    Appended, Begun, InMemoryRelay, RelayError, RunBatch, RunEnd, RunPage, RunState, TurnRelay, TurnRun,
};
pub use serve::serve;
pub use server::ChatServer;

/// Runs the code of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
