//! The settings of a `ChatServer`: name, users, prompt, limits, relay, inspector.

use std::sync::Arc;

use advisor_core::{ConversationKey, Prompt, Result, Text};
use axum::http::request::Parts;

use crate::access::application::{Authenticate, ChangePrompt};
use crate::access::deletion::OnDelete;
use crate::access::limits::ServerLimits;
use crate::access::origins::AllowedOrigins;
use crate::access::tokens::Tokens;
use crate::inspector::Inspector;
use crate::relay::TurnRelay;
use crate::server::{ChatServer, Decides};

/// The settings of a server.
impl ChatServer {
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
        self.changed(|shared| shared.change_prompt = Some(ChangePrompt::new(change)))
    }

    /// Sets work of the application for each conversation that a user deletes. It deletes what the application, or an advisor,
    /// keeps of the conversation outside memory, such as its past turns.
    ///
    /// It runs after the running turn is stopped, and before memory deletes the conversation. If it fails, the conversation
    /// stays, and the user can delete it again. So it must succeed if there is nothing to delete. A turn that begins
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
        self.changed(|shared| shared.on_delete = Some(OnDelete::new(work)))
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
    /// - If a guard answers in place of a turn with decisions, nothing runs.
    /// - The AI SDK and AG-UI show how decided calls end. Responses shows only the answer.
    /// - An answer that waits for a person and for a tool of the client at once needs both together. The results go with the
    ///   decisions; on `/api/chat` and `/api/chunks`, which take no results, the application decides.
    #[must_use]
    pub fn with_approvals(self) -> Self {
        self.changed(|shared| shared.decisions = Decides::Users)
    }

    /// Sets the origins of other sites whose pages may use the server (CORS); none by default.
    #[must_use]
    pub fn with_allowed_origins(self, origins: AllowedOrigins) -> Self {
        self.changed(|shared| shared.origins = origins)
    }

    /// Lets `user` of OpenAI's clients and `metadata.user_id` of Anthropic's name the conversation, if nothing else does.
    /// Off by default: these fields name the end user there, who may have many conversations.
    ///
    /// It is for clients that can send neither a header nor `conversation`.
    #[must_use]
    pub fn with_conversation_by_user(self) -> Self {
        self.changed(|shared| shared.conversation_by_user = true)
    }

    /// Sets the bounds.
    #[must_use]
    pub fn with_limits(self, limits: ServerLimits) -> Self {
        self.changed(|shared| {
            shared.limits = limits;
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
}
