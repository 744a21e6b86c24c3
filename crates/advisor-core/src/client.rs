use std::fmt;
use std::sync::Arc;

use message_aggregator::{ChatResponse, Message, MessageList, Part, Text};

use crate::builder::ChainBuilder;
use crate::{
    AdvisorChain, ChatModel, ChatOptions, ChatRequest, ConversationKey, Error, OnDrop, Phase, Plan, Result,
    Spawner, StreamAdvisor, Tool, ToolSet, Turn, TurnId, TurnStream,
};

/// The way into a chain: defaults once, a [`Prompt`] per turn. Cheap to clone.
///
/// # Example
/// ```
/// use advisor_core::{ChatClient, ChatModel, ChatRequest, ChatResponse, ChunkStream, FinishReason, Message, Result, async_trait};
///
/// struct Echo;
/// #[async_trait]
/// impl ChatModel for Echo {
///     async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
///         let said = request.messages.last().map(Message::text).unwrap_or_default();
///         Ok(ChunkStream::answer(ChatResponse::new(request.round, Message::assistant(said), FinishReason::Stop)))
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> advisor_core::Result<()> {
/// let client = ChatClient::builder(Echo).system("Repeat.").build()?;
/// assert_eq!(client.prompt().user("Hello").call().await?.text(), "Hello");
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct ChatClient {
    chain: AdvisorChain,
    defaults: Arc<Defaults>,
}

#[derive(Debug, Clone, Default)]
struct Defaults {
    system: Option<Text>,
    options: ChatOptions,
    tools: ToolSet,
    on_drop: OnDrop,
    spawner: Option<Spawner>,
}

impl ChatClient {
    /// Begins a client around `model`.
    pub fn builder(model: impl ChatModel) -> ChatClientBuilder {
        ChatClientBuilder {
            chain: AdvisorChain::builder(model),
            defaults: Defaults::default(),
            duplicate: None,
        }
    }

    /// Begins a turn.
    pub fn prompt(&self) -> Prompt {
        Prompt {
            chain: self.chain.to_builder(),
            system: self.defaults.system.clone(),
            messages: MessageList::new(),
            options: ChatOptions::default(),
            defaults: Arc::clone(&self.defaults),
            tools: self.defaults.tools.clone(),
            conversation: None,
            turn: None,
            on_drop: self.defaults.on_drop,
            error: None,
        }
    }

    /// The chain that every turn runs through.
    #[must_use]
    pub fn chain(&self) -> &AdvisorChain {
        &self.chain
    }

    /// How the chain is put together.
    #[must_use]
    pub fn explain(&self) -> Plan {
        self.chain.explain()
    }
}

/// Puts a [`ChatClient`] together.
#[derive(Debug, Clone)]
#[must_use = "a client is made by `build`"]
pub struct ChatClientBuilder {
    chain: ChainBuilder,
    defaults: Defaults,
    duplicate: Option<Text>,
}

impl ChatClientBuilder {
    /// Adds an advisor at its own place.
    pub fn advisor(self, advisor: impl StreamAdvisor) -> Self {
        Self { chain: self.chain.advisor(advisor), ..self }
    }

    /// Adds an advisor in another phase than its own.
    pub fn advisor_in(self, phase: Phase, advisor: impl StreamAdvisor) -> Self {
        Self { chain: self.chain.advisor_in(phase, advisor), ..self }
    }

    /// Adds an advisor unless another of the same role is added.
    pub fn advisor_or(self, advisor: impl StreamAdvisor) -> Self {
        Self { chain: self.chain.advisor_or(advisor), ..self }
    }

    /// The instructions of every turn that gives none of its own.
    pub fn system(mut self, text: impl Into<Text>) -> Self {
        self.defaults.system = Some(text.into());
        self
    }

    /// The options of every turn, where it gives none of its own.
    pub fn options(mut self, options: ChatOptions) -> Self {
        self.defaults.options = options;
        self
    }

    /// Adds a tool for every turn.
    pub fn tool(mut self, tool: impl Tool) -> Self {
        insert_once(&mut self.defaults.tools, Arc::new(tool), &mut self.duplicate);
        self
    }

    /// Adds tools for every turn.
    pub fn tools(mut self, tools: &ToolSet) -> Self {
        for tool in tools.iter() {
            insert_once(&mut self.defaults.tools, Arc::clone(tool), &mut self.duplicate);
        }
        self
    }

    /// What becomes of a turn that is dropped, unless it says otherwise.
    pub fn on_drop(mut self, on_drop: OnDrop) -> Self {
        self.defaults.on_drop = on_drop;
        self
    }

    /// Where work that outlives a turn may run.
    pub fn spawner(mut self, spawner: Spawner) -> Self {
        self.defaults.spawner = Some(spawner);
        self
    }

    /// The client.
    ///
    /// # Errors
    /// Of kind [`Configuration`](crate::ErrorKind::Configuration) for two tools of one name, for
    /// [`OnDrop::FinishTurn`] without a spawner, and for all that [`ChainBuilder::build`] refuses.
    pub fn build(self) -> Result<ChatClient> {
        refuse_duplicate(self.duplicate)?;
        check_spawner(self.defaults.on_drop, self.defaults.spawner.as_ref())?;
        Ok(ChatClient { chain: self.chain.build()?, defaults: Arc::new(self.defaults) })
    }
}

fn insert_once(tools: &mut ToolSet, tool: Arc<dyn Tool>, duplicate: &mut Option<Text>) {
    if let Some(replaced) = tools.insert(tool) {
        duplicate.get_or_insert(replaced.definition().name.clone());
    }
}

fn refuse_duplicate(duplicate: Option<Text>) -> Result<()> {
    duplicate.map_or(Ok(()), |name| {
        Err(Error::configuration(format!("two tools are called `{name}`; rename or leave out one of them")))
    })
}

fn check_spawner(on_drop: OnDrop, spawner: Option<&Spawner>) -> Result<()> {
    if on_drop == OnDrop::FinishTurn && spawner.is_none() {
        return Err(Error::configuration(
            "finishing a dropped turn needs somewhere to run: give the client a spawner",
        ));
    }
    Ok(())
}

/// One turn being put together. Nothing happens before its stream is polled.
#[derive(Clone)]
#[must_use = "a prompt does nothing until it is streamed or called"]
pub struct Prompt {
    chain: ChainBuilder,
    system: Option<Text>,
    messages: MessageList,
    options: ChatOptions,
    defaults: Arc<Defaults>,
    tools: ToolSet,
    conversation: Option<ConversationKey>,
    turn: Option<TurnId>,
    on_drop: OnDrop,
    error: Option<Arc<Error>>,
}

impl Prompt {
    /// The instructions of this turn, in place of the client's.
    pub fn system(self, text: impl Into<Text>) -> Self {
        Self { system: Some(text.into()), ..self }
    }

    /// What the user says.
    pub fn user(self, text: impl Into<Text>) -> Self {
        self.message(Message::user(text))
    }

    /// What the user says, shows and sends.
    pub fn user_parts(self, parts: Vec<Part>) -> Self {
        self.message(Message::user_parts(parts))
    }

    /// One more message of the turn's input, such as the result of a tool that the caller ran.
    pub fn message(mut self, message: Message) -> Self {
        self.messages.push(message);
        self
    }

    /// More messages of the turn's input.
    pub fn messages(mut self, messages: impl IntoIterator<Item = Message>) -> Self {
        self.messages.extend(messages);
        self
    }

    /// The conversation to go on with and to remember the turn in.
    pub fn conversation<K>(mut self, conversation: K) -> Self
    where
        K: TryInto<ConversationKey>,
        K::Error: Into<Error>,
    {
        match conversation.try_into() {
            Ok(key) => self.conversation = Some(key),
            Err(error) => self.error = self.error.or_else(|| Some(Arc::new(error.into()))),
        }
        self
    }

    /// The turn's id, in place of a new one. The same id is the same turn.
    pub fn turn(self, turn: TurnId) -> Self {
        Self { turn: Some(turn), ..self }
    }

    /// Options of this turn, over the client's.
    pub fn options(self, options: ChatOptions) -> Self {
        Self { options: options.or(&self.options), ..self }
    }

    /// One more tool for this turn, beside the client's.
    pub fn tool(mut self, tool: impl Tool) -> Self {
        let mut duplicate = None;
        insert_once(&mut self.tools, Arc::new(tool), &mut duplicate);
        if let Err(error) = refuse_duplicate(duplicate) {
            self.error = self.error.or_else(|| Some(Arc::new(error)));
        }
        self
    }

    /// One more advisor for this turn, at its own place, inside the client's of the same phase.
    pub fn advisor(self, advisor: impl StreamAdvisor) -> Self {
        Self { chain: self.chain.advisor(advisor), ..self }
    }

    /// What becomes of the turn if it is dropped.
    pub fn on_drop(self, on_drop: OnDrop) -> Self {
        Self { on_drop, ..self }
    }

    /// The turn. What was put together wrong is its first and only item.
    pub fn stream(self) -> TurnStream {
        let turn = Turn::new(self.turn.clone().unwrap_or_else(TurnId::mint));
        let (on_drop, spawner) = (self.on_drop, self.defaults.spawner.clone());
        let stream = match self.prepare(Arc::clone(&turn)) {
            Ok((chain, request)) => TurnStream::new(chain, request),
            Err(error) => TurnStream::failed(turn, error),
        };
        let stream = stream.on_drop(on_drop);
        match spawner {
            Some(spawner) => stream.with_spawner(spawner),
            None => stream,
        }
    }

    /// Reads the turn to its end and gives the response: the same turn as [`Prompt::stream`].
    ///
    /// # Errors
    /// Those of the turn.
    pub async fn call(self) -> Result<ChatResponse> {
        self.stream().call().await
    }

    fn prepare(self, turn: Arc<Turn>) -> Result<(AdvisorChain, ChatRequest)> {
        if let Some(error) = self.error {
            return Err(Error::configuration(error.to_string()));
        }
        check_spawner(self.on_drop, self.defaults.spawner.as_ref())?;
        if self.messages.is_empty() {
            return Err(Error::configuration("the turn has no input: add a user message"));
        }
        let mut messages: MessageList = self.system.map(Message::system).into_iter().collect();
        messages.extend(self.messages.iter().cloned());
        let mut request = ChatRequest::new(messages)
            .with_options(self.options.or(&self.defaults.options))
            .with_tools(self.tools)
            .with_turn(turn);
        request.conversation = self.conversation;
        Ok((self.chain.build()?, request))
    }
}

impl fmt::Debug for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prompt")
            .field("conversation", &self.conversation)
            .field("messages", &self.messages.len())
            .finish_non_exhaustive()
    }
}
