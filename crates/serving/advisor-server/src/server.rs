//! `ChatServer`: the chain, its memory, and the settings: users, prompt, limits, relay, inspector.

use std::fmt;
use std::sync::Arc;

use advisor_core::{ChatClient, ConversationKey, Prompt, Result, Text};
use axum::http::request::Parts;
use chat_memory_advisor::ChatMemoryAdvisor;
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::access::limits::ServerLimits;
use crate::access::origins::AllowedOrigins;
use crate::access::tokens::Tokens;
use crate::inspector::Inspector;
use crate::places::Places;
use crate::readiness::Readiness;
use crate::relay::TurnRelay;
use crate::turns::Turns;

/// One chain under the protocols of many clients. Cheap to clone.
///
/// # Ordering
/// A client learns of the end of an answer after all work inside the chain on it (law O3): memory has it.
///
/// # The list of a client
/// Most clients send their whole list of messages each time. It continues the conversation that the request names, or it
/// begins one by messages of the user; anything else is refused with 400 (law M8).
///
/// - A list that continues may be the end of the conversation, and may lack failed messages. Messages whose turn has failed,
///   and which stand in front of the new one, are not sent twice.
/// - Of an answer it may have all texts, or some that follow one another, such as the last one. The end may be missing,
///   since a client may stop reading.
/// - White space and reasoning do not count, also between `<think>` and `</think>`. Media may be left out. Items without a
///   role, such as `reasoning` or `mcp_call`, count as a part of an answer.
/// - If a turn was interrupted before memory had any text of it, the client's text is passed over.
/// - What an advisor outside memory has answered, such as a guard, is passed over as long as the process keeps the turn
///   ([`ServerLimits::ended_turns`]). Later, the client leaves out the message and the reply.
/// - A greeting of the assistant may stand before the messages that begin a conversation. It is not stored.
/// - An empty message of the user beside another one is left out.
///
/// A list repeats the pictures of its history, so a long one comes to the limit of a body (413): the client leaves them out
/// there, or sends its new message alone.
///
/// # Results of client-side tools
/// Calls of a tool that runs at the client end the turn, and their results begin the next one: a message `tool` of Chat
/// Completions and AG-UI, an item `function_call_output`, a block `tool_result`, `addToolOutput` of `useChat`.
///
/// - Results are accepted for calls that the conversation waits for, of tools that the chain or
///   [`map_prompt`](Self::map_prompt) has. Send all of them in one request: calls without one count as not run.
/// - The id of a call in such a turn, and of each call of AG-UI, ends with a few characters of its turn, since models repeat
///   ids. Send a result under the id as it was shown.
/// - `/api/chat` and `/api/chunks` take no results. With `previous_response_id`, the newest branch alone does.
/// - If one answer calls such a tool beside tools of the chain, the chain runs its tools at once and keeps their results.
///
/// # The same request again
/// - Without an id of the turn, a request below `/v1` in a named conversation repeats the last turn if it has the same new
///   messages and the client lacks their answer. In a conversation without a name, each repeat is a conversation of its own.
/// - A running turn is joined, one without an answer continues from memory, and an answer is repeated.
/// - A turn that stopped because its client disconnected continues from memory. So does one that was refused at its start
///   (409), or whose model is busy (429), also after tools have run. A turn that memory never had begins.
/// - Any other failure is an answer, too: to try again, replace the turn, or send the message under a new id.
/// - An id with other characters than letters, digits, `-` and `_`, or more than 128, is replaced by its SHA-256 hash.
///
/// # Cancellation
/// A client that disconnects stops its turn, unless its protocol can resume, or the chat client
/// [finishes](advisor_core::OnDrop::FinishTurn) dropped turns. Then the turn continues, and
/// `POST /api/conversations/{id}/stop` stops it. A client may send a further request before its answer in one piece, and
/// then disconnect: the server does not notice that.
///
/// # Errors
/// A request that fails before its answer begins has an error status. Later, the protocol reports the failure. Neither
/// has the text of an internal error. Each names the request (`x-request-id`), and the span `http_request` has the same
/// `request.id`, so a log shows which request caused a failure.
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
pub struct ChatServer {
    pub(crate) client: ChatClient,
    pub(crate) memory: ChatMemoryAdvisor,
    /// The name of the chain as a model.
    pub(crate) name: Text,
    pub(crate) tokens: Tokens,
    pub(crate) authenticate: Option<Authenticate>,
    pub(crate) change_prompt: Option<ChangePrompt>,
    pub(crate) on_delete: Option<OnDelete>,
    pub(crate) origins: AllowedOrigins,
    pub(crate) limits: ServerLimits,
    pub(crate) relay: Option<Arc<dyn TurnRelay>>,
    pub(crate) turns: Arc<Turns>,
    /// The places for reads of stored turns, for comparisons of a client's list with them, and for large bodies.
    pub(crate) stored_reads: Places,
    pub(crate) comparisons: Places,
    pub(crate) large_bodies: Places,
    pub(crate) readiness: Arc<Readiness>,
    pub(crate) inspector: Option<Inspector>,
    /// Whether users decide about calls that wait for an approval. Otherwise, the application does.
    pub(crate) takes_decisions: bool,
}

/// Returns the tenant of a request, if the request is authenticated.
type Authenticate = Arc<dyn Fn(&Parts) -> Option<String> + Send + Sync>;

/// Changes the prompt of a turn by the head of its request.
type ChangePrompt = Arc<dyn Fn(Prompt, &Parts) -> Prompt + Send + Sync>;

/// Work of the application before a conversation is deleted. If it fails, the conversation is kept.
type OnDelete = Arc<dyn Fn(ConversationKey) -> BoxFuture<'static, Result<()>> + Send + Sync>;

impl ChatServer {
    /// Creates a server of one chain and of the memory in it. Without tokens or authentication it serves this machine
    /// only.
    #[must_use]
    pub fn new(client: ChatClient, memory: ChatMemoryAdvisor) -> Self {
        let limits = ServerLimits::default();
        Self {
            client,
            memory,
            name: "chain".into(),
            tokens: Tokens::default(),
            authenticate: None,
            change_prompt: None,
            on_delete: None,
            origins: AllowedOrigins::default(),
            limits,
            relay: None,
            turns: Arc::new(Turns::new(limits, None)),
            stored_reads: Places::default(),
            comparisons: Places::default(),
            large_bodies: Places::default(),
            readiness: Arc::default(),
            inspector: None,
            takes_decisions: false,
        }
    }

    /// Checks whether the server knows its users. Otherwise, it serves this machine only.
    pub(crate) fn has_users(&self) -> bool {
        self.authenticate.is_some() || !self.tokens.is_empty()
    }
}

impl fmt::Debug for ChatServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatServer")
            .field("name", &self.name)
            .field("tokens", &self.tokens)
            .field("origins", &self.origins)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// The settings of a server.
impl ChatServer {
    /// Sets the name under which clients see the chain as a model; `chain` by default.
    #[must_use]
    pub fn with_name(self, name: impl Into<Text>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// Sets the tokens that requests need. Each opens the conversations of its tenant.
    #[must_use]
    pub fn with_tokens(self, tokens: Tokens) -> Self {
        Self { tokens, ..self }
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
        Self { authenticate: Some(Arc::new(tenant)), ..self }
    }

    /// Changes the prompt of each turn by the head of its request: adds extensions for advisors and tools, instructions,
    /// or tools. The conversation, the turn and the input are set afterwards.
    ///
    /// A request that joins a turn does not change it. The function runs at most once for a request, and must not block.
    /// A second call of this method replaces it.
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
        Self { change_prompt: Some(Arc::new(change)), ..self }
    }

    /// Sets work of the application for each conversation that a user deletes. It deletes what the application, or an advisor,
    /// keeps of the conversation outside memory, such as its past turns.
    ///
    /// It runs after the running turn is stopped, and before memory deletes the conversation. If it fails, or takes
    /// longer than 30 seconds, the conversation stays, and the user can delete it again. So it must succeed if there is nothing to delete. A turn that begins
    /// meanwhile, or that cannot be stopped in another process, can add something behind it. A second call of this method
    /// replaces the work.
    ///
    /// # Example
    /// ```
    /// use advisor_server::ChatServer;
    /// use chat_memory_advisor::ChatMemoryAdvisor;
    ///
    /// /// Deletes the conversation of a sub-agent, which has the same key in a separate store.
    /// fn with_guides(server: ChatServer, guides: ChatMemoryAdvisor) -> ChatServer {
    ///     server.with_deletion(move |key| {
    ///         let guides = guides.clone();
    ///         async move { Ok(guides.store().delete(&key).await?) }
    ///     })
    /// }
    /// ```
    #[must_use]
    pub fn with_deletion<F>(self, work: impl Fn(ConversationKey) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<()>> + Send + 'static,
    {
        Self { on_delete: Some(Arc::new(move |key| work(key).boxed())), ..self }
    }

    /// Lets the users of a conversation decide about its calls that wait for an approval. By default, only the application
    /// decides, with its own client.
    ///
    /// A conversation shows its `waiting` calls, and `POST /api/chat` and `/api/chunks` take `decisions`. Clients of the AI
    /// SDK, AG-UI and Responses decide in the way of their protocol. Every token of the conversation's tenant may decide.
    /// With `decisions`, users may also change arguments, within the policy and `before_tool` of the tool loop. Users may
    /// approve calls that its `eligible` predicate leaves to the caller.
    ///
    /// If employees decide in place of the users, give only a second server this setting, behind their login. With the
    /// same client, memory and relay, the user's page shows the turn that an employee resumes.
    ///
    /// | protocol | a call that waits | the decision |
    /// | --- | --- | --- |
    /// | AI SDK | a tool that is `approval-requested` | `addToolApprovalResponse`, sent with the message |
    /// | AG-UI | `outcome.interrupts` of the finished run | `"resume": [{"interruptId": id, "status": "resolved", "payload": {"approved": true}}]`; `"cancelled"` is a denial, `editedArgs` are other arguments |
    /// | Responses | an item `mcp_approval_request` | an input item `{"type": "mcp_approval_response", "approval_request_id": id, "approve": true}`, with `previous_response_id` or the conversation |
    ///
    /// - An id is bound to the conversation, the call and its exact arguments. What a client shows beside an approval is
    ///   compared with the call; another value is refused (422).
    /// - A call that is `started` was lost: its turn was stopped, or its process has ended. It needs no decision: send
    ///   `"decisions": []` if no other call waits. Its approval runs nothing: the model is asked to verify it.
    /// - `expires_at` of a decision is a Unix time in seconds. Without one, an approval is valid for an hour from the arrival
    ///   of the request. `approved_with` may also be the arguments as JSON text, so that whole numbers of 64 bits stay exact.
    /// - If a guard answers in place of a turn with decisions, nothing runs, and the calls still wait. AG-UI does not ask
    ///   again: send the same `resume` in a further run.
    /// - The AI SDK and AG-UI show how decided calls end. Responses shows only the answer.
    /// - An answer that waits for a person and for a tool of the client at once needs both together. The results go with the
    ///   decisions; on `/api/chat` and `/api/chunks`, which take no results, the application decides.
    #[must_use]
    pub fn with_approvals(self) -> Self {
        Self { takes_decisions: true, ..self }
    }

    /// Sets the origins of other sites whose pages may use the server (CORS); none by default.
    #[must_use]
    pub fn with_allowed_origins(self, origins: AllowedOrigins) -> Self {
        Self { origins, ..self }
    }

    /// Sets the bounds.
    #[must_use]
    pub fn with_limits(self, limits: ServerLimits) -> Self {
        let turns = Arc::new(Turns::new(limits, self.relay.clone()));
        Self { limits, turns, ..self }
    }

    /// Shows running turns to the other processes of the service, and theirs to this one. Off by default.
    ///
    /// A client that reaches another process, behind a load balancer, then reads the running turn, stops it, or joins
    /// it by submitting it again. All processes need relays over the same place, and the same store of memory.
    ///
    /// A relay that is slow or absent neither delays nor fails a turn that runs. Clients at other processes get an error
    /// then. A turn whose id the client has chosen may run elsewhere, so the relay is asked before it starts, for
    /// [`relay_timeout`](ServerLimits::relay_timeout) at most.
    ///
    /// - Events arrive up to 0.2 seconds later than at the process of the turn. A stop takes about a second.
    /// - If the process of a turn dies, readers elsewhere get an error within ten seconds. A turn that is submitted again then
    ///   runs at the next process.
    /// - Without an answer of the relay, a turn that is submitted twice may start at two processes. Memory with leases answers
    ///   it once.
    /// - The relay holds the chunks of a turn while it runs, and for five minutes after it. Protect it like memory.
    /// - Journals of the inspector, and limits on running turns, are those of each process.
    #[must_use]
    pub fn with_relay(self, relay: impl TurnRelay) -> Self {
        let relay: Arc<dyn TurnRelay> = Arc::new(relay);
        let turns = Arc::new(Turns::new(self.limits, Some(Arc::clone(&relay))));
        Self { relay: Some(relay), turns, ..self }
    }

    /// Records the order in which the parts of each turn work, for the page's inspector. Clients can read the names of
    /// advisors and tools then.
    ///
    /// # Errors
    /// If the chain cannot be built with the advisor that records calls of the model.
    pub fn with_inspector(self, inspector: &Inspector) -> Result<Self> {
        let client = inspector.client(&self.client)?;
        Ok(Self { client, inspector: Some(inspector.clone()), ..self })
    }
}
