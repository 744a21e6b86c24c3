//! `ChainServer`: a chain as a server with one tool, over a stream or HTTP.

mod call;

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use advisor_core::{ChatClient, ConversationKey, Effect, Error, ErrorKind, Result, ToolDefinition};
use axum::Router;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ErrorData, Implementation, JsonObject, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{QuitReason, RequestContext, RoleServer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ServerHandler, ServiceExt};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;

/// A chain as an MCP server with one tool. Cheap to clone.
///
/// The tool has the arguments `message` and, optionally, `conversation`. Each call is a turn of the chain. Without a
/// conversation, it begins a new one. Its result is the final text. If the caller gave a token for progress, the text
/// comes as progress, too, while the model writes it.
///
/// # Cancellation
/// A call that its caller cancels drops its turn. A turn may outlive its connection: by a few seconds over a process, and
/// until its end over HTTP without a session. Memory keeps what the settings of the client say ([`OnDrop`](advisor_core::OnDrop)).
///
/// # Errors
/// A turn that fails is an error result with the kind of the error, and nothing of the conversation.
///
/// # Example
/// ```
/// use advisor_core::{ChatClient, ToolDefinition};
/// use advisor_testkit::{Answer, ScriptedModel};
/// use serde_json::Value;
/// use tools_mcp::ChainServer;
///
/// # fn serve() -> advisor_core::Result<()> {
/// let client = ChatClient::builder(ScriptedModel::new([Answer::from_text("At nine.")])).build()?;
/// let tool = ToolDefinition::new("ask_shop", "Answers questions about the shop.", Value::Null);
/// let server = ChainServer::new(client, tool)?;
/// // One of the two:
/// let _over_stdio = server.serve_stdio();
/// let _over_http = axum::Router::new().nest("/mcp", server.router());
/// # Ok(()) }
/// # serve().unwrap();
/// ```
#[derive(Clone)]
#[must_use]
pub struct ChainServer {
    client: ChatClient,
    tool: Tool,
    tenant: Option<String>,
    allowed_hosts: HashSet<String>,
    turns: Arc<Semaphore>,
}

impl ChainServer {
    /// Creates a server whose tool has the name, the description and the effect of `tool`. Its schema is that of this
    /// server.
    ///
    /// # Errors
    /// Of kind [`Configuration`](ErrorKind::Configuration) for a name that clients refuse.
    pub fn new(client: ChatClient, tool: ToolDefinition) -> Result<Self> {
        tool.validate()?;
        let ToolDefinition { name, description, effect, .. } = tool;
        let hints = match effect {
            Some(Effect::Pure) => Some(ToolAnnotations::new().read_only(true)),
            Some(Effect::Idempotent) => Some(ToolAnnotations::new().idempotent(true)),
            _ => None,
        };
        let mut served = Tool::new(String::from(name), String::from(description), schema());
        served.annotations = hints;
        let allowed_hosts = ["localhost", "127.0.0.1", "::1"].map(String::from).into();
        let turns = Arc::new(Semaphore::new(64));
        Ok(Self { client, tool: served, tenant: None, allowed_hosts, turns })
    }

    /// Sets the tenant of all conversations. Clients of one server share the conversations of its tenant.
    ///
    /// # Errors
    /// Of kind [`Configuration`](ErrorKind::Configuration) for a tenant that no key can have.
    pub fn with_tenant(self, tenant: &str) -> Result<Self> {
        ConversationKey::in_tenant(tenant, "any")?;
        Ok(Self { tenant: Some(tenant.to_owned()), ..self })
    }

    /// Sets the number of turns that run at once, 64 by default. Calls beyond it are refused.
    pub fn with_max_turns(self, max_turns: usize) -> Self {
        Self { turns: Arc::new(Semaphore::new(max_turns.min(Semaphore::MAX_PERMITS))), ..self }
    }

    /// Sets the names of the host under which clients reach the [`router`](Self::router), such as `mcp.example.com`.
    ///
    /// By default only names of this machine are accepted, since a page in a browser could otherwise reach a local
    /// server under another name.
    ///
    /// # Errors
    /// Of kind [`Configuration`](ErrorKind::Configuration) for an empty list.
    pub fn with_allowed_hosts<H: Into<String>>(self, hosts: impl IntoIterator<Item = H>) -> Result<Self> {
        let allowed_hosts: HashSet<String> = hosts.into_iter().map(Into::into).collect();
        if allowed_hosts.is_empty() {
            return Err(Error::configuration("an MCP server needs a name of its host; the list is empty"));
        }
        Ok(Self { allowed_hosts, ..self })
    }

    /// Serves one client over standard input and output, until it ends the connection.
    ///
    /// Nothing else may write to the standard output of the process.
    ///
    /// # Cancellation
    /// Dropping the future ends the connection and its turns.
    ///
    /// # Errors
    /// Those of [`serve_stream`](Self::serve_stream).
    pub async fn serve_stdio(&self) -> Result<()> {
        let (input, output) = rmcp::transport::stdio();
        self.serve_stream(tokio::io::join(input, output)).await
    }

    /// Serves one client over a stream, such as a socket, until it ends the connection.
    ///
    /// # Cancellation
    /// Dropping the future ends the connection and its turns.
    ///
    /// # Errors
    /// Of kind [`Protocol`](ErrorKind::Protocol) if the connection does not begin as MCP.
    pub async fn serve_stream(&self, stream: impl AsyncRead + AsyncWrite + Send + 'static) -> Result<()> {
        let serving = self.clone().serve(tokio::io::split(stream)).await.map_err(|_| {
            Error::new(
                ErrorKind::Protocol { position: None },
                "the client does not begin as the protocol says",
            )
        })?;
        match serving.waiting().await {
            Ok(QuitReason::Closed | QuitReason::Cancelled) => Ok(()),
            _ => Err(Error::new(ErrorKind::Advisor, "the connection to an MCP client failed")),
        }
    }

    /// Returns the routes of the server for streamable HTTP: all at `/`, to be nested where clients look for it.
    ///
    /// It keeps no sessions, also not for clients of older versions of the protocol: each request stands by itself.
    ///
    /// Requests with an `Origin`, which browsers send, are refused. It checks no keys: put a layer of your own around
    /// it, as around any other routes.
    pub fn router(&self) -> Router {
        let config = StreamableHttpServerConfig::default()
            .with_allowed_hosts(self.allowed_hosts.iter().cloned())
            // Whoever can reach the routes could begin any number of them, and a turn needs none.
            .with_legacy_session_mode(false)
            .enforce_origin_validation();
        let server = self.clone();
        let service = StreamableHttpService::new(
            move || Ok(server.clone()),
            Arc::new(LocalSessionManager::default()),
            config,
        );
        Router::new().fallback_service(service)
    }
}

/// Returns the schema of the arguments.
fn schema() -> JsonObject {
    let text = |description: &str| json!({"type": "string", "description": description});
    let properties = json!({
        "message": text("The message to the assistant."),
        "conversation": text("The id of a conversation to begin or to continue; without it, the call begins a new one."),
    });
    let required = Value::from(vec!["message"]);
    let schema = [("type", "object".into()), ("properties", properties), ("required", required)];
    schema.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

impl ServerHandler for ChainServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        let server = Implementation::new("advisor-chain", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities).with_server_info(server)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(vec![self.tool.clone()]))
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.call(params, context).await.map(Into::into)
    }
}

impl fmt::Debug for ChainServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChainServer")
            .field("tool", &self.tool.name)
            .field("tenant", &self.tenant)
            .field("allowed_hosts", &self.allowed_hosts)
            .finish_non_exhaustive()
    }
}
