//! `Question`: the request of a client, of any protocol.
//!
//! Of a client come messages of the user, results of calls that wait, and decisions. The history comes from memory.

pub(super) mod answers;
pub(super) mod content;
pub(super) mod headers;
mod history;
pub(super) mod new_input;
pub(super) mod settings;

use advisor_core::{ConversationKey, Decision, Message, MessageContent, Prompt, Role, TurnId, TurnStream};
use axum::http::HeaderValue;
use axum::response::Response;
use chat_memory_advisor::store::{Entry, EntryId, ReadRange};
use chat_memory_advisor::{ForkPoint, MemoryReceipt};
use serde::Serialize;
use sha2::{Digest, Sha256};

use self::answers::SentApproval;
use crate::ChatServer;
use crate::readiness::in_time;
use crate::refusal::Refusal;
use crate::routes::input::User;
use crate::shared_turn::TurnReading;
use crate::turns::run::{OnDisconnect, Said};
use crate::turns::{Asked, IdOrigin};

/// The entries of a conversation that are read at once.
const PAGE: usize = 8;

/// The last turns among which a replaced one is searched first.
const RECENT_TURNS: usize = 16;

/// The request of a client, of any protocol.
pub(super) struct Question {
    pub(super) conversation: ConversationKey,
    pub(super) turn: TurnId,
    id: IdOrigin,
    pub(super) input: Vec<Message>,
    /// The decisions with which the turn begins, about calls that wait.
    decisions: Option<Vec<Decision>>,
    /// The answers to requests for approvals, as they were sent.
    approvals: Vec<SentApproval>,
    /// The place in the conversation at which the turn begins, if it is not its end.
    fork_point: Option<ForkPoint>,
    /// The earlier turn that the client names.
    earlier: Option<EarlierTurn>,
    user: User,
}

/// An earlier turn, as a part of what a client asks for.
#[derive(Debug, Serialize)]
enum EarlierTurn {
    Replaced(TurnId),
    Continued(TurnId),
}

impl Question {
    /// Creates a question in a conversation, which is a new one without an id. Without an id, the turn is a new one. Empty
    /// messages of the user are left out.
    pub(super) fn new(
        user: &User,
        conversation: Option<&str>,
        turn: Option<&str>,
        input: Vec<Message>,
    ) -> Result<Self, Refusal> {
        let question = Self::resuming(user, conversation, turn, input, None)?;
        if question.input.is_empty() {
            return Err(Refusal::bad_request(
                "the request has nothing new: no message of the user with a content, and no result or decision",
            ));
        }
        Ok(question)
    }

    /// Creates a question that begins with decisions, if there are any. It needs no message then, but a conversation.
    pub(super) fn resuming(
        user: &User,
        conversation: Option<&str>,
        turn: Option<&str>,
        mut input: Vec<Message>,
        decisions: Option<Vec<Decision>>,
    ) -> Result<Self, Refusal> {
        let id = turn.map_or(IdOrigin::Server, |_| IdOrigin::Client);
        let turn = turn.map(turn_id).transpose()?.unwrap_or_else(TurnId::random);
        let conversation = match conversation {
            Some(id) => user.conversation(id)?,
            None if decisions.is_some() => {
                return Err(Refusal::bad_request("name the conversation of the calls that are decided"));
            }
            None => user.conversation(TurnId::random().as_str())?,
        };
        input.retain(|message| !is_empty(message));
        Ok(Self {
            conversation,
            turn,
            id,
            input,
            decisions,
            approvals: Vec::new(),
            fork_point: None,
            earlier: None,
            user: user.clone(),
        })
    }

    /// Adds the answers that the decisions are made of. Requests with the same answers are the same turn, whichever of the
    /// calls has meanwhile begun.
    fn with_approvals(self, approvals: Vec<SentApproval>) -> Self {
        Self { approvals, ..self }
    }

    /// Makes the turn the one of memory that the client repeats without its id, if there is one.
    pub(super) fn repeating(self, turn: Option<TurnId>) -> Self {
        match turn {
            Some(turn) => Self { turn, id: IdOrigin::Memory, ..self },
            None => self,
        }
    }

    /// Makes the turn replace an earlier one: its input was edited, or it is to be answered again. The old turn and those
    /// behind it stay in the store, on their own branch.
    ///
    /// Returns `None` if the conversation has no such turn.
    pub(super) async fn replacing(self, server: &ChatServer, turn: &str) -> Result<Option<Self>, Refusal> {
        let turn = turn_id(turn)?;
        let end = self.end_of(server, &turn).await?;
        Ok(end.map(|_| Self {
            fork_point: Some(ForkPoint::Before(turn.clone())),
            earlier: Some(EarlierTurn::Replaced(turn)),
            ..self
        }))
    }

    /// Makes the turn continue an earlier one. Turns behind that one stay in the store, on their own branch.
    ///
    /// Returns `None` if the conversation has no such turn. Decisions are about the last answer.
    pub(super) async fn continuing(
        self,
        server: &ChatServer,
        turn: &TurnId,
    ) -> Result<Option<Self>, Refusal> {
        let store = server.memory.store();
        let last = in_time(store.load(&self.conversation, ReadRange::LastTurns(1))).await?;
        let earlier = Some(EarlierTurn::Continued(turn.clone()));
        let is_repeated = self.id == IdOrigin::Memory;
        if last.last_turn() == Some(turn) || self.decisions.is_some() || is_repeated {
            return Ok(Some(Self { earlier, ..self }));
        }
        let end = self.end_of(server, turn).await?;
        Ok(end.map(|end| Self { fork_point: Some(ForkPoint::After(end)), earlier, ..self }))
    }

    /// Returns the last entry of a turn, on any branch. A turn that is not one of the last ones is searched from the
    /// beginning of the log.
    async fn end_of(&self, server: &ChatServer, turn: &TurnId) -> Result<Option<EntryId>, Refusal> {
        let _place = server.stored_reads.begin().await?;
        let end_in = |entries: &[Entry]| {
            entries.iter().rfind(|entry| &entry.turn == turn).map(|entry| EntryId(entry.seq))
        };
        let store = server.memory.store();
        let recent = in_time(store.load(&self.conversation, ReadRange::LastTurns(RECENT_TURNS))).await?;
        let (mut after, mut end) = (EntryId::BEGINNING, end_in(&recent.entries));
        if end.is_some() {
            return Ok(end);
        }
        loop {
            let page = in_time(store.read(&self.conversation, after, PAGE)).await?;
            end = end_in(&page).or(end);
            match page.last() {
                Some(last) if page.len() == PAGE => after = EntryId(last.seq),
                _ => return Ok(end),
            }
        }
    }

    pub(super) fn key(&self) -> (ConversationKey, TurnId) {
        (self.conversation.clone(), self.turn.clone())
    }

    /// Starts the turn, or joins it if it was submitted before, and returns its chunks.
    pub(super) async fn start(
        &self,
        server: &ChatServer,
        on_disconnect: OnDisconnect,
    ) -> Result<TurnReading, Refusal> {
        let input = self.digest();
        let key = self.key();
        let said = self.input.iter().filter(|message| message.role() == Role::User).map(Said::new);
        let said: Vec<_> = said.collect();
        let asked = Asked { key: &key, id: self.id, input: &input, said: &said, on_disconnect };
        let prepare = || {
            let prompt = self.user.prompt(server).clone();
            |receipt| self.stream(server, prompt, receipt)
        };
        server.turns.start(&asked, prepare).await
    }

    /// Returns the digest that requests with the same input have. An approval expires later if it is sent again, so its
    /// time is left out.
    fn digest(&self) -> String {
        let input = (&self.input, &self.earlier);
        if !self.approvals.is_empty() {
            return digest(&serde_json::to_vec(&(input, &self.approvals)).unwrap_or_default());
        }
        let Some(decisions) = &self.decisions else {
            return digest(&serde_json::to_vec(&input).unwrap_or_default());
        };
        let decided = decisions.iter().map(|made| (&made.key, &made.arguments, &made.verdict));
        digest(&serde_json::to_vec(&(input, decided.collect::<Vec<_>>())).unwrap_or_default())
    }

    /// Returns the turn, which has not begun.
    fn stream(&self, server: &ChatServer, prompt: Prompt, receipt: MemoryReceipt) -> TurnStream {
        let prompt = prompt.messages(self.input.iter().cloned()).extension(receipt);
        let prompt = prompt.conversation(self.conversation.clone()).turn(self.turn.clone());
        let prompt = match self.decisions.clone() {
            Some(decisions) => prompt.resume(decisions),
            None => prompt,
        };
        let prompt = match server.inspector.as_ref() {
            Some(inspector) => prompt.extension(inspector.begin(&self.key())),
            None => prompt,
        };
        match self.fork_point.clone() {
            Some(fork_point) => prompt.extension(fork_point).stream(),
            None => prompt.stream(),
        }
    }

    /// Adds the ids of the conversation and of the turn to a response.
    pub(super) fn named(&self, mut response: Response) -> Response {
        let ids =
            [("x-conversation-id", self.conversation.conversation()), ("x-turn-id", self.turn.as_str())];
        for (name, id) in ids {
            // If an id cannot be in a header, the client knows it already: it has sent it in the body.
            if let Ok(value) = HeaderValue::from_str(id) {
                response.headers_mut().insert(name, value);
            }
        }
        response
    }
}

/// Returns the turn id of a client's id. One with other characters, or too many, becomes its hash.
///
/// # Errors
/// For an empty one, which would be the same turn in each request.
pub(super) fn turn_id(id: &str) -> Result<TurnId, Refusal> {
    let turn = TurnId::new(id).or_else(|error| match id {
        "" => Err(error),
        _ => TurnId::new(&digest(id.as_bytes())),
    });
    turn.map_err(Refusal::invalid)
}

/// Checks whether a message has neither text nor media. A result of a call may be empty.
fn is_empty(message: &Message) -> bool {
    match message.content() {
        MessageContent::User(parts) => {
            parts.iter().all(|part| part.as_text().is_some_and(|text| text.trim().is_empty()))
        }
        _ => false,
    }
}

pub(super) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
