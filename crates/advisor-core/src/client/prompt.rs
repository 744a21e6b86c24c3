//! `Prompt`: builds one turn; `stream` and `call` run it.

use std::fmt;
use std::sync::Arc;

use message_aggregator::{Message, MessageList, Text};

use crate::chain::Link;
use crate::client::{Defaults, check_spawner};
use crate::{
    AdvisorChain, ChatOptions, ChatRequest, ConversationKey, Decision, Decisions, Error, IntoId,
    NestedBounds, OnDrop, Result, StreamAdvisor, Tool, ToolInvocation, ToolSet, Turn, TurnId, TurnResponse,
    TurnStream,
};

/// Builder of one turn. Nothing happens before its stream is polled.
#[derive(Clone)]
#[must_use = "a prompt does nothing until it is streamed or called"]
pub struct Prompt {
    chain: AdvisorChain,
    /// Advisors of this turn only.
    advisors: Vec<Arc<dyn StreamAdvisor>>,
    system: Option<Text>,
    messages: MessageList,
    options: ChatOptions,
    defaults: Arc<Defaults>,
    tools: ToolSet,
    conversation: Option<ConversationKey>,
    turn: Option<TurnId>,
    extensions: Vec<Extension>,
    inherited_bounds: Option<NestedBounds>,
    on_drop: OnDrop,
    decisions: Option<Vec<Decision>>,
    error: Option<Arc<Error>>,
}

/// Function that inserts an extension into a turn.
type Extension = Arc<dyn Fn(&Turn) + Send + Sync>;

impl Prompt {
    pub(super) fn new(chain: AdvisorChain, defaults: Arc<Defaults>) -> Self {
        Self {
            chain,
            advisors: Vec::new(),
            system: defaults.system.clone(),
            messages: MessageList::default(),
            options: ChatOptions::default(),
            tools: defaults.tools.clone(),
            conversation: None,
            turn: None,
            extensions: Vec::new(),
            inherited_bounds: None,
            on_drop: defaults.on_drop,
            decisions: None,
            error: None,
            defaults,
        }
    }

    /// Sets the instructions of this turn, in place of the client's.
    pub fn system(self, text: impl Into<Text>) -> Self {
        Self { system: Some(text.into()), ..self }
    }

    /// Adds a user message to the turn's input.
    pub fn user(self, text: impl Into<Text>) -> Self {
        self.messages([Message::user(text)])
    }

    /// Adds messages to the turn's input, such as the result of a tool that the caller ran.
    pub fn messages(mut self, messages: impl IntoIterator<Item = Message>) -> Self {
        self.messages.extend(messages);
        self
    }

    /// Sets the conversation to continue and to store the turn in: its key, the text of its id, or an `Option` of
    /// either.
    pub fn conversation(mut self, conversation: impl IntoId<ConversationKey>) -> Self {
        match conversation.into_id() {
            Ok(key) => self.conversation = key,
            Err(error) => self.note(error),
        }
        self
    }

    /// Sets the turn's id, in place of a new one: a [`TurnId`], its text, or an `Option` of either. The id is an
    /// idempotency key: with a memory, a turn is answered once, however often it is submitted.
    pub fn turn(mut self, turn: impl IntoId<TurnId>) -> Self {
        match turn.into_id() {
            Ok(turn) => self.turn = turn,
            Err(error) => self.note(error),
        }
        self
    }

    /// Inserts an [extension](crate::Extensions) into the turn and replaces one of the same type. It configures an
    /// advisor for this turn only. The docs of advisors name the extensions they read.
    pub fn extension<T: Clone + Send + Sync + 'static>(mut self, value: T) -> Self {
        self.extensions.push(Arc::new(move |turn| turn.extensions().insert(value.clone())));
        self
    }

    /// Makes this a turn inside a tool: it inherits the time, rounds and calls that the turn of `call` has left
    /// ([`NestedBounds`]). Without this, it has its own limits only. Its rounds and calls do not count for the outer turn.
    ///
    /// # Example
    /// ```
    /// use advisor_core::{ChatClient, Result, ToolInvocation};
    ///
    /// /// A tool that asks another chain.
    /// async fn research(client: &ChatClient, call: ToolInvocation) -> Result<String> {
    ///     let question = call.arguments["question"].as_str().unwrap_or_default();
    ///     let answer = client.prompt().inside(&call).user(question).call().await?;
    ///     // A turn that ends with calls for its caller has no answer yet: nobody can give their results here.
    ///     match answer.open_calls().next() {
    ///         Some((_, open)) => Ok(format!("the inner assistant may not call `{}` by itself", open.name)),
    ///         None => Ok(answer.text()),
    ///     }
    /// }
    /// ```
    pub fn inside(self, call: &ToolInvocation) -> Self {
        Self { inherited_bounds: call.turn.facts(|facts| facts.nested_bounds), ..self }
    }

    /// Sets options of this turn; they take precedence over the client's.
    pub fn options(self, options: ChatOptions) -> Self {
        Self { options: options.or(&self.options), ..self }
    }

    /// Adds a tool for this turn to the client's tools.
    pub fn tool(mut self, tool: impl Tool) -> Self {
        if let Err(duplicate) = self.tools.join(Arc::new(tool)) {
            self.note(duplicate);
        }
        self
    }

    /// Returns the tools of this turn: the client's and those added here.
    #[must_use]
    pub fn tools(&self) -> &ToolSet {
        &self.tools
    }

    /// Adds an advisor for this turn at its default placement, inside the client's of the same phase.
    pub fn advisor(mut self, advisor: impl StreamAdvisor) -> Self {
        self.advisors.push(Arc::new(advisor));
        self
    }

    /// Sets the policy for a drop of the turn.
    pub fn on_drop(self, on_drop: OnDrop) -> Self {
        Self { on_drop, ..self }
    }

    /// Makes this the turn that continues after calls that wait for a decision. They are those of the conversation.
    ///
    /// A call that waits needs a decision, or its result in the input. A user message may be added. A call that was started
    /// by a process that died needs neither: the model is asked to verify it.
    ///
    /// # Ordering
    /// The turn takes the conversation, as every turn does. Then memory checks all decisions, records the starts of
    /// approved calls, lets the tool loop run them, and stores the results with the turn's input. Denied calls get error
    /// results. Only then the model is asked.
    ///
    /// All of this happens where memory is in the chain. If an advisor outside memory fails or answers by itself, no call
    /// runs and nothing is stored. The decisions can be sent again.
    ///
    /// # At most once
    /// Of all processes that resume a conversation, one runs a call: the turns of the others end with an error of kind
    /// [`ConversationBusy`](crate::ErrorKind::ConversationBusy),
    /// [`CallAlreadyStarted`](crate::ErrorKind::CallAlreadyStarted) or
    /// [`NoClientSideCall`](crate::ErrorKind::NoClientSideCall). If the process dies before the results are stored, the
    /// next turn asks the model to verify the calls.
    ///
    /// The same turn may be sent again under its [id](Self::turn), with the same decisions. Once the results are stored, it
    /// gets the same answer, or continues where it stopped. If it was lost while its calls ran, they are started: send it
    /// without the decisions about them ([`started`](crate::ClientSideCall::started)).
    ///
    /// # Cancellation
    /// Dropping the turn drops the tools. Starts that were recorded stay recorded.
    ///
    /// # Errors
    /// The turn ends with an error before a tool has run and before anything is stored:
    /// - [`Approval`](crate::ErrorKind::Approval) for a decision that has expired or was made for other arguments, and for
    ///   the id of the turn that asked. Also for a call with two decisions, with a decision and a result, or with neither.
    ///   Also for an approved call whose tool is missing or whose arguments do not fit.
    /// - [`CallAlreadyStarted`](crate::ErrorKind::CallAlreadyStarted) for a decision about a call that was started.
    /// - [`NoClientSideCall`](crate::ErrorKind::NoClientSideCall) for a call or a result that the conversation does not wait for.
    /// - [`Configuration`](crate::ErrorKind::Configuration) without a conversation, a memory or a tool loop, and with a fork
    ///   point.
    ///
    /// The errors of the memory and of the execution of tools may come later. A store without leases cannot hold a
    /// conversation for other processes. If one of them begins a turn while the tools run, this turn ends with an error.
    /// The model is then asked to verify the calls.
    ///
    /// # Example
    /// ```
    /// # use advisor_core::{ChatClient, Result};
    /// async fn approve_all(client: &ChatClient, conversation: &str) -> Result<String> {
    ///     let mut decisions = Vec::new();
    ///     for call in client.pending_calls(conversation).await? {
    ///         // Here a person sees `call.call.name` and `call.call.arguments`.
    ///         decisions.push(call.approve()?);
    ///     }
    ///     Ok(client.prompt().conversation(conversation).resume(decisions).call().await?.text())
    /// }
    /// ```
    pub fn resume(self, decisions: impl IntoIterator<Item = Decision>) -> Self {
        Self { decisions: Some(decisions.into_iter().collect()), ..self }
    }

    /// Creates the turn. A configuration error is its first and only item.
    pub fn stream(self) -> TurnStream {
        let turn = Turn::new(self.turn.clone().unwrap_or_else(TurnId::random));
        self.extensions.iter().for_each(|leave| leave(&turn));
        turn.facts(|facts| facts.inherited_bounds = self.inherited_bounds);
        let (on_drop, spawner) = (self.on_drop, self.defaults.spawner.clone());
        let begin = self.prepare(Arc::clone(&turn)).map(Box::new);
        let stream = TurnStream::new(turn, begin).with_on_drop(on_drop);
        match spawner {
            Some(spawner) => stream.with_spawner(spawner),
            None => stream,
        }
    }

    /// Reads the turn to its end and returns the response: the same turn as [`Prompt::stream`].
    ///
    /// # Errors
    /// Those of the turn.
    pub async fn call(self) -> Result<TurnResponse> {
        self.stream().call().await
    }

    /// Keeps the first configuration error.
    fn note(&mut self, error: Error) {
        self.error.get_or_insert_with(|| Arc::new(error));
    }

    fn prepare(self, turn: Arc<Turn>) -> Result<(AdvisorChain, ChatRequest)> {
        if let Some(error) = self.error {
            let copy = |shared: Arc<Error>| Error::new(shared.kind(), shared.to_string()).with_source(shared);
            return Err(Arc::try_unwrap(error).unwrap_or_else(copy));
        }
        check_spawner(self.on_drop, self.defaults.spawner.as_ref())?;
        if self.messages.is_empty() && self.decisions.is_none() {
            return Err(Error::configuration("the turn has no input: add a user message"));
        }
        let mut messages: MessageList = self.system.map(Message::system).into_iter().collect();
        messages.extend(self.messages.iter().cloned());
        let request = ChatRequest {
            options: self.options.or(&self.defaults.options),
            tools: self.tools,
            conversation: self.conversation,
            turn,
            ..ChatRequest::new(messages)
        };
        let chain = if self.advisors.is_empty() {
            self.chain
        } else {
            let (mut links, model) = self.chain.parts();
            links.extend(self.advisors.into_iter().map(Link::new));
            AdvisorChain::new(links, model)?
        };
        chain.validate_tools(&request.tools)?;
        if let Some(decisions) = self.decisions {
            request.turn.extensions().insert(decided(&chain, &request, decisions)?);
        }
        Ok((chain, request))
    }
}

/// Returns the decisions of a turn, if the chain can apply them.
fn decided(chain: &AdvisorChain, request: &ChatRequest, decisions: Vec<Decision>) -> Result<Decisions> {
    let missing = |what| move || Error::configuration(what);
    let no_memory = "no memory knows which calls wait: add a `ChatMemoryAdvisor`, or send their results";
    let no_loop = "no advisor runs approved calls: add a `ToolCallAdvisor`";
    let no_conversation = "name the conversation whose calls are decided";
    chain.pending_calls().ok_or_else(missing(no_memory))?;
    let runner = chain.call_runner().ok_or_else(missing(no_loop))?;
    request.conversation.as_ref().ok_or_else(missing(no_conversation))?;
    Ok(Decisions::new(decisions, runner))
}

impl fmt::Debug for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prompt")
            .field("conversation", &self.conversation)
            .field("messages", &self.messages.len())
            .finish_non_exhaustive()
    }
}
