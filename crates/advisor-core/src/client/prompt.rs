use std::fmt;
use std::sync::Arc;

use message_aggregator::{Message, MessageList, Part, Text};

use crate::client::{Defaults, check_spawner, duplicate_tool};
use crate::{
    AdvisorChain, ChainBuilder, ChatOptions, ChatRequest, ConversationKey, Error, IntoId, OnDrop, Result,
    StreamAdvisor, Tool, ToolSet, Turn, TurnId, TurnResponse, TurnStream,
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
    on_drop: OnDrop,
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
            messages: MessageList::new(),
            options: ChatOptions::default(),
            tools: defaults.tools.clone(),
            conversation: None,
            turn: None,
            extensions: Vec::new(),
            on_drop: defaults.on_drop,
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
        self.message(Message::user(text))
    }

    /// Adds a user message of several parts to the turn's input.
    pub fn user_parts(self, parts: Vec<Part>) -> Self {
        self.message(Message::user_parts(parts))
    }

    /// Adds a message to the turn's input, such as the result of a tool that the caller ran.
    pub fn message(mut self, message: Message) -> Self {
        self.messages.push(message);
        self
    }

    /// Adds messages to the turn's input.
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

    /// Sets options of this turn; they take precedence over the client's.
    pub fn options(self, options: ChatOptions) -> Self {
        Self { options: options.or(&self.options), ..self }
    }

    /// Adds a tool for this turn to the client's tools.
    pub fn tool(mut self, tool: impl Tool) -> Self {
        if let Some(replaced) = self.tools.insert(Arc::new(tool)) {
            self.note(duplicate_tool(&replaced.definition().name));
        }
        self
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

    /// Creates the turn. A configuration error is its first and only item.
    pub fn stream(self) -> TurnStream {
        let turn = Turn::new(self.turn.clone().unwrap_or_else(TurnId::random));
        self.extensions.iter().for_each(|leave| leave(&turn));
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
            return Err(Arc::try_unwrap(error)
                .unwrap_or_else(|shared| Error::new(shared.kind(), shared.to_string()).with_source(shared)));
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
        let chain = if self.advisors.is_empty() {
            self.chain
        } else {
            let added = self.advisors.into_iter();
            added.fold(self.chain.to_builder(), ChainBuilder::shared_advisor).build()?
        };
        chain.validate_tools(&request.tools)?;
        Ok((chain, request))
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
