//! `OpenCalls`: the messages after the last answer, with results of calls that the conversation waits for.

use std::collections::HashMap;

use advisor_core::{CallKey, ClientSideCall, ConversationKey, Message, Role, ToolCall, ToolResult, TurnId};
use chat_memory_advisor::store::{Entry, ReadRange, same_turn};

use super::content::{SentMessage, SentResult};
use super::history::Stored;
use super::{is_empty, turn_id};
use crate::ChatServer;
use crate::readiness::in_time;
use crate::refusal::Refusal;
use crate::routes::ask::headers::Asking;
use crate::routes::ask::headers::CallSuffix;
use crate::routes::conversations::shown::ShownIds;
use crate::routes::input::User;

/// The calls of client-side tools that the conversation waits for.
///
/// Other calls can be open, too: those of the chain's tools that wait for an approval, and those of tools that the
/// prompt does not have. A client sends no results for them.
#[derive(Debug, Default)]
struct OpenCalls(Vec<OpenCall>);

/// A call, and the id under which the client knows it: within a turn, models repeat the ids of earlier rounds.
#[derive(Debug)]
struct OpenCall {
    shown_id: String,
    suffix: Option<CallSuffix>,
    call: ToolCall,
}

impl OpenCall {
    /// Checks whether a client knows the call, under this id, as `sent`.
    fn is_known_as(&self, id: &str, sent: &str) -> bool {
        self.suffix.as_ref().map_or(id == sent, |suffix| suffix.names(id, sent))
    }
}

impl OpenCalls {
    /// Reads the open calls of a conversation, and those that this turn has answered if it is the last one: its request is
    /// sent again. Results that differ are refused as another input of that turn.
    async fn of(
        server: &ChatServer,
        user: &User,
        conversation: &ConversationKey,
        turn: Option<&str>,
    ) -> Result<Self, Refusal> {
        let turn = turn.map(turn_id).transpose()?;
        let open = server.memory.client_side_calls(conversation).await?;
        if open.is_empty() && turn.is_none() {
            return Ok(Self::default());
        }
        let log = in_time(server.memory.store().load(conversation, ReadRange::LastTurns(2))).await?.entries;
        let is_of_client = |open: &ClientSideCall| user.runs(server, &open.call.name) == Some(true);
        let to_open = |open: ClientSideCall| {
            let shown_id = open.key.as_ref().and_then(|key| shown_id(&log, key));
            let suffix = open.key.as_ref().map(|key| CallSuffix::of(&key.turn));
            OpenCall {
                shown_id: shown_id.unwrap_or_else(|| open.call.id.to_string()),
                suffix,
                call: open.call,
            }
        };
        let open = open.into_iter().filter(is_of_client).map(to_open);
        let answered = turn.map(|turn| answered_by(&log, &turn)).unwrap_or_default();
        Ok(Self(open.chain(answered).collect()))
    }

    fn find(&self, result: &SentResult) -> Option<&ToolCall> {
        let sent = &result.call_id;
        let by_shown_id = self.0.iter().find(|open| open.is_known_as(&open.shown_id, sent));
        // A stream that hides the chain's calls does not number the client's.
        let open = by_shown_id.or_else(|| self.0.iter().find(|open| open.is_known_as(&open.call.id, sent)));
        open.map(|open| &open.call)
    }

    fn has(&self, result: &SentResult) -> bool {
        self.find(result).is_some()
    }

    /// Keeps the results of open calls, which come first, and the messages of the user after the last answer.
    ///
    /// A result is one of an open call if it comes after the last answer, or after the last item with that call: a list may
    /// have calls and results in turn. Other results, such as of a tool that the chain has run, are left out.
    ///
    /// # Errors
    /// For instructions among them, for two results of a call, and for parts that cannot be passed on.
    fn new_input(&self, messages: Vec<SentMessage>) -> Result<Vec<Message>, Refusal> {
        let (mut results, mut said) = (Vec::<Message>::new(), Vec::new());
        let known = self.len_of_history(&messages);
        let called = calls_of(&messages);
        for (place, message) in messages.into_iter().enumerate() {
            match message {
                SentMessage::Result(result) => {
                    let is_earlier =
                        place < known && called.get(&result.call_id).is_none_or(|called| place < *called);
                    let Some(call) = self.find(&result).filter(|_| !is_earlier) else { continue };
                    let is_repeated =
                        |other: &Message| other.tool_result().is_some_and(|other| other.call_id == call.id);
                    if results.iter().any(is_repeated) {
                        return Err(Refusal::bad_request("a call has two results"));
                    }
                    results.push(result.read(call)?);
                }
                _ if place < known => {}
                SentMessage::User(content) => said.push(content.read()?),
                // An answer is history.
                SentMessage::Answer(_) => {}
                SentMessage::Instructions => return Err(Refusal::instructions()),
            }
        }
        results.append(&mut said);
        Ok(results)
    }

    /// Counts the messages up to the last answer. Results that the conversation does not wait for are part of an earlier
    /// one.
    fn len_of_history(&self, messages: &[SentMessage]) -> usize {
        let (mut read, mut history) = (0, 0);
        let is_result = |message: &SentMessage| matches!(message, SentMessage::Result(_));
        for run in messages.chunk_by(|one, next| is_result(one) && is_result(next)) {
            read += run.len();
            let is_history = run.iter().all(|message| match message {
                SentMessage::Answer(_) => true,
                SentMessage::Result(result) => !self.has(result),
                SentMessage::User(_) | SentMessage::Instructions => false,
            });
            if is_history {
                history = read;
            }
        }
        history
    }
}

/// Returns the id under which a client knows a call of the last answer with calls of its turn.
fn shown_id(log: &[Entry], key: &CallKey) -> Option<String> {
    let calls = calls_with_ids(log.iter().filter(|entry| entry.turn == key.turn)).into_iter();
    calls.map(|(id, _)| id).nth(usize::try_from(key.position).ok()?)
}

/// Returns the calls of a turn's last answer with calls, each with the id under which a client knows it.
pub(in crate::routes) fn calls_with_ids<'a>(
    turn: impl IntoIterator<Item = &'a Entry>,
) -> Vec<(String, ClientSideCall)> {
    let (mut ids, mut calls) = (ShownIds::default(), Vec::new());
    for entry in turn {
        let Some(answer) = entry.kind.as_message().filter(|message| message.tool_calls().next().is_some())
        else {
            continue;
        };
        let key = |position| Some(CallKey::new(entry.turn.clone(), entry.round?, position));
        let shown = ids.of_calls(answer).into_iter().zip(answer.tool_calls());
        let with_key = |(position, (id, call)): (u32, (String, &ToolCall))| {
            (id, ClientSideCall { key: key(position), call: call.clone(), started: false, definition: None })
        };
        calls = (0..).zip(shown).map(with_key).collect();
    }
    calls
}

/// Returns the calls whose results begin a turn.
fn answered_by(log: &[Entry], turn: &TurnId) -> Vec<OpenCall> {
    let asking = turn_before(log, turn);
    let to_call = |(shown_id, result): (String, ToolResult)| OpenCall {
        shown_id,
        suffix: asking.map(CallSuffix::of),
        call: ToolCall::new(result.call_id, result.name, ""),
    };
    first_results(log, turn).into_iter().map(to_call).collect()
}

/// Returns the turn before `turn`, if both are in the log.
pub(in crate::routes) fn turn_before<'a>(log: &'a [Entry], turn: &TurnId) -> Option<&'a TurnId> {
    let mut turns = log.chunk_by(same_turn).rev().filter_map(|entries| Some(&entries.first()?.turn));
    turns.by_ref().find(|of_log| *of_log == turn)?;
    turns.next()
}

/// Returns the results that begin a turn, each with the id under which a client knows its call.
pub(in crate::routes) fn first_results(log: &[Entry], turn: &TurnId) -> Vec<(String, ToolResult)> {
    let (mut ids, mut results) = (ShownIds::default(), Vec::new());
    for entries in log.chunk_by(same_turn) {
        ids.begin_turn();
        let is_it = entries.first().is_some_and(|entry| &entry.turn == turn);
        for message in entries.iter().filter_map(|entry| entry.kind.as_message()) {
            match message.tool_result() {
                Some(result) if is_it => results.push((ids.of_result(result), result.clone())),
                Some(result) => drop(ids.of_result(result)),
                // The input ends with the first answer.
                None if is_it && message.role() == Role::Assistant => break,
                None if message.role() == Role::Assistant => drop(ids.of_calls(message)),
                None => {}
            }
        }
    }
    results
}

/// Returns the last place of each call.
fn calls_of(messages: &[SentMessage]) -> HashMap<String, usize> {
    let calls = messages.iter().enumerate().filter_map(|(place, message)| match message {
        SentMessage::Answer(answer) => Some(answer.calls.iter().map(move |call| (call.clone(), place))),
        _ => None,
    });
    calls.flatten().collect()
}

/// The new messages of a list.
#[derive(Debug, Default)]
pub(in crate::routes) struct NewInput {
    pub(in crate::routes) messages: Vec<Message>,
    /// The last turn, if the request repeats it without its id.
    pub(in crate::routes) repeated: Option<TurnId>,
}

/// Returns the new messages of a list. It continues what memory has, or begins a conversation (law M8).
///
/// # Errors
/// For instructions at any place, for a history that the conversation does not have, and as [`OpenCalls::new_input`].
pub(in crate::routes) async fn new_input(
    server: &ChatServer,
    user: &User,
    conversation: Option<&ConversationKey>,
    asking: Asking<'_>,
    messages: Vec<SentMessage>,
) -> Result<NewInput, Refusal> {
    let has_results = messages.iter().any(SentMessage::is_result);
    let input = input_beside_decisions(server, user, conversation, asking, messages).await?;
    if input.messages.is_empty() && has_results {
        return Err(Refusal::bad_request(
            "the conversation does not wait for this result: its call has one, or the application decides about it",
        ));
    }
    Ok(input)
}

/// Returns the new messages, as [`new_input`] does, but there may be none.
pub(in crate::routes) async fn input_beside_decisions(
    server: &ChatServer,
    user: &User,
    conversation: Option<&ConversationKey>,
    asking: Asking<'_>,
    mut messages: Vec<SentMessage>,
) -> Result<NewInput, Refusal> {
    if messages.iter().any(|message| matches!(message, SentMessage::Instructions)) {
        return Err(Refusal::instructions());
    }
    // A greeting, before the user has said something.
    let greeting = messages.iter().take_while(|message| message.may_greet()).count();
    drop(messages.drain(..greeting));
    let has_results = messages.iter().any(SentMessage::is_result);
    let Some(conversation) = conversation else {
        if has_results || messages.iter().any(|message| matches!(message, SentMessage::Answer(_))) {
            return Err(Refusal::history_without_name());
        }
        return Ok(NewInput { messages: OpenCalls::default().new_input(messages)?, repeated: None });
    };
    let open = match has_results {
        true => OpenCalls::of(server, user, conversation, asking.turn).await?,
        false => OpenCalls::default(),
    };
    let history = open.len_of_history(&messages);
    if asking.turn.is_some() && messages.len() < 2 && history == 0 {
        return Ok(NewInput { messages: open.new_input(messages)?, repeated: None });
    }
    let turn = asking.turn.map(turn_id).transpose()?;
    let (stored, messages) = Stored::load(server, conversation, turn.as_ref(), messages, history).await?;
    let history = match (history, stored.is_empty()) {
        (0, _) => None,
        (_, true) if asking.after.is_some() => return Err(Refusal::previous_response_not_found()),
        (_, true) => return Err(Refusal::unknown_history()),
        (_, false) => Some(stored.end_of_history.clone()?),
    };
    let input = open.new_input(messages)?;
    let (mut messages, said): (Vec<_>, Vec<_>) = input
        .into_iter()
        .filter(|message| !is_empty(message))
        .partition(|message| message.role() == Role::Tool);
    let asking = (turn.is_none() && messages.is_empty()).then_some(&asking);
    let (known, repeated) = stored.known(history, &said, asking);
    messages.extend(said.into_iter().skip(known));
    Ok(NewInput { messages, repeated })
}
