//! `ChatRequest`: messages, options, callable tools and those the API describes, conversation, turn; `answer` replies
//! without the model.

pub(crate) mod described_schema;
pub(crate) mod options;

use std::sync::Arc;

use message_aggregator::{
    AggregatorSettings, ChatResponse, Message, MessageContent, MessageList, Part, Role, Text,
};

use crate::{ChatOptions, ChunkStream, ConversationKey, Tool, ToolChoice, ToolSet, Turn, TurnId};

/// A request that travels inwards through the chain. Cheap to clone.
///
/// An advisor changes its fields: `ChatRequest { tools, ..request }`.
#[derive(Debug, Clone)]
pub struct ChatRequest {
    /// The messages to send: system messages and the conversation so far.
    pub messages: MessageList,
    /// The settings of the answer.
    pub options: ChatOptions,
    /// The tools that the model may call. Those that an advisor adds here can also be called.
    pub tools: ToolSet,
    /// The tools that a provider describes in the fields of its API; `None`: all [`tools`](Self::tools).
    ///
    /// An advisor that describes the others in words sets it. Every tool in `tools` can still be called. Such an advisor
    /// belongs beside the model, so that it sees the tools that all other advisors add. It also has to express
    /// the tool choice in words, which [`api_tool_choice`](Self::api_tool_choice) may leave out.
    pub api_tools: Option<ToolSet>,
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

    /// Adds a tool.
    #[must_use]
    pub fn with_tool(self, tool: impl Tool) -> Self {
        Self { tools: self.tools.with(tool), ..self }
    }

    /// Returns the tools that a provider describes in the fields of its API.
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
        let mut response = response.into();
        if !self.turn.note_arrival(&self.tools) {
            self.turn.note_answer(response.message());
            let round = self.turn.next_round();
            // A call of the answer is one of these tools, as if the model had made it.
            self.turn.offer_tools(round, self.tools.clone());
            response = response.in_round(round);
        }
        let mut stream = ChunkStream::answer(response);
        stream.belongs_to(Arc::clone(&self.turn));
        stream
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

/// Edits of the messages of a request.
impl ChatRequest {
    /// Returns the last message of the user. Ephemeral messages, which advisors add, are skipped.
    ///
    /// In a round that follows tools, only advisors inside the history see it: those inside memory or, without
    /// memory, those inside the tool loop.
    ///
    /// # Example
    /// ```
    /// use advisor_core::{ChatRequest, Message};
    ///
    /// let request = ChatRequest::new(Message::user("Hello")).with_system("Be polite.");
    /// assert_eq!(request.last_user().unwrap().text(), "Hello");
    /// ```
    #[must_use]
    pub fn last_user(&self) -> Option<&Message> {
        self.messages.iter().rev().find(|message| message.role() == Role::User && !message.is_ephemeral())
    }

    /// Appends instructions to the leading system message, or adds one.
    ///
    /// A blank line separates old and new text; an empty text changes nothing. Some servers reject a second system
    /// message or one that comes later. Instructions are sent and never remembered.
    ///
    /// # Example
    /// ```
    /// use advisor_core::{ChatRequest, Message, Role};
    ///
    /// let request = ChatRequest::new(Message::user("Hello")).with_system("Be polite.").with_system("Be brief.");
    /// let sent: Vec<_> = request.messages.iter().map(Message::text).collect();
    /// assert_eq!(sent, ["Be polite.\n\nBe brief.", "Hello"]);
    /// ```
    #[must_use]
    pub fn with_system(self, text: impl Into<Text>) -> Self {
        let text = text.into();
        if text.is_empty() {
            return self;
        }
        let mut rest = self.messages.iter().cloned().peekable();
        let mut messages = MessageList::default();
        let mut last = rest.next_if(is_system);
        while let Some(next) = rest.next_if(is_system) {
            messages.extend(last.replace(next));
        }
        messages.push(match last {
            Some(last) => Message::system(format!("{}\n\n{text}", last.text())),
            None => Message::system(text),
        });
        messages.extend(rest);
        Self { messages, ..self }
    }

    /// Puts context in front of the user's message that the turn answers: text for this turn alone, such as retrieved
    /// documents.
    ///
    /// The model is sent the text at the beginning of that message, before a blank line, in every round of the turn.
    /// Everything before the message stays as it was sent in earlier turns, so a provider reads it from its cache. On
    /// the way there, the text is an [ephemeral](Message::ephemeral) message of its own: memory does not store it, and
    /// [`last_user`](Self::last_user) is what the user wrote. Further context follows, in the order of the calls; an
    /// equal one is added once per turn, and an empty text changes nothing.
    ///
    /// In a round whose request lacks that message, since a memory further inside has it, nothing is added. A turn
    /// without a message of the user gets the text as [instructions](Self::with_system).
    ///
    /// # Example
    /// ```
    /// use advisor_core::{ChatRequest, Message};
    ///
    /// let request = ChatRequest::new(Message::user("When do you open?")).with_context("The shop opens at nine.");
    /// assert_eq!(request.last_user().unwrap().text(), "When do you open?");
    /// let sent: Vec<_> = request.messages.iter().map(Message::text).collect();
    /// assert_eq!(sent, ["The shop opens at nine.", "When do you open?"], "the model is sent one message of both");
    /// ```
    #[must_use]
    pub fn with_context(self, text: impl Into<Text>) -> Self {
        let text = text.into();
        if text.is_empty() {
            return self;
        }
        let (context, place) = self.turn.context(&text, self.last_user());
        if place.is_empty() {
            return self.with_system(text);
        }
        if self.messages.iter().any(|message| message.is_same(&context)) {
            return self;
        }
        let is_place = |message: &Message| place.iter().any(|version| version.is_same(message));
        let last_user = |message: &Message| message.role() == Role::User && !message.is_ephemeral();
        let behind = self.messages.iter().rev().position(is_place);
        let Some(behind) = behind.or_else(|| self.messages.iter().rev().position(last_user)) else {
            return self;
        };
        let before = self.messages.len() - behind - 1;
        let (head, tail) = (self.messages.iter().take(before), self.messages.iter().skip(before));
        let messages = head.chain([&context]).chain(tail).cloned().collect::<MessageList>();
        Self { messages, ..self }
    }

    /// Returns the request as the model gets it: with its context in the messages that it stands before. Strict chat
    /// templates refuse two messages of the user in a row.
    pub(crate) fn with_joined_context(self) -> Self {
        let contexts = self.turn.contexts();
        if contexts.is_empty() {
            return self;
        }
        let (mut messages, mut before) = (MessageList::default(), Vec::new());
        for message in &self.messages {
            if contexts.iter().any(|context| context.is_same(message)) {
                before.push(message.clone());
            } else if message.role() == Role::User && !before.is_empty() {
                let joined = with_texts_before(message, &std::mem::take(&mut before));
                messages.push(self.turn.stable_replacement(message, joined));
            } else {
                messages.extend(std::mem::take(&mut before));
                messages.push(message.clone());
            }
        }
        messages.extend(before);
        Self { messages, ..self }
    }

    /// Applies `map` to each text of the user's messages. Pictures, files and structured parts stay as they are, and so do
    /// ephemeral messages, which advisors add.
    ///
    /// Outside memory, the mapped text is both sent and remembered; further inside, memory keeps the original. The
    /// transcript of the turn has the text that the caller gave.
    /// Within a turn, mapping a message to the same texts again yields the same message, so it is remembered once.
    ///
    /// # Example
    /// ```
    /// use advisor_core::{ChatRequest, Message};
    ///
    /// let request = ChatRequest::new(Message::user("My PIN is 1234."));
    /// let request = request.map_user_text(|text| text.replace("1234", "****"));
    /// assert_eq!(request.last_user().unwrap().text(), "My PIN is ****.");
    /// ```
    #[must_use]
    pub fn map_user_text(self, mut map: impl FnMut(&str) -> String) -> Self {
        let mut any = false;
        let messages = self.messages.iter().map(|message| {
            let MessageContent::User(parts) = message.content() else { return message.clone() };
            if message.is_ephemeral() {
                return message.clone();
            }
            let mapped: Vec<_> = parts
                .iter()
                .map(|part| part.as_text().map_or_else(|| part.clone(), |text| map(text).into()))
                .collect();
            if mapped == *parts {
                return message.clone();
            }
            let new = Message::user_parts(mapped);
            let new = if message.is_hidden() { new.hidden() } else { new };
            let new = self.turn.stable_replacement(message, new);
            any |= !new.is_same(message);
            new
        });
        let messages: MessageList = messages.collect();
        // An unchanged list keeps its cached wire form.
        if any { Self { messages, ..self } } else { self }
    }
}

/// Returns a message of the user with these texts at its beginning.
fn with_texts_before(message: &Message, texts: &[Message]) -> Message {
    let MessageContent::User(parts) = message.content() else { return message.clone() };
    let mut parts = parts.clone();
    let mut text = texts.iter().map(Message::text).collect::<Vec<_>>().join("\n\n");
    match parts.first_mut() {
        Some(Part::Text(said)) => {
            text.push_str("\n\n");
            text.push_str(said);
            *said = text.into();
        }
        _ => parts.insert(0, Part::Text(text.into())),
    }
    Message::user_parts(parts)
}

fn is_system(message: &Message) -> bool {
    message.role() == Role::System
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_join_last_leading_system_message() {
        let sent = |before: Vec<Message>, text: &str| -> Vec<String> {
            ChatRequest::new(before).with_system(text).messages.iter().map(Message::text).collect()
        };
        let system = Message::system;
        let user = || Message::user("u");
        assert_eq!(sent(vec![user(), system("later")], "new"), ["new", "u", "later"]);
        assert_eq!(sent(vec![system("a"), system("b"), user()], "new"), ["a", "b\n\nnew", "u"]);
        assert_eq!(sent(vec![system("a"), user()], ""), ["a", "u"]);
        assert_eq!(sent(vec![], "new"), ["new"]);
    }

    #[test]
    fn the_last_user_message_is_the_users_own() {
        let request = ChatRequest::new(vec![
            Message::user("one"),
            Message::assistant("two"),
            Message::user("three"),
            Message::user("documents").ephemeral(),
            Message::system("four"),
        ]);
        assert_eq!(request.last_user().map(Message::text).as_deref(), Some("three"));
        assert_eq!(ChatRequest::new(Message::system("a")).last_user(), None);
    }

    #[test]
    fn remapping_message_within_turn_preserves_identity() {
        let request = ChatRequest::new(vec![Message::user("a"), Message::user("B"), Message::assistant("a")]);
        let mapped = |request: &ChatRequest| -> Vec<Message> {
            request.clone().map_user_text(str::to_uppercase).messages.iter().cloned().collect()
        };
        let (first, second) = (mapped(&request), mapped(&request));
        assert_eq!(first.iter().map(Message::text).collect::<Vec<_>>(), ["A", "B", "a"]);
        assert!(first.iter().zip(&second).all(|(one, other)| one.is_same(other)));
        let other = request.clone().map_user_text(|text| format!("{text}!"));
        assert_eq!(other.messages.iter().map(Message::text).collect::<Vec<_>>(), ["a!", "B!", "a"]);
    }

    #[test]
    fn only_texts_of_the_user_change_and_marks_stay() {
        let picture = Part::Image(crate::Media::from_url("image/png", "https://example.org/a.png"));
        let parts = |text: &str| Message::user_parts(vec![Part::from(text), picture.clone()]);
        let given = vec![
            Message::system("a"),
            parts("a"),
            Message::user("a").hidden(),
            Message::user("a").ephemeral(),
            Message::user("A"),
        ];
        let request = ChatRequest::new(given.clone()).map_user_text(str::to_uppercase);
        let expected = [&given[0], &parts("A"), &Message::user("A").hidden(), &given[3], &given[4]];
        assert!(request.messages.iter().eq(expected));
        assert!(request.messages[4].is_same(&given[4]), "it has not changed");
    }
}
