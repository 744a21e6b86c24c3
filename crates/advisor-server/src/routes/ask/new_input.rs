use advisor_core::{ConversationKey, Message, Role, ToolCall};
use chat_memory_advisor::store::ReadRange;

use super::content::{SentMessage, SentResult};
use super::turn_id;
use crate::ChatServer;
use crate::refusal::Refusal;

/// The calls that the conversation waits for.
///
/// If an answer has a call for the client, the loop leaves all of its calls open. A client sends results of client-side
/// tools only, and never for the tools of the chain.
#[derive(Debug, Default)]
pub(in crate::routes) struct OpenCalls {
    of_client: Vec<ToolCall>,
    of_chain: Vec<ToolCall>,
}

impl OpenCalls {
    /// Reads the open calls of a conversation.
    pub(in crate::routes) async fn of(
        server: &ChatServer,
        conversation: &ConversationKey,
    ) -> Result<Self, Refusal> {
        let open = server.memory().client_side_calls(conversation).await;
        let open = open.map_err(|error| Refusal::from(&error))?;
        // A tool that `map_prompt` has added is not known here.
        let is_of_client = |call: &ToolCall| {
            server.client().tools().find(&call.name).is_none_or(|tool| tool.definition().client_side)
        };
        let (of_client, of_chain) = open.into_iter().map(|open| open.call).partition(is_of_client);
        Ok(Self { of_client, of_chain })
    }

    /// Adds the calls that a turn has answered, if it is the last one: its request is sent again. Results that differ are
    /// refused as another input of that turn.
    async fn with_answered_by(
        mut self,
        server: &ChatServer,
        conversation: &ConversationKey,
        turn: &str,
    ) -> Result<Self, Refusal> {
        let turn = turn_id(turn).map_err(|error| Refusal::bad_request(error.to_string()))?;
        let last = server.memory().store().load(conversation, ReadRange::LastTurns(1)).await;
        let last = last.map_err(|error| Refusal::from(&error.into()))?;
        let messages = last.entries.iter().filter(|entry| entry.turn == turn);
        let messages = messages.filter_map(|entry| entry.kind.as_message());
        let input = messages.take_while(|message| message.role() != Role::Assistant);
        let results = input.filter_map(Message::tool_result);
        self.of_client
            .extend(results.map(|result| ToolCall::new(result.call_id.clone(), result.name.clone(), "")));
        Ok(self)
    }

    fn find(&self, result: &SentResult) -> Option<&ToolCall> {
        self.of_client.iter().find(|call| call.id.as_str() == result.call_id)
    }

    /// Checks whether a message is a result of a tool of the chain, which is left out.
    fn speaks_for_chain(&self, message: &SentMessage) -> bool {
        let SentMessage::Result(result) = message else { return false };
        self.of_chain.iter().any(|call| call.id.as_str() == result.call_id)
    }

    pub(in crate::routes) fn has(&self, result: &SentResult) -> bool {
        self.find(result).is_some()
    }

    /// Keeps the messages after the last answer: results of open calls, which come first, and messages of the user.
    ///
    /// # Errors
    /// For messages of other roles among them, for two results of a call, and for parts that cannot be passed on.
    pub(in crate::routes) fn new_input(
        &self,
        mut messages: Vec<SentMessage>,
    ) -> Result<Vec<Message>, Refusal> {
        messages.retain(|message| !self.speaks_for_chain(message));
        let answered = messages.iter().rposition(|message| self.is_answer(message));
        let (mut results, mut said) = (Vec::<Message>::new(), Vec::new());
        for message in messages.into_iter().skip(answered.map_or(0, |at| at + 1)) {
            match message {
                SentMessage::User(content) => said.push(content.read()?),
                SentMessage::Result(result) => {
                    let Some(call) = self.find(&result) else { continue };
                    let is_repeated =
                        |other: &Message| other.tool_result().is_some_and(|other| other.call_id == call.id);
                    if results.iter().any(is_repeated) {
                        return Err(Refusal::bad_request("a call has two results"));
                    }
                    results.push(result.read(call)?);
                }
                SentMessage::Answer | SentMessage::Instructions => {
                    return Err(Refusal::bad_request(
                        "only messages of the user are accepted: the chain has its own instructions",
                    ));
                }
            }
        }
        results.append(&mut said);
        Ok(results)
    }

    /// A result that the conversation does not wait for is a part of the client's history.
    fn is_answer(&self, message: &SentMessage) -> bool {
        match message {
            SentMessage::Answer => true,
            SentMessage::Result(result) => !self.has(result),
            SentMessage::User(_) | SentMessage::Instructions => false,
        }
    }
}

/// Keeps the messages after the last answer, as [`OpenCalls::new_input`] does. The server has the earlier messages in its
/// own memory.
///
/// # Errors
/// Also for a history without a conversation.
pub(in crate::routes) async fn new_input(
    server: &ChatServer,
    conversation: Option<&ConversationKey>,
    turn: Option<&str>,
    messages: Vec<SentMessage>,
) -> Result<Vec<Message>, Refusal> {
    let has_results = messages.iter().any(|message| matches!(message, SentMessage::Result(_)));
    let open = match (conversation, turn) {
        (Some(conversation), Some(turn)) if has_results => {
            OpenCalls::of(server, conversation).await?.with_answered_by(server, conversation, turn).await?
        }
        (Some(conversation), None) if has_results => OpenCalls::of(server, conversation).await?,
        _ => OpenCalls::default(),
    };
    if conversation.is_none() && messages.iter().any(|message| open.is_answer(message)) {
        let message = "name the conversation, such as in the header `x-conversation-id`: the server keeps the history, \
                       and takes none from clients";
        return Err(Refusal::bad_request(message));
    }
    let input = open.new_input(messages)?;
    if input.is_empty() && has_results {
        return Err(Refusal::bad_request("the conversation does not wait for this result"));
    }
    Ok(input)
}
