pub(crate) mod messages;
pub(crate) mod options;

use std::sync::Arc;

use message_aggregator::{AggregatorSettings, ChatResponse, Message, MessageList};

use crate::{ChatOptions, ChunkStream, ConversationKey, Tool, ToolSet, Turn, TurnId};

/// What travels inwards through the chain. Cheap to clone.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ChatRequest {
    /// What is sent: system messages and the conversation so far.
    pub messages: MessageList,
    /// How the model is to answer.
    pub options: ChatOptions,
    /// The tools that are offered to the model; what an advisor adds here can also be called.
    pub tools: ToolSet,
    /// The conversation to remember this turn in.
    pub conversation: Option<ConversationKey>,
    /// What this turn shares.
    pub turn: Arc<Turn>,
    /// The number of this model call; set by the chain right before the model is asked, 0 until then.
    pub round: u32,
}

impl ChatRequest {
    /// A request that begins a turn of its own.
    pub fn new(messages: impl Into<MessageList>) -> Self {
        Self {
            messages: messages.into(),
            options: ChatOptions::default(),
            tools: ToolSet::new(),
            conversation: None,
            turn: Turn::new(TurnId::mint()),
            round: 0,
        }
    }

    /// The same request with one more message at its end.
    #[must_use]
    pub fn with_message(mut self, message: Message) -> Self {
        self.messages.push(message);
        self
    }

    /// The same request with other messages.
    #[must_use]
    pub fn with_messages(self, messages: impl Into<MessageList>) -> Self {
        Self { messages: messages.into(), ..self }
    }

    /// The same request with other options.
    #[must_use]
    pub fn with_options(self, options: ChatOptions) -> Self {
        Self { options, ..self }
    }

    /// The same request with one more tool.
    #[must_use]
    pub fn with_tool(self, tool: impl Tool) -> Self {
        Self { tools: self.tools.with(tool), ..self }
    }

    /// The same request with other tools.
    #[must_use]
    pub fn with_tools(self, tools: ToolSet) -> Self {
        Self { tools, ..self }
    }

    /// The same request as part of a conversation.
    #[must_use]
    pub fn with_conversation(self, conversation: ConversationKey) -> Self {
        Self { conversation: Some(conversation), ..self }
    }

    /// The same request as part of a turn.
    #[must_use]
    pub fn with_turn(self, turn: Arc<Turn>) -> Self {
        Self { turn, ..self }
    }

    /// The answer to this request without the model: what a guard, a cache or any other advisor knows already.
    ///
    /// It is given in a round of its own, whatever round `response` has, so that its blocks are told from all
    /// others of the turn; see [`ChatResponse::in_round`]. Token counts of `response` count for this turn.
    ///
    /// # Example
    /// ```
    /// use advisor_core::{ChatRequest, ChatResponse, FinishReason, Message, from_fn};
    ///
    /// let closed = from_fn("closed", |request: ChatRequest, _| async move {
    ///     let sorry = Message::assistant("We are closed.");
    ///     Ok(request.answer(ChatResponse::new(0, sorry, FinishReason::Stop)))
    /// });
    /// ```
    pub fn answer(&self, response: ChatResponse) -> ChunkStream {
        self.turn.note_answer(response.message());
        ChunkStream::answer(response.in_round(self.turn.next_round()))
    }

    /// How the model's answer to this request is to be aggregated: with as many choices as were asked for, and
    /// with ids that no other turn has for calls that come without one.
    #[must_use]
    pub fn aggregator_settings(&self) -> AggregatorSettings {
        let mut settings = AggregatorSettings::default();
        settings.choices = self.options.choices.unwrap_or(1).max(1);
        // The end of a turn's id is its random part.
        let random: String =
            self.turn.id().as_str().chars().rev().filter(char::is_ascii_alphanumeric).take(12).collect();
        settings.call_id_prefix = format!("call_{random}").into();
        settings
    }
}
