//! A chain as an HTTP service: a chat page, AI SDK, AG-UI, OpenAI and Anthropic clients over one chain.
//!
#![doc = include_str!("../README.md")]
//!
//! # A page of `useChat` that is loaded again
//! `GET /api/ui/{id}` returns `{"messages": […], "running": …, "before": …}`: the messages of the AI SDK that a client has
//! after it has read the streams of the last turns. Ids of messages, calls and approvals are those of the streams.
//!
//! ```js
//! const load = async (id) => {
//!   const response = await fetch(`/api/ui/${encodeURIComponent(id)}`);
//!   if (response.status === 404) return { messages: [], running: null };
//!   return response.json();
//! };
//!
//! function Chat({ id, loaded }) {
//!   const chat = useChat({
//!     id,
//!     messages: loaded.messages,
//!     resume: loaded.running !== null,
//!     transport: new DefaultChatTransport({ api: "/api/ui" }),
//!     sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
//!   });
//!   // …
//! }
//! ```
//!
//! - `stop()` of `useChat` only disconnects. The turn continues, and the next message is refused while it runs (409): call
//!   `POST /api/conversations/{id}/stop` beside it. Or send the header `x-on-disconnect: stop` with each message; then a lost
//!   connection stops the turn, too, so do not set `resume`.
//! - A turn that runs has only its question among the messages. `resume` reads its answer from `GET /api/ui/{id}/stream`.
//! - A page that joins a turn after a decision or a result gets its answer in a new message. Load the page again at its end.
//! - An answer that failed or was stopped has the text that was shown, and a last part `data-incomplete`.
//! - In a live stream, `data-restart` says that the answer so far is void: show only the parts behind the last one of a round.
//! - A call that was left unanswered when the conversation went on ends with an error. One that was approved with other
//!   arguments shows those of the model. One that was started before its process died asks for approval again.
//! - The messages have all calls, also those that the chain hides from the stream. Hiding is no protection.
//! - Not stored, and missing, are void attempts and the reason of a denial.

mod access;
mod inspector;
mod markdown;
mod places;
mod readiness;
mod refusal;
mod relay;
mod request_id;
mod routes;
mod serve;
mod server;
mod shared_turn;
mod turns;

pub use access::limits::ServerLimits;
pub use access::origins::AllowedOrigins;
pub use access::tokens::Tokens;
pub use inspector::Inspector;
#[cfg(feature = "redis")]
pub use relay::RedisRelay;
pub use relay::{Appended, Begun, RelayError, RunBatch, RunEnd, RunPage, RunState, TurnRelay, TurnRun};
pub use serve::serve;
pub use server::ChatServer;
