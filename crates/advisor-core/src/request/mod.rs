//! `ChatRequest`: messages, options, callable tools and those the API describes, conversation, turn; `answer` replies
//! without the model.

pub(crate) mod described_schema;
pub(crate) mod messages;
pub(crate) mod options;

use std::sync::Arc;

use message_aggregator::{AggregatorSettings, ChatResponse, Message, MessageList};

use crate::{ChatOptions, ChunkStream, ConversationKey, Tool, ToolChoice, ToolSet, Turn, TurnId};

/// A request that travels inwards through the chain. Cheap to clone.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ChatRequest {
    /// The messages to send: system messages and the conversation so far.
    pub messages: MessageList,
    /// The settings of the answer.
    pub options: ChatOptions,
    /// The tools that the model may call. Those that an advisor adds here can also be called.
    pub tools: ToolSet,
    /// The tools that the API describes to the model; `None`: all that it may call.
    api_tools: Option<ToolSet>,
    /// The conversation that remembers this turn.
    pub conversation: Option<ConversationKey>,
    /// The shared state of the turn.
    pub turn: Arc<Turn>,
    /// The number of this model call. The chain sets it right before it calls the model; 0 until then.
    pub round: u32,
}

impl ChatRequest {
    /// Creates a request with a new turn.
    pub fn new(messages: impl Into<MessageList>) -> Self {
        Self {
            messages: messages.into(),
            options: ChatOptions::default(),
            tools: ToolSet::new(),
            api_tools: None,
            conversation: None,
            turn: Turn::new(TurnId::random()),
            round: 0,
        }
    }

    /// Appends a message.
    #[must_use]
    pub fn with_message(mut self, message: Message) -> Self {
        self.messages.push(message);
        self
    }

    /// Replaces the messages.
    #[must_use]
    pub fn with_messages(self, messages: impl Into<MessageList>) -> Self {
        Self { messages: messages.into(), ..self }
    }

    /// Replaces the options.
    #[must_use]
    pub fn with_options(self, options: ChatOptions) -> Self {
        Self { options, ..self }
    }

    /// Adds a tool.
    #[must_use]
    pub fn with_tool(self, tool: impl Tool) -> Self {
        Self { tools: self.tools.with(tool), ..self }
    }

    /// Replaces the tools.
    #[must_use]
    pub fn with_tools(self, tools: ToolSet) -> Self {
        Self { tools, ..self }
    }

    /// Sets the tools that the API describes to the model, for an advisor that describes the others in words.
    ///
    /// It changes only the sent fields: every tool in [`tools`](Self::tools) can still be called. Such an advisor
    /// belongs beside the model, so that it sees the tools that all other advisors add. It also has to express
    /// the tool choice in words, which [`api_tool_choice`](Self::api_tool_choice) may leave out.
    ///
    /// # Example
    /// ```
    /// use advisor_core::{ChatRequest, Phase, Placement, ToolSet, from_fn, AdvisorChain};
    ///
    /// let in_words = from_fn("in-words", |request: ChatRequest, next: AdvisorChain| async move {
    ///     let names: Vec<_> = request.tools.definitions().map(|tool| tool.name.to_string()).collect();
    ///     let request = request.with_system(format!("Write <call name=\"…\"/> to call one of {names:?}."));
    ///     next.next_stream(request.with_api_tools(ToolSet::new())).await
    /// })
    /// .with_placement(Placement::new(Phase::ModelCall));
    /// ```
    #[must_use]
    pub fn with_api_tools(self, tools: ToolSet) -> Self {
        Self { api_tools: Some(tools), ..self }
    }

    /// Returns the tools that a provider describes in the fields of its API: all [`tools`](Self::tools), unless an
    /// advisor has [set](Self::with_api_tools) others.
    #[must_use]
    pub fn api_tools(&self) -> &ToolSet {
        self.api_tools.as_ref().unwrap_or(&self.tools)
    }

    /// Returns the tool choice that a provider sends. `None` if it is not set, if the API describes no tool, or if
    /// it names a tool that only an advisor describes.
    #[must_use]
    pub fn api_tool_choice(&self) -> Option<&ToolChoice> {
        let described = self.api_tools();
        let is_sent = |choice: &&ToolChoice| match choice {
            ToolChoice::Tool(name) if self.tools.find(name).is_some() => described.find(name).is_some(),
            _ => !described.is_empty(),
        };
        self.options.tool_choice.as_ref().filter(is_sent)
    }

    /// Makes the request part of a conversation.
    #[must_use]
    pub fn with_conversation(self, conversation: ConversationKey) -> Self {
        Self { conversation: Some(conversation), ..self }
    }

    /// Makes the request part of a turn.
    #[must_use]
    pub fn with_turn(self, turn: Arc<Turn>) -> Self {
        Self { turn, ..self }
    }

    /// Answers this request without the model, for a guard, a cache or any other advisor that knows the answer.
    ///
    /// The answer gets a new round number in place of that of `response`, so that its block ids are unique in the
    /// turn; see [`ChatResponse::in_round`]. Token counts of `response` count for this turn.
    ///
    /// # Example
    /// ```
    /// use advisor_core::{ChatRequest, from_fn};
    ///
    /// let closed = from_fn("closed", |request: ChatRequest, _| async move { Ok(request.answer("We are closed.")) });
    /// ```
    pub fn answer(&self, response: impl Into<ChatResponse>) -> ChunkStream {
        let response = response.into();
        if self.turn.note_arrival(&self.tools) {
            return ChunkStream::answer(response).in_turn(&self.turn);
        }
        self.turn.note_answer(response.message());
        let round = self.turn.next_round();
        // A call of the answer is one of these tools, as if the model had made it.
        self.turn.offer_tools(round, self.tools.clone());
        ChunkStream::answer(response.in_round(round)).in_turn(&self.turn)
    }

    /// Returns the settings for aggregating the model's answer.
    /// Calls that arrive without an id get ids with a prefix unique to this turn. Calls end eagerly if the options
    /// ask for it; a provider whose profile says so sets it if they do not.
    pub fn aggregator_settings(&self) -> AggregatorSettings {
        AggregatorSettings {
            eager_calls: self.options.eager_calls,
            call_id_prefix: self.turn.call_id_prefix(),
            ..AggregatorSettings::default()
        }
    }
}
