//! `ChatServer`: the chain, its memory, tokens and limits.

mod settings;

use std::fmt;
use std::sync::Arc;

use advisor_core::{ChatClient, Text};
use chat_memory_advisor::ChatMemoryAdvisor;

use crate::access::application::{Authenticate, ChangePrompt};
use crate::access::deletion::OnDelete;
use crate::access::limits::ServerLimits;
use crate::access::origins::AllowedOrigins;
use crate::access::tokens::Tokens;
use crate::inspector::Inspector;
use crate::metrics::Metrics;
use crate::places::Places;
use crate::readiness::Readiness;
use crate::relay::TurnRelay;
use crate::turns::Turns;

/// One chain under the protocols of many clients. Cheap to clone.
///
/// # Ordering
/// A client learns of the end of an answer after all work inside the chain on it (law O3): memory has it.
///
/// # Cancellation
/// A client that disconnects stops its turn, unless its protocol can resume, or the chat client
/// [finishes](advisor_core::OnDrop::FinishTurn) dropped turns. Then the turn continues, and
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
    on_delete: Option<OnDelete>,
    /// The token of the operator, if there is one.
    operator: Tokens,
    origins: AllowedOrigins,
    limits: ServerLimits,
    metrics: Option<Arc<Metrics>>,
    relay: Option<Arc<dyn TurnRelay>>,
    turns: Arc<Turns>,
    stored_reads: Places,
    comparisons: Places,
    large_bodies: Places,
    readiness: Arc<Readiness>,
    inspector: Option<Inspector>,
    decisions: Decides,
    /// Whether the field in which OpenAI and Anthropic have the end user names the conversation.
    conversation_by_user: bool,
}

/// The side that decides about calls that wait for an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decides {
    /// The application, with its own client.
    Application,
    /// The users of a conversation.
    Users,
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
            on_delete: None,
            operator: Tokens::default(),
            origins,
            limits,
            metrics: None,
            relay: None,
            turns,
            stored_reads: Places::default(),
            comparisons: Places::default(),
            large_bodies: Places::default(),
            readiness: Arc::default(),
            inspector: None,
            decisions: Decides::Application,
            conversation_by_user: false,
        }))
    }

    pub(crate) fn inspector(&self) -> Option<&Inspector> {
        self.0.inspector.as_ref()
    }

    /// Checks whether clients may decide about calls that wait.
    pub(crate) fn takes_decisions(&self) -> bool {
        self.0.decisions == Decides::Users
    }

    /// Returns the conversation that the field of the end user names, if the server reads it so.
    pub(crate) fn conversation_of<'a>(&self, end_user: Option<&'a str>) -> Option<&'a str> {
        end_user.filter(|_| self.0.conversation_by_user)
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

    pub(crate) fn on_delete(&self) -> Option<&OnDelete> {
        self.0.on_delete.as_ref()
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

    pub(crate) fn stored_reads(&self) -> &Places {
        &self.0.stored_reads
    }

    /// Returns the places for comparisons of a client's list with what is stored.
    pub(crate) fn comparisons(&self) -> &Places {
        &self.0.comparisons
    }

    pub(crate) fn large_bodies(&self) -> &Places {
        &self.0.large_bodies
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
