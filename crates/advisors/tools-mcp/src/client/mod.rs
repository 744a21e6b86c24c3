//! `McpTools`: the tools of a connected server, as a set or as an advisor.

mod catalog;
mod connection;
mod content;
mod failure;
mod http_client;
mod link;
mod offer;
pub(crate) mod server;
mod tool;
mod watched;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use advisor_core::{
    AdvisorChain, AdvisorInfo, ChatRequest, ChunkStream, Phase, Placement, Result, StreamAdvisor, ToolSet,
    async_trait,
};

use self::catalog::Catalog;
use self::link::{Attempted, Link};
use self::offer::MergedSets;
use self::server::McpServer;

/// The tools of a connected MCP server. Cheap to clone.
///
/// [`tools`](Self::tools) returns the current set, for [`ChatClientBuilder::tools`]. As an advisor it adds the current
/// set to each round, so that a turn sees a list that changes. Take one of the two.
///
/// # Calls
/// - Progress of the server becomes progress of the tool: its message, or its numbers.
/// - Text, images, sounds and files of a result become its parts, a structured result one JSON value. A text that repeats
///   it is left out. A link is JSON, since as media the provider would fetch it.
/// - Every failure is an error result that the model reads:
///
/// | the server | the model reads |
/// | --- | --- |
/// | answers with `isError` | the text of the result |
/// | answers with a JSON-RPC error | `the server … refused the call: …` |
/// | answers with an internal error, or with a status from 500 on | `the server … failed at the call: …; the outcome is unknown` |
/// | refuses the request before the call runs, such as by the status 401 or 429 | `not started: the server …`, and why |
/// | is gone during the call | `the server … is gone; the outcome is unknown` |
/// | cannot be reached for it | `not started: …` |
/// | neither answers nor reports progress in time | `stopped: no answer of the server … within 60 s; the outcome is unknown` |
/// | does not end within the longest time | `stopped: the server … did not end the call within 600 s; the outcome is unknown` |
/// | sends a larger result than allowed | `the tool has run, but its result of … bytes is larger than …` |
/// | asks for input in place of a result | `the server … asks for input of a user or a model, which this client does not give` |
///
/// Over HTTP, the end of a server during a call is often noticed only by the timeout. A session that the server has
/// forgotten is begun anew, and the call that it refused is sent once more; it has not run.
///
/// # Bounds
/// - A message has at most 16 MiB, a text of an error 4 KiB, a list 100 pages and 4 MiB, a result 1,000 parts.
/// - A schema of more than 256 KiB leaves its tool out, with a warning. Arguments are compared with the structure of a
///   schema in bounded steps; the server checks the rest.
///
/// # Cancellation
/// Dropping a call tells the server to stop it (`notifications/cancelled`). It does not wait for the server.
///
/// # Connections
/// All clones and their tools share one connection. It closes when the last one is dropped, and the process that it
/// started ends; [`close`](Self::close) waits for that. The `rmcp` library runs a task per connection on the runtime
/// in which the connection began.
///
/// A lost connection is replaced at the next use. All turns that wait share one attempt. Its failure is remembered for as
/// long as the attempt took, between 1 and 30 seconds. A connection begins with version 2026-07-28 of the protocol, and
/// with an older one if the server has no newer.
///
/// # Errors
/// As an advisor it leaves out, with a warning, a tool that the chain does not accept, such as one with an invalid schema,
/// and one whose name another tool has: a tool of the request, or one that another
/// server announced earlier, wherever the two stand in the chain. If the server cannot be reached, it adds the last known
/// tools.
///
/// [`ChatClientBuilder::tools`]: advisor_core::ChatClientBuilder::tools
#[derive(Clone)]
pub struct McpTools {
    link: Arc<Link>,
    listing: Arc<Mutex<Listing>>,
}

/// The lists of a server.
#[derive(Default)]
struct Listing {
    /// The connection and the announced list that `current` belongs to.
    of: (u64, u64),
    current: Arc<Attempted<Arc<Catalog>>>,
    /// The list that was read last.
    last: Option<Arc<Catalog>>,
    merged: MergedSets,
}

impl McpTools {
    async fn connect(server: McpServer) -> Result<Self> {
        let tools = Self { link: Arc::new(Link::new(server)), listing: Arc::default() };
        tools.catalog().await?;
        Ok(tools)
    }

    /// Returns the current tools. Connects again if the connection was lost, and lists again if the server has
    /// announced another list.
    ///
    /// # Errors
    /// Those of [`McpServer::connect`].
    pub async fn tools(&self) -> Result<ToolSet> {
        Ok(self.catalog().await?.set.clone())
    }

    /// Closes the connection and waits until it is closed, at most 10 seconds. A later use connects again.
    pub async fn close(&self) {
        if let Some(connection) = self.link.take() {
            connection.close().await;
        }
    }

    async fn catalog(&self) -> Result<Arc<Catalog>> {
        let connection = self.link.connection().await?;
        let current = self.listing_of(connection.list());
        let before = self.listing().last.clone();
        let catalog = current.get(Catalog::read(&self.link, &connection, before.as_deref())).await?;
        self.listing().last = Some(Arc::clone(&catalog));
        Ok(catalog)
    }

    fn listing_of(&self, list: (u64, u64)) -> Arc<Attempted<Arc<Catalog>>> {
        let mut listing = self.listing();
        if listing.of != list {
            listing.of = list;
            listing.current = Arc::default();
        }
        Arc::clone(&listing.current)
    }

    fn listing(&self) -> MutexGuard<'_, Listing> {
        self.listing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AdvisorInfo for McpTools {
    fn name(&self) -> &str {
        &self.link.server.settings.name
    }

    fn placement(&self) -> Placement {
        Placement::new(Phase::Round)
    }
}

#[async_trait]
impl StreamAdvisor for McpTools {
    async fn advise_stream(self: Arc<Self>, request: ChatRequest, next: AdvisorChain) -> Result<ChunkStream> {
        let catalog = match self.catalog().await {
            Err(error) => {
                let (server, error_kind) = (self.link.server.settings.name.as_str(), error.kind().as_str());
                tracing::warn!(server, error = error_kind, "the tools of an MCP server cannot be listed");
                self.listing().last.clone().ok_or(error)?
            }
            Ok(catalog) => catalog,
        };
        let tools = self.offered(&request, &catalog, &next).await;
        next.next_stream(ChatRequest { tools, ..request }).await
    }
}

impl fmt::Debug for McpTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpTools").field("server", &self.link.server).finish_non_exhaustive()
    }
}
