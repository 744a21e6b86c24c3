//! `Answers`: decisions by the ids of requests for approvals, as protocols have them. `WithEnds`: how decided calls end.

use std::collections::HashSet;
use std::mem::take;
use std::sync::{Arc, OnceLock};

use advisor_core::{
    CallKey, Chunk, ClientSideCall, ConversationKey, Decision, DecisionProblem, Error, ErrorKind, Role,
    ToolCall, ToolResult, TurnId,
};
use advisor_sse::{ApprovalId, Approvals, Encoder, Failure, Frames};
use chat_memory_advisor::store::ReadRange;
use futures::{StreamExt, stream};
use serde::Serialize;
use serde_json::Value;
use tracing::warn;

use crate::ChatServer;
use crate::readiness::in_time;
use crate::refusal::Refusal;
use crate::routes::ask::content::SentMessage;
use crate::routes::ask::headers::Asking;
use crate::routes::ask::new_input::{
    NewInput, calls_with_ids, first_results, input_beside_decisions, new_input, turn_before,
};
use crate::routes::ask::{Question, turn_id};
use crate::routes::input::User;
use crate::shared_turn::TurnReading;

/// The turns in which the calls of a request and their results are: those before and after it, and one that has followed.
const TURNS: usize = 3;

/// The reason that the model reads if a person denies a call without one.
const DENIED: &str = "the user has denied the call";

/// The text for a client whose answers come too late.
const NOT_WAITING: &str = "the conversation does not wait for this approval: its call is decided";

/// The answer of a person to a request for an approval, of any protocol.
#[derive(Debug, Clone, Serialize)]
pub(in crate::routes) struct SentApproval {
    /// The id of the request.
    pub(in crate::routes) id: String,
    pub(in crate::routes) verdict: SentVerdict,
    /// The call that the client shows beside the answer.
    #[serde(skip)]
    pub(in crate::routes) shown: ShownCall,
}

/// What a person has decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(in crate::routes) enum SentVerdict {
    Approved,
    /// With other arguments.
    ApprovedWith(Value),
    /// With the reason of the person, if there is one.
    Denied(Option<String>),
}

impl SentVerdict {
    /// Creates a verdict. An empty reason is none.
    pub(in crate::routes) fn new(is_approved: bool, reason: Option<String>) -> Self {
        match is_approved {
            true => Self::Approved,
            false => Self::Denied(reason.filter(|reason| !reason.trim().is_empty())),
        }
    }
}

/// A call that is decided, or that was started before.
#[derive(Debug)]
pub(in crate::routes) struct AnsweredCall {
    /// The id under which the client knows it.
    id: String,
    /// Its id among those of its turn in the store.
    stored_id: String,
}

/// The answers of a person to the requests that a conversation waits for.
#[derive(Debug, Default)]
struct Answers {
    decisions: Vec<Decision>,
    calls: Vec<AnsweredCall>,
    /// The answers, as they were sent.
    sent: Vec<SentApproval>,
    /// Whether calls wait for a decision, or were started and are lost.
    has_waiting: bool,
    /// The calls that wait for a decision.
    undecided: HashSet<CallKey>,
    /// Whether an answer names none of the calls.
    has_unknown: bool,
}

impl Answers {
    /// Reads the answers for a turn. Those to earlier requests are left out. Those about calls that were started decide
    /// nothing: the turn that was sent before runs these calls, or the model is asked to verify them.
    ///
    /// # Errors
    /// If the server takes no decisions, or for an id of another form.
    async fn read(
        server: &ChatServer,
        user: &User,
        conversation: &ConversationKey,
        turn: Option<&str>,
        sent: Vec<SentApproval>,
    ) -> Result<Self, Refusal> {
        if !server.takes_decisions {
            return if sent.is_empty() { Ok(Self::default()) } else { Err(Refusal::forbidden_decision()) };
        }
        let turn = turn.map(turn_id).transpose()?;
        let asked = Asked::load(server, user, conversation, turn.as_ref()).await?;
        let undecided = asked.undecided.iter().cloned().collect();
        let mut answers = Self { has_waiting: asked.has_waiting, undecided, ..Self::default() };
        let mut answered = HashSet::new();
        for SentApproval { id, verdict, shown } in &sent {
            let id: ApprovalId = id.parse().map_err(Refusal::invalid)?;
            let Some((stored_id, call)) = asked.calls.iter().find(|(_, call)| id.is_of(call)) else {
                answers.has_unknown = true;
                continue;
            };
            // The digest of all arguments is made once for each call.
            if !answered.insert(stored_id) {
                let message = format!("there are two decisions about the call {stored_id}; send one");
                let kind = ErrorKind::Approval { problem: DecisionProblem::Duplicate };
                return Err(Error::new(kind, message).into());
            }
            if !id.names(conversation, call) {
                answers.has_unknown = true;
                continue;
            }
            shown.check(&call.call)?;
            answers.decide(call, verdict).map_err(Refusal::invalid)?;
            answers.calls.push(AnsweredCall { id: id.call().to_owned(), stored_id: stored_id.clone() });
        }
        Ok(Self { sent, ..answers })
    }

    fn decide(&mut self, call: &ClientSideCall, verdict: &SentVerdict) -> Result<(), Error> {
        if !call.started {
            call.key.as_ref().map(|key| self.undecided.remove(key));
            self.decisions.push(match verdict {
                SentVerdict::Approved => call.approve()?,
                SentVerdict::ApprovedWith(arguments) => call.approve_with(arguments.clone())?,
                SentVerdict::Denied(reason) => call.deny(reason.as_deref().unwrap_or(DENIED))?,
            });
        }
        Ok(())
    }

    /// Checks whether no call waits for a decision, or had one that is sent again.
    fn is_empty(&self) -> bool {
        self.decisions.is_empty() && !self.has_waiting
    }

    /// Checks that each call has an answer, before an advisor outside memory answers the turn.
    fn check(&self) -> Result<(), Refusal> {
        match (self.undecided.is_empty(), self.has_unknown) {
            (true, _) => Ok(()),
            (false, true) => Err(Refusal::unknown_approval()),
            (false, false) => {
                let kind = ErrorKind::Approval { problem: DecisionProblem::Missing };
                Err(Error::new(kind, "a call waits without a decision; decide about all calls").into())
            }
        }
    }
}

/// Returns the question of a client's messages and of a person's answers, and the calls that it decides.
///
/// # Errors
/// As [`new_input`] and [`Answers::read`].
pub(in crate::routes) async fn question(
    server: &ChatServer,
    user: &User,
    (conversation, asking): (Option<&str>, Asking<'_>),
    messages: Vec<SentMessage>,
    sent: Vec<SentApproval>,
) -> Result<(Question, Vec<AnsweredCall>), Refusal> {
    let (key, turn) = (conversation.map(|id| user.conversation(id)).transpose()?, asking.turn);
    let (has_sent, has_results) = (!sent.is_empty(), messages.iter().any(SentMessage::is_result));
    let answers = match &key {
        Some(key) if has_sent || has_results => Answers::read(server, user, key, turn, sent).await?,
        None if has_sent => {
            return Err(Refusal::bad_request("name the conversation of the calls that are decided"));
        }
        _ => Answers::default(),
    };
    let input = match answers.is_empty() {
        true => new_input(server, user, key.as_ref(), asking, messages).await?,
        false => input_beside_decisions(server, user, key.as_ref(), asking, messages).await?,
    };
    let NewInput { messages: input, repeated } = input;
    let repeated = repeated.filter(|_| !has_sent && answers.is_empty());
    if has_sent && answers.is_empty() && input.is_empty() {
        return Err(Refusal::bad_request(NOT_WAITING));
    }
    let answers = match &key {
        // Without a message, only answers to what waits begin a turn.
        Some(key) if !has_sent && answers.is_empty() && input.is_empty() => {
            Answers::read(server, user, key, turn, Vec::new()).await?
        }
        _ => answers,
    };
    // A message of the user without decisions answers the calls that wait. Results alone do not: the turn is refused as one
    // that lacks decisions.
    let says = input.iter().any(|message| message.role() == Role::User);
    let question = match answers.is_empty() || answers.decisions.is_empty() && says {
        true => Question::new(user, conversation, turn, input)?,
        false => {
            answers.check()?;
            Question::resuming(user, conversation, turn, input, Some(answers.decisions))?
        }
    };
    Ok((question.with_approvals(answers.sent).repeating(repeated), answers.calls))
}

/// The calls about which an answer has asked a person.
struct Asked {
    /// The calls, each with its id among those of its turn.
    calls: Vec<(String, ClientSideCall)>,
    /// Whether calls have no decision yet.
    has_waiting: bool,
    /// Those of them that were not started.
    undecided: Vec<CallKey>,
}

impl Asked {
    /// Loads the calls that wait. If none does and `turn` is in memory, it is sent again: those that it has decided.
    async fn load(
        server: &ChatServer,
        user: &User,
        conversation: &ConversationKey,
        turn: Option<&TurnId>,
    ) -> Result<Self, Refusal> {
        let open = server.memory.client_side_calls(conversation).await?;
        let is_asked = |open: &ClientSideCall| user.runs(server, &open.call.name) == Some(false);
        let log =
            in_time(server.memory.store().load(conversation, ReadRange::LastTurns(TURNS))).await?.entries;
        // A turn that is sent again has decided the calls of the turn before it, and may have asked about others.
        let before = turn.and_then(|turn| turn_before(&log, turn));
        let waiting = open.iter().find(|open| is_asked(open)).and_then(|open| open.key.as_ref());
        let waiting = waiting.filter(|_| before.is_none());
        let undecided = open.iter().filter(|open| waiting.is_some() && is_asked(open) && !open.started);
        let undecided = undecided.filter_map(|open| open.key.clone()).collect();
        let asking = before.or(waiting.map(|key| &key.turn));
        let asking = asking.map(|asking| log.iter().filter(move |entry| &entry.turn == asking));
        let calls = asking.map(calls_with_ids).unwrap_or_default().into_iter();
        let is_started = |call: &ClientSideCall| open.iter().any(|open| open.started && open.key == call.key);
        let calls = calls.filter(|(_, call)| is_asked(call)).map(|(id, mut call)| {
            call.started = is_started(&call);
            (id, call)
        });
        Ok(Self { calls: calls.collect(), has_waiting: waiting.is_some(), undecided })
    }
}

/// Returns the approvals that the stream of a turn asks for, if users decide.
pub(in crate::routes) fn approvals(
    server: &ChatServer,
    user: &User,
    (conversation, turn): (ConversationKey, TurnId),
) -> Option<Approvals> {
    let approvals = || Approvals::new(conversation, turn, user.prompt(server).tools().clone());
    server.takes_decisions.then(approvals)
}

/// A call as a client shows it beside the answer of a person. The person has approved this and nothing else.
#[derive(Debug, Clone, Default)]
pub(in crate::routes) struct ShownCall {
    pub(in crate::routes) tool: Option<String>,
    pub(in crate::routes) arguments: Option<Value>,
}

impl ShownCall {
    /// Creates a call of which a client has sent these parts. `null` and other JSON than a name count as absent.
    pub(in crate::routes) fn new(tool: Option<&str>, arguments: Option<&Value>) -> Self {
        let arguments = arguments.filter(|arguments| !arguments.is_null());
        Self { tool: tool.map(str::to_owned), arguments: arguments.cloned() }
    }

    /// Checks that it is the call that waits.
    ///
    /// # Errors
    /// If its tool or its arguments differ: the person has seen, or changed, something else.
    pub(super) fn check(&self, call: &ToolCall) -> Result<(), Error> {
        let is_tool = self.tool.as_ref().is_none_or(|tool| *tool == call.name.as_str());
        let are_arguments = |shown: &Value| is_same(shown, &read(&call.arguments));
        if is_tool && self.arguments.as_ref().is_none_or(are_arguments) {
            return Ok(());
        }
        let message =
            format!("an answer shows another tool or other arguments than the call of `{}`", call.name);
        Err(Error::new(ErrorKind::Approval { problem: DecisionProblem::OtherCall }, message))
    }
}

/// Returns arguments as clients get them.
pub(in crate::routes) fn read(arguments: &str) -> Value {
    if ToolCall::gives_none(arguments) {
        return Value::Object(serde_json::Map::new());
    }
    let text = arguments.trim();
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

/// Compares JSON as a client in JavaScript keeps it: its numbers are doubles.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let is_in_other = |(name, value)| other.get(name).is_some_and(|other| is_same(value, other));
            one.len() == other.len() && one.iter().all(is_in_other)
        }
        (one, other) => one == other,
    }
}

/// An encoder of a protocol whose clients show how the decided calls of an earlier turn end.
pub(in crate::routes) trait ShowsEnds: Encoder {
    /// Writes the end of a call, by the id under which the client knows it.
    fn show_end(&mut self, call: &str, result: &ToolResult, frames: &mut Frames);
}

/// The results that begin a turn, by the ids of their calls. They are known once the turn has a chunk.
type FirstResults = Arc<OnceLock<Vec<(String, ToolResult)>>>;

/// Writes the ends of decided calls in front of a turn's first chunk.
pub(in crate::routes) struct WithEnds<E> {
    encoder: E,
    /// The calls whose ends are not written yet.
    calls: Vec<AnsweredCall>,
    results: FirstResults,
}

impl<E: ShowsEnds> WithEnds<E> {
    /// Creates the encoder of a turn that decides these calls. The returned turn loads their results.
    pub(in crate::routes) fn new(
        encoder: E,
        calls: Vec<AnsweredCall>,
        turn: TurnReading,
        server: &ChatServer,
        question: &Question,
    ) -> (Self, TurnReading) {
        let results = FirstResults::default();
        let turn = match calls.is_empty() {
            true => turn,
            false => loading(turn, Arc::clone(&results), server.clone(), question.key()),
        };
        (Self { encoder, calls, results }, turn)
    }

    fn show_ends(&mut self, frames: &mut Frames) {
        let calls = take(&mut self.calls);
        for (id, result) in self.results.get().into_iter().flatten() {
            if let Some(call) = calls.iter().find(|call| call.stored_id == *id) {
                self.encoder.show_end(&call.id, result, frames);
            }
        }
    }
}

/// Returns the turn, which loads its first results before its first item.
fn loading(
    mut turn: TurnReading,
    results: FirstResults,
    server: ChatServer,
    (conversation, id): (ConversationKey, TurnId),
) -> TurnReading {
    let loading = async move {
        let first = turn.next().await;
        match in_time(server.memory.store().load(&conversation, ReadRange::LastTurns(TURNS))).await {
            Ok(log) => drop(results.set(first_results(&log.entries, &id))),
            Err(error) => warn!(%error, "the ends of decided calls are not shown: they cannot be loaded"),
        }
        stream::iter(first).chain(turn)
    };
    stream::once(loading).flatten().boxed()
}

impl<E: ShowsEnds> Encoder for WithEnds<E> {
    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        self.encoder.headers()
    }

    fn begin(&mut self, frames: &mut Frames) {
        self.encoder.begin(frames);
    }

    fn chunk(&mut self, chunk: &Chunk, frames: &mut Frames) {
        self.show_ends(frames);
        self.encoder.chunk(chunk, frames);
    }

    fn failure(&mut self, failure: &Failure, frames: &mut Frames) {
        self.show_ends(frames);
        self.encoder.failure(failure, frames);
    }

    fn keep_alive(&self) -> &'static [u8] {
        self.encoder.keep_alive()
    }
}
