//! `ServerLimits`: the bounds of a server.

use std::time::Duration;

/// Bounds of a server.
///
/// # Example
/// ```
/// use advisor_server::ServerLimits;
///
/// let mut limits = ServerLimits::default();
/// (limits.running_turns, limits.body_bytes) = (64, 64 << 10);
/// assert_eq!(limits.ended_turns, 256);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerLimits {
    /// The bytes of a request. More is answered with 413. 32 MiB by default, as with Anthropic: clients send the pictures of
    /// their history again, in base64. A server without large memory and with many tenants sets less. A body also has at
    /// most 131,072 JSON values (items of lists and fields of objects), of which a picture or a long text is one.
    pub body_bytes: usize,
    /// The connections that are open at once. Further ones wait until one closes. [`serve`](crate::serve) alone applies
    /// it. Keep it below the files that the process may open, since turns need some, too. 8,192 by default.
    pub open_connections: usize,
    /// The time within which the head of the next request arrives on a connection. A slower or idle connection is closed.
    /// [`serve`](crate::serve) alone applies it. 30 seconds by default.
    pub head_timeout: Duration,
    /// The time within which the whole body of a request arrives. A slower one is answered with 408. 30 seconds by
    /// default.
    pub body_timeout: Duration,
    /// The time within which a client takes some of the bytes that wait for it. The connection of a client that takes
    /// none is closed. [`serve`](crate::serve) alone applies it. 30 seconds by default.
    pub write_timeout: Duration,
    /// The turns that run at once. More are answered with 429 and `Retry-After`. 4,096 by default.
    pub running_turns: usize,
    /// The turns of one tenant that run at once. More are answered like those beyond `running_turns`. 1,024 by default.
    /// A server without tokens has one tenant.
    pub running_turns_per_tenant: usize,
    /// The turns that have ended and can still be read. The oldest go first. 256 by default.
    pub ended_turns: usize,
    /// The turns of one tenant that have ended and can still be read. Its oldest go first. 64 by default.
    /// A server without tokens has one tenant.
    pub ended_turns_per_tenant: usize,
    /// The bytes of the events from which an answer in one piece is joined. The turn of a larger answer stops, and the
    /// request is answered with 422. An answer that was whole by then is remembered. 64 MiB by default.
    pub whole_answer_bytes: usize,
    /// The bytes of the messages in a page of a conversation, with their Markdown as elements. The oldest turns of a larger
    /// page are left out, for the page before it; its last turn stays, without elements that have no room. 4 MiB by default.
    /// The turns of a page are read a few at a time, until they have these bytes.
    pub page_bytes: usize,
    /// The chunks of a turn that are kept for readers that join late. 65,536 by default.
    pub kept_chunks: usize,
    /// The bytes of the chunks of a turn that are kept for such readers, about as in JSON. Whole blocks and responses do
    /// not count, since they repeat them. 16 MiB by default.
    pub kept_bytes: usize,
    /// The time for which a request waits for the [relay](crate::ChatServer::with_relay). A turn then starts without it,
    /// and a request for a turn of another process is answered with 503. 500 milliseconds by default.
    pub relay_timeout: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            body_bytes: 32 << 20,
            open_connections: 8_192,
            head_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(30),
            running_turns: 4_096,
            running_turns_per_tenant: 1_024,
            ended_turns: 256,
            ended_turns_per_tenant: 64,
            whole_answer_bytes: 64 << 20,
            page_bytes: 4 << 20,
            kept_chunks: 1 << 16,
            kept_bytes: 16 << 20,
            relay_timeout: Duration::from_millis(500),
        }
    }
}
