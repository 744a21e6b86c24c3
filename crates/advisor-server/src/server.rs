use std::fmt;
use std::sync::Arc;

use advisor_core::{ChatClient, Prompt, Result, Text};
use axum::http::request::Parts;
use chat_memory_advisor::ChatMemoryAdvisor;

use crate::access::application::{Authenticate, ChangePrompt};
use crate::access::limits::ServerLimits;
use crate::access::origins::AllowedOrigins;
use crate::access::tokens::Tokens;
use crate::inspector::Inspector;
use crate::metrics::Metrics;
use crate::readiness::Readiness;
use crate::relay::TurnRelay;
use crate::turns::Turns;

/// One chain under the protocols of many clients. Cheap to clone.
///
/// # Ordering
/// A client learns of the end of an answer after all work inside the chain on it (law O3): memory has it.
///
/// # Cancellation
/// A client that disconnects stops its turn, unless its protocol can resume. Then the turn continues, and
/// `POST /api/conversations/{id}/stop` stops it.
///
/// # Errors
/// A request that fails before its answer begins has an error status. Later, the protocol reports the failure. Neither
/// has the text of an internal error.
///
/// # Example
/// ```no_run
/// use advisor_core::ChatClient;
/// use advisor_server::{ChatServer, serve};
/// use advisor_testkit::{Answer, ScriptedModel};
/// use chat_memory_advisor::{ChatMemoryAdvisor, InMemoryStore};
/// use std::time::Duration;
/// use tokio::net::TcpListener;
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
/// let model = ScriptedModel::new([Answer::from_text("It is noon.")]);
/// let client = ChatClient::builder(model).advisor(memory.clone()).build()?;
/// let server = ChatServer::new(client, memory);
/// let listener = TcpListener::bind("127.0.0.1:8080").await?;
/// let signal = async { drop(tokio::signal::ctrl_c().await) };
/// serve(listener, server, signal, Duration::from_secs(10)).await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct ChatServer(Arc<Shared>);

#[derive(Clone)]
struct Shared {
    client: ChatClient,
    memory: ChatMemoryAdvisor,
    name: Text,
    tokens: Tokens,
    authenticate: Option<Authenticate>,
    change_prompt: Option<ChangePrompt>,
    /// The token of the operator, if there is one.
    operator: Tokens,
    origins: AllowedOrigins,
    limits: ServerLimits,
    metrics: Option<Arc<Metrics>>,
    relay: Option<Arc<dyn TurnRelay>>,
    turns: Arc<Turns>,
    readiness: Arc<Readiness>,
    inspector: Option<Inspector>,
}

impl ChatServer {
    /// Creates a server of one chain and of the memory in it. Without tokens or authentication it serves this machine
    /// only.
    #[must_use]
    pub fn new(client: ChatClient, memory: ChatMemoryAdvisor) -> Self {
        let limits = ServerLimits::default();
        let turns = Arc::new(Turns::new(limits, None, None));
        let (name, tokens, origins) = ("chain".into(), Tokens::default(), AllowedOrigins::default());
        Self(Arc::new(Shared {
            client,
            memory,
            name,
            tokens,
            authenticate: None,
            change_prompt: None,
            operator: Tokens::default(),
            origins,
            limits,
            metrics: None,
            relay: None,
            turns,
            readiness: Arc::default(),
            inspector: None,
        }))
    }

    /// Sets the name under which clients see the chain as a model; `chain` by default.
    #[must_use]
    pub fn with_name(self, name: impl Into<Text>) -> Self {
        self.changed(|shared| shared.name = name.into())
    }

    /// Sets the tokens that requests need. Each opens the conversations of its tenant.
    #[must_use]
    pub fn with_tokens(self, tokens: Tokens) -> Self {
        self.changed(|shared| shared.tokens = tokens)
    }

    /// Lets the application authenticate requests, in place of [tokens](Self::with_tokens): by a session or a signed
    /// token that its own middleware has checked. The function returns the tenant of a request (1 to 512 bytes), or
    /// `None`, which is answered with 401. A browser's requests for a page of another site are refused before. A page of
    /// an [allowed origin](Self::with_allowed_origins) may send them, without cookies.
    ///
    /// # Example
    /// ```
    /// use advisor_server::ChatServer;
    ///
    /// /// Inserted into the request by the application's middleware.
    /// #[derive(Clone)]
    /// struct Login { user: String }
    ///
    /// fn with_logins(server: ChatServer) -> ChatServer {
    ///     server.with_authentication(|head| Some(head.extensions.get::<Login>()?.user.clone()))
    /// }
    /// ```
    #[must_use]
    pub fn with_authentication(
        self,
        tenant: impl Fn(&Parts) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.changed(|shared| shared.authenticate = Some(Authenticate::new(tenant)))
    }

    /// Changes the prompt of each turn by the head of its request: adds extensions for advisors and tools, instructions,
    /// or tools. The conversation, the turn and the input are set afterwards.
    ///
    /// A request that joins a turn does not change it. The function must not block. A second call replaces it.
    ///
    /// # Example
    /// ```
    /// use advisor_server::ChatServer;
    ///
    /// /// Read by the tools of the chain.
    /// #[derive(Clone)]
    /// struct Language(String);
    ///
    /// fn with_language(server: ChatServer) -> ChatServer {
    ///     server.map_prompt(|prompt, head| match head.headers.get("accept-language") {
    ///         Some(language) => prompt.extension(Language(String::from_utf8_lossy(language.as_bytes()).into())),
    ///         None => prompt,
    ///     })
    /// }
    /// ```
    #[must_use]
    pub fn map_prompt(self, change: impl Fn(Prompt, &Parts) -> Prompt + Send + Sync + 'static) -> Self {
        self.changed(|shared| shared.change_prompt = Some(ChangePrompt::new(change)))
    }

    /// Sets the token that reads the counters of all tenants. It opens no conversation. An empty token opens nothing.
    #[must_use]
    pub fn with_operator_token(self, token: &str) -> Self {
        self.changed(|shared| shared.operator = Tokens::new([(token, "operator")]))
    }

    /// Sets the origins of other sites whose pages may use the server (CORS); none by default.
    #[must_use]
    pub fn with_allowed_origins(self, origins: AllowedOrigins) -> Self {
        self.changed(|shared| shared.origins = origins)
    }

    /// Sets the bounds.
    #[must_use]
    pub fn with_limits(self, limits: ServerLimits) -> Self {
        self.changed(|shared| {
            shared.limits = limits;
            shared.turns = shared.no_turns();
        })
    }

    /// Counts requests, turns, tokens and tool runs, for Prometheus at `GET /metrics`. Off by default.
    ///
    /// The route needs the [token of the operator](Self::with_operator_token). A server without any token shows it to this
    /// machine. Tool runs are counted if the chain shows their events, as with `ToolCallStreaming::All`.
    #[must_use]
    pub fn with_metrics(self) -> Self {
        self.changed(|shared| {
            shared.metrics = Some(Arc::new(Metrics::new()));
            shared.turns = shared.no_turns();
        })
    }

    /// Shows running turns to the other processes of the service, and theirs to this one. Off by default.
    ///
    /// A client that reaches another process, behind a load balancer, then reads the running turn, stops it, or joins
    /// it by submitting it again. All processes need relays over the same place, and the same store of memory.
    ///
    /// A relay that is slow or absent neither delays nor fails a turn that runs. Clients at other processes get an error
    /// then. A turn whose id the client has chosen may run elsewhere, so the relay is asked before it starts, for
    /// [`relay_timeout`](ServerLimits::relay_timeout) at most.
    #[must_use]
    pub fn with_relay(self, relay: impl TurnRelay) -> Self {
        self.changed(|shared| {
            shared.relay = Some(Arc::new(relay));
            shared.turns = shared.no_turns();
        })
    }

    /// Records the order in which the parts of each turn work, for the page's inspector. Clients can read the names of
    /// advisors and tools then.
    ///
    /// # Errors
    /// If the chain cannot be built with the advisor that records calls of the model.
    pub fn with_inspector(self, inspector: &Inspector) -> Result<Self> {
        let client = inspector.client(&self.0.client)?;
        Ok(self.changed(|shared| (shared.client, shared.inspector) = (client, Some(inspector.clone()))))
    }

    pub(crate) fn inspector(&self) -> Option<&Inspector> {
        self.0.inspector.as_ref()
    }

    pub(crate) fn client(&self) -> &ChatClient {
        &self.0.client
    }

    pub(crate) fn memory(&self) -> &ChatMemoryAdvisor {
        &self.0.memory
    }

    pub(crate) fn name(&self) -> &Text {
        &self.0.name
    }

    pub(crate) fn tokens(&self) -> &Tokens {
        &self.0.tokens
    }

    pub(crate) fn authenticate(&self) -> Option<&Authenticate> {
        self.0.authenticate.as_ref()
    }

    pub(crate) fn change_prompt(&self) -> Option<&ChangePrompt> {
        self.0.change_prompt.as_ref()
    }

    /// Checks whether the server knows its users. Otherwise, it serves this machine only.
    pub(crate) fn has_users(&self) -> bool {
        self.0.authenticate.is_some() || !self.0.tokens.is_empty()
    }

    pub(crate) fn operator(&self) -> &Tokens {
        &self.0.operator
    }

    pub(crate) fn origins(&self) -> &AllowedOrigins {
        &self.0.origins
    }

    pub(crate) fn limits(&self) -> ServerLimits {
        self.0.limits
    }

    pub(crate) fn metrics(&self) -> Option<&Arc<Metrics>> {
        self.0.metrics.as_ref()
    }

    pub(crate) fn turns(&self) -> &Turns {
        &self.0.turns
    }

    pub(crate) fn readiness(&self) -> &Readiness {
        &self.0.readiness
    }

    fn changed(self, change: impl FnOnce(&mut Shared)) -> Self {
        let mut shared = Arc::unwrap_or_clone(self.0);
        change(&mut shared);
        Self(Arc::new(shared))
    }
}

impl Shared {
    /// Returns the registry of turns before the first turn.
    fn no_turns(&self) -> Arc<Turns> {
        Arc::new(Turns::new(self.limits, self.metrics.clone(), self.relay.clone()))
    }
}

impl fmt::Debug for ChatServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatServer")
            .field("name", &self.0.name)
            .field("tokens", &self.0.tokens)
            .field("origins", &self.0.origins)
            .field("limits", &self.0.limits)
            .finish_non_exhaustive()
    }
}
