mod attempted;
pub(crate) mod catalog;
mod connection;
mod content;
mod failure;
mod link;
mod merged;
mod names;
mod offer;
mod schema;
pub(crate) mod server;
mod tls;
mod tool;
mod watched;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use advisor_core::{
    AdvisorChain, AdvisorInfo, ChatRequest, ChunkStream, Phase, Placement, Result, StreamAdvisor, ToolSet,
    async_trait,
};

use self::attempted::Attempted;
use self::catalog::Catalog;
use self::link::Link;
use self::merged::MergedSets;
use self::server::McpServer;

/// The tools of a connected MCP server. Cheap to clone.
///
/// [`tools`](Self::tools) returns the current set, for [`ChatClientBuilder::tools`]. As an advisor it adds the current
/// set to each round, so that a turn sees a list that changes. Take one of the two.
///
/// # Calls
/// - Progress of the server becomes progress of the tool: its message, or its numbers.
/// - Text, images, sounds and files of a result become its parts, a structured result one JSON value.
/// - Every failure is an error result that the model reads: an error of the tool, a refusal of the server, a lost
///   connection, a timeout, a result that is too large.
///
/// # Cancellation
/// Dropping a call tells the server to stop it (`notifications/cancelled`). It does not wait for the server.
///
/// # Connections
/// All clones and their tools share one connection. It closes when the last one is dropped, and the process that it
/// started ends; [`close`](Self::close) waits for that. The `rmcp` library runs a task per connection on the runtime
/// in which the connection began.
///
/// # Errors
/// As an advisor it fails if a tool of the request has the name of one of the server's first list. A tool that the
/// chain does not accept, such as one with an invalid schema, is left out with a warning. So is a tool of a later list
/// whose name another tool has. If the server cannot be reached, or its later list has two tools of one name, it adds
/// the last known tools.
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
    /// The list that was read first.
    first: Option<Arc<Catalog>>,
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
        let catalog = current.get(Catalog::read(&self.link, &connection)).await?;
        let mut listing = self.listing();
        listing.first.get_or_insert_with(|| Arc::clone(&catalog));
        listing.last = Some(Arc::clone(&catalog));
        drop(listing);
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
        let tools = self.offered(&request.tools, &catalog, &next)?;
        next.next_stream(request.with_tools(tools)).await
    }
}

impl fmt::Debug for McpTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpTools").field("server", &self.link.server).finish_non_exhaustive()
    }
}
