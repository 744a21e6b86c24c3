//! `Turn`: what one turn shares: id, round numbers, recorders, transcript, starts of calls, bounds and orders to end.

pub(crate) mod extensions;
pub(crate) mod recorder;
pub(crate) mod replacements;
pub(crate) mod side_tasks;

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;
use message_aggregator::{BlockId, ChatResponse, Limit, Message, MessageList, Text, ToolCall, ToolResult};
use tokio::time::Instant;

use crate::turn::extensions::Extensions;
use crate::turn::replacements::Replacements;
use crate::turn::side_tasks::SideTasks;
use crate::{
    CallKey, Error, OUTCOME_UNKNOWN, Record, Result, Step, TurnId, TurnRecorder, VERIFY_BEFORE_RETRYING,
};

/// State that one turn shares, and the only channel from inner advisors to outer ones.
///
/// Requests are passed inwards by value; advisors put results for others here. The root creates the turn. One lock
/// guards its state and is never held across an await.
pub struct Turn {
    id: TurnId,
    pub(crate) side_tasks: SideTasks,
    extensions: Extensions,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The last round number that was taken.
    rounds: u32,
    input: Option<MessageList>,
    /// Whether results of decided calls were put in front of the input.
    begins_after: bool,
    recorders: Vec<Arc<dyn TurnRecorder>>,
    end_recorded: bool,
    answers: Vec<Message>,
    transcript: MessageList,
    /// The answer whose tools may be running, and its round.
    running: Option<(u32, Message)>,
    replacements: Replacements,
    contexts: Vec<Message>,
    /// The message of the user that they stand before.
    context_place: Option<Message>,
    /// The work of advisors for the case that the last answer is rejected.
    rejections: Vec<BoxFuture<'static, ()>>,
    /// The last part of a position that was given to an added block, by the position's first part.
    parts: BTreeMap<BlockId, u32>,
    facts: TurnFacts,
}

/// What the tool loop of a turn, its memory and its budgets tell one another; see [`Turn::facts`].
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct TurnFacts {
    /// The calls whose starts are recorded, so that they are not run again.
    ///
    /// A turn that was interrupted and is submitted again under its id runs a second time. An advisor that knows the
    /// calls of the earlier run adds them before the loop reaches them. A recorder can do so at [`Step::Started`]. The
    /// loop adds the calls that it starts.
    pub started: HashSet<CallKey>,
    /// The rounds whose answers repeat those of an earlier run, so that any of their calls may have been started then.
    ///
    /// Calls of tools that declare no [`Effect`](crate::Effect) are not run again. Such an answer must keep its round
    /// number, so that its calls keep their keys.
    pub repeated: HashSet<u32>,
    /// The rounds that an earlier run of the turn has stored, in order, from a memory. A tool loop takes and emits them
    /// before its first round, so that what a reader of the turn is shown is what is stored.
    pub earlier_rounds: Vec<EarlierRound>,
    /// Whether the turn was answered when it was submitted before. A memory sets it before it returns the stored answer.
    ///
    /// A tool loop then ends the turn with that answer and runs none of its calls: those without a result in the answer's
    /// [transcript](crate::ResponseFields::transcript) are the caller's. Whether they still wait, the memory knows
    /// ([`pending_calls`](crate::ChatClient::pending_calls)).
    pub answered_before: bool,
    /// The blocks of the calls of the last answer, in the order in which it is recorded. The tool loop sets them when it
    /// leaves calls to the caller ([`TurnResponse::call_key`](crate::TurnResponse::call_key)).
    pub call_blocks: Vec<BlockId>,
    /// The limit with which an advisor has [asked](Turn::request_end) to end the turn.
    pub requested_end: Option<Limit>,
    /// Whether the tool loop asks for the last answer of the turn, without tools. An advisor that lets no call of the
    /// model pass after it asked to end the turn, such as a budget, lets one answer pass then.
    pub is_last_answer: bool,
    /// The bounds of a turn inside a tool, as the outer turn left them.
    pub inherited_bounds: Option<NestedBounds>,
    /// What the turn leaves to the turns inside its tools, once the tool loop has stated it.
    pub nested_bounds: Option<NestedBounds>,
}

/// A stored round of a turn that stopped and is submitted again.
#[derive(Debug, Clone, PartialEq)]
pub struct EarlierRound {
    /// The answer, under the number of its round.
    pub response: ChatResponse,
    /// The results of its calls.
    pub results: Vec<ToolResult>,
}

/// What a turn leaves to the turns inside its tools.
///
/// The tool loop states it before the tools of a round start ([`TurnFacts::nested_bounds`]).
/// [`Prompt::inside`](crate::Prompt::inside) passes it on. Turns that run side by side each get what was left then.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NestedBounds {
    /// The time at which the outer turn ends.
    pub deadline: Option<Instant>,
    /// The number of requests to the model that the outer turn has left.
    pub rounds: Option<u32>,
    /// The number of tool calls that the outer turn has left.
    pub calls: Option<u32>,
    /// The number of turns around the inner turn, at least 1.
    pub depth: u32,
}

impl Turn {
    /// Creates a turn with the given id.
    #[must_use]
    pub fn new(id: TurnId) -> Arc<Self> {
        Arc::new(Self {
            id,
            side_tasks: SideTasks::default(),
            extensions: Extensions::default(),
            state: Mutex::default(),
        })
    }

    /// Returns the turn's id.
    #[must_use]
    pub fn id(&self) -> &TurnId {
        &self.id
    }

    /// Returns a round number that no other pass of this turn has, from 1.
    ///
    /// The chain takes one for every model call. An advisor that answers without the model takes one as well.
    pub fn next_round(&self) -> u32 {
        let mut state = self.lock();
        state.rounds = state.rounds.saturating_add(1);
        state.rounds
    }

    /// Makes all later round numbers greater than `round`. A resumed turn numbers its rounds after those of its
    /// earlier run, so that no two of its calls have the same [`CallKey`].
    pub fn number_rounds_above(&self, round: u32) {
        let mut state = self.lock();
        state.rounds = state.rounds.max(round);
    }

    /// Reads or changes the facts of this turn. `with` must not use the turn.
    ///
    /// # Example
    /// ```
    /// use advisor_core::{CallKey, Turn, TurnId};
    ///
    /// let turn = Turn::new(TurnId::random());
    /// let key = CallKey::new(turn.id().clone(), 1, 0);
    /// assert!(turn.facts(|facts| facts.started.insert(key)));
    /// assert!(!turn.facts(|facts| facts.is_last_answer));
    /// ```
    pub fn facts<R>(&self, with: impl FnOnce(&mut TurnFacts) -> R) -> R {
        with(&mut self.lock().facts)
    }

    /// Returns the values that advisors and tools of this turn share, one per type.
    #[must_use]
    pub fn extensions(&self) -> &Extensions {
        &self.extensions
    }

    /// Adds a side task to the turn, such as keeping a lease. It is polled by the turn's stream, makes no progress
    /// while that is not polled, and is dropped when the turn ends. Nothing is spawned. Another task may attach
    /// it: a stream that waits is woken.
    ///
    /// If it returns, the turn ends with its error: as interrupted if that is of kind
    /// [`Cancelled`](crate::ErrorKind::Cancelled), otherwise as failed. Without a
    /// [`TurnStream`](crate::TurnStream) around the chain nothing polls it.
    pub fn attach(&self, work: impl Future<Output = Error> + Send + 'static) {
        self.side_tasks.add(work.boxed());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Code under the lock never leaves the state inconsistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Its input, and what has become final in it.
impl Turn {
    pub(crate) fn begin_with(&self, messages: &MessageList) {
        self.lock().input.get_or_insert_with(|| messages.split_system().1.into());
    }

    /// Returns the messages that the turn began with, without system messages. `None` before the turn has begun.
    #[must_use]
    pub fn input(&self) -> Option<MessageList> {
        self.lock().input.clone()
    }

    /// Puts the results of decided calls in front of the input. A memory that applies the [`Decisions`](crate::Decisions) of a turn calls
    /// it once; later calls have no effect.
    pub fn begin_after(&self, results: &[Message]) {
        let mut state = self.lock();
        if !mem::replace(&mut state.begins_after, true) {
            let with_results = |list: &MessageList| results.iter().chain(list).cloned().collect();
            state.input = state.input.as_ref().map(with_results);
            if !state.transcript.is_empty() {
                state.transcript = with_results(&state.transcript);
            }
        }
    }

    /// Adds a recorder. It receives all records from now on.
    pub fn add_recorder(&self, recorder: Arc<dyn TurnRecorder>) {
        self.lock().recorders.push(recorder);
    }

    /// Checks whether this turn has a recorder.
    pub(crate) fn is_recorded(&self) -> bool {
        !self.lock().recorders.is_empty()
    }

    pub(crate) fn recorders(&self) -> Vec<Arc<dyn TurnRecorder>> {
        self.lock().recorders.clone()
    }

    /// Calls every recorder, one after the other, and awaits each. If one fails, the others are still called.
    ///
    /// # Errors
    /// That of the first recorder that fails.
    pub async fn record(&self, record: &Record) -> Result<()> {
        self.lock().note(&self.id, record);
        let mut outcome = Ok(());
        for recorder in self.recorders() {
            let recorded = recorder.record(record).await;
            outcome = outcome.and(recorded);
        }
        self.lock().end_recorded = matches!(record.step, Step::End(_)) && outcome.is_ok();
        outcome
    }

    /// Checks whether the end of the turn has been recorded and the chain was not called since.
    pub(crate) fn is_end_recorded(&self) -> bool {
        self.lock().end_recorded
    }

    /// Marks the turn as continued: a recorded end no longer counts, and another one has to follow.
    pub(crate) fn resume(&self) {
        self.lock().end_recorded = false;
    }

    /// Returns the messages of the turn that are final so far, in order, including its input.
    #[must_use]
    pub fn transcript(&self) -> MessageList {
        let state = self.lock();
        match state.transcript.is_empty() {
            true => state.input.clone().unwrap_or_default(),
            false => state.transcript.clone(),
        }
    }

    /// Returns a result for each running call, since the turn ends now with `last`, and the round of those calls.
    /// The calls of `last` itself are client-side.
    pub(crate) fn results_of_interrupted(&self, last: &Message) -> Option<(u32, Vec<Message>)> {
        self.lock().results_of_interrupted(&self.id, last)
    }
}

/// Its answers and what stands in their place.
impl Turn {
    pub(crate) fn note_answer(&self, message: &Message) {
        // That of the answer before, which was not rejected.
        drop(self.take_rejections());
        self.lock().answers.push(message.clone());
    }

    /// Checks whether this message is an answer of this turn, from the model or from an advisor in its place.
    ///
    /// An answer that an [editor](crate::ChunkStream::edit_with) changed is one, too. An error may carry the answer
    /// of another turn that ran inside this one.
    #[must_use]
    pub fn has_answer(&self, message: &Message) -> bool {
        let state = self.lock();
        let is_answer = |message: &Message| state.answers.iter().any(|known| known.is_same(message));
        std::iter::successors(Some(message), |changed| state.replacements.original_of(changed)).any(is_answer)
    }

    /// Returns the known replacement of `original` that equals `new`, or notes `new` as one. The replacement of an answer of
    /// this turn is one, too.
    pub(crate) fn stable_replacement(&self, original: &Message, new: Message) -> Message {
        self.lock().replacements.stable(original, new)
    }

    /// Returns the message of a context, the same one for an equal text, and the message that contexts of this turn
    /// stand before, in each of its versions: `last_user` of the first request that had one. There is none without it.
    pub(crate) fn context(&self, text: &Text, last_user: Option<&Message>) -> (Message, Vec<Message>) {
        let mut state = self.lock();
        if state.context_place.is_none() {
            state.context_place = last_user.cloned();
        }
        let known = state.contexts.iter().find(|context| context.text() == text.as_str()).cloned();
        let context = known.unwrap_or_else(|| {
            let new = Message::user(text.clone()).ephemeral();
            state.contexts.push(new.clone());
            new
        });
        let place = state.context_place.as_ref();
        (context, place.map(|place| state.replacements.versions_of(place)).unwrap_or_default())
    }

    /// Returns the contexts of the turn.
    pub(crate) fn contexts(&self) -> Vec<Message> {
        self.lock().contexts.clone()
    }

    /// Returns the id of a block that an advisor adds after another one; `None` if that has no part left. No other
    /// block of the turn has it.
    pub(crate) fn next_part(&self, after: BlockId) -> Option<BlockId> {
        let mut state = self.lock();
        let used = state.parts.entry(BlockId::new(after.round, after.position())).or_default();
        let next = after.with_part(*used + 1)?;
        *used += 1;
        Some(next)
    }

    /// Returns the prefix of generated call ids, which no other turn has.
    pub(crate) fn call_id_prefix(&self) -> Text {
        // The end of a turn's id is its random part.
        let random = self.id.as_str().chars().rev().filter(char::is_ascii_alphanumeric).take(12);
        "call_".chars().chain(random).collect()
    }

    /// Sets work that runs if an advisor further outside [rejects](Self::reject_answer) the last answer of this turn.
    ///
    /// A cache removes the answer then. Set it when the answer is complete. The next answer of the turn drops it. The turn
    /// holds the work, so the work must not hold the turn.
    pub fn on_rejected(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.lock().rejections.push(work.boxed());
    }

    /// Rejects the last answer of this turn: caches inside remove it, and do not repeat it.
    ///
    /// An advisor calls it before it asks again because the answer is unsuitable, and before it fails for that reason.
    ///
    /// # Ordering
    /// The work runs in the order in which it was set, and once. A later answer of the turn drops it. So a judge that asks
    /// the same chain in this turn comes too late: the last answer is its verdict.
    ///
    /// # Cancellation
    /// Dropping the future drops the rest of the work. A cache may then keep the answer.
    ///
    /// # Errors
    /// It has none.
    ///
    /// # Example
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicBool, Ordering};
    ///
    /// use advisor_core::{Turn, TurnId};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let (turn, is_kept) = (Turn::new(TurnId::random()), Arc::new(AtomicBool::new(true)));
    /// let kept = Arc::clone(&is_kept);
    /// turn.on_rejected(async move { kept.store(false, Ordering::Relaxed) });
    /// turn.reject_answer().await;
    /// assert!(!is_kept.load(Ordering::Relaxed));
    /// # }
    /// ```
    pub async fn reject_answer(&self) {
        for work in self.take_rejections() {
            work.await;
        }
    }

    /// Takes the work out of the turn. It must not be dropped under the lock, since its drop may use the turn.
    fn take_rejections(&self) -> Vec<BoxFuture<'static, ()>> {
        mem::take(&mut self.lock().rejections)
    }
}

/// Its bounds.
impl Turn {
    /// Asks the tool loop to end the turn at the next boundary of a round. Only the first request counts.
    ///
    /// The loop starts no further tool and asks the model no more. Calls of the last answer get error results, and the
    /// turn ends with this limit as its finish reason. It is for an advisor that counts something, such as tokens.
    ///
    /// # Example
    /// ```
    /// use advisor_core::{Limit, Turn, TurnId};
    ///
    /// let turn = Turn::new(TurnId::random());
    /// turn.request_end(Limit::Other("the budget of 10000 tokens".into()));
    /// assert!(turn.facts(|facts| facts.requested_end.is_some()));
    /// ```
    pub fn request_end(&self, limit: Limit) {
        self.lock().facts.requested_end.get_or_insert(limit);
    }
}

impl State {
    /// Adds a record to the transcript. Calls that it cuts off get results before it.
    fn note(&mut self, turn: &TurnId, record: &Record) {
        let cut_off = self.cut_off_before(turn, record);
        self.running = match record.step {
            Step::Answer => record.messages.last().map(|answer| (record.round, answer.clone())),
            Step::Started(_) => self.running.take(),
            _ => None,
        };
        if self.transcript.is_empty() {
            self.transcript = self.input.clone().unwrap_or_default();
        }
        for message in cut_off.iter().chain(&record.messages) {
            if !self.transcript.last().is_some_and(|last| last.is_same(message)) {
                self.transcript.push(message.clone());
            }
        }
    }

    /// Returns results for running calls that `record` abandons: an advisor dropped a loop while its tools ran,
    /// and called the chain again.
    fn cut_off_before(&self, turn: &TurnId, record: &Record) -> Vec<Message> {
        let (Step::Answer | Step::Injected | Step::End(_), Some(next)) =
            (&record.step, record.messages.last())
        else {
            return Vec::new();
        };
        self.results_of_interrupted(turn, next).map(|(_, results)| results).unwrap_or_default()
    }

    fn results_of_interrupted(&self, turn: &TurnId, last: &Message) -> Option<(u32, Vec<Message>)> {
        let (round, answer) = self.running.as_ref().filter(|(_, answer)| !answer.is_same(last))?;
        let result = |(position, call): (u32, &ToolCall)| {
            let is_started = self.facts.started.contains(&CallKey::new(turn.clone(), *round, position));
            let text = if is_started { VERIFY_BEFORE_RETRYING } else { OUTCOME_UNKNOWN };
            Message::tool(ToolResult::error(call, text))
        };
        let results: Vec<_> = (0..).zip(answer.tool_calls()).map(result).collect();
        (!results.is_empty()).then_some((*round, results))
    }
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rounds = self.lock().rounds;
        f.debug_struct("Turn").field("id", &self.id).field("rounds", &rounds).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use mockall::mock;

    use super::*;
    use crate::{Error, ErrorKind};

    mock! {
        Recorder {}
        #[async_trait::async_trait]
        impl TurnRecorder for Recorder {
            async fn record(&self, record: &Record) -> Result<()>;
        }
    }

    #[tokio::test]
    async fn recorders_run_in_order_despite_failures() {
        let turn = Turn::new(TurnId::random());
        let mut order = mockall::Sequence::new();
        let mut first = MockRecorder::new();
        first.expect_record().once().in_sequence(&mut order).returning(|_| Ok(()));
        let mut failing = MockRecorder::new();
        failing
            .expect_record()
            .once()
            .in_sequence(&mut order)
            .returning(|_| Err(Error::new(ErrorKind::NotPersisted, "the store is gone")));
        let mut last = MockRecorder::new();
        last.expect_record().once().in_sequence(&mut order).returning(|_| Ok(()));
        for recorder in [first, failing, last] {
            turn.add_recorder(Arc::new(recorder));
        }
        let record = Record::new(1, Step::Answer, Vec::new());
        assert_eq!(turn.record(&record).await.unwrap_err().kind(), ErrorKind::NotPersisted);
    }

    #[test]
    fn round_numbers_exceed_those_of_earlier_run() {
        let turn = Turn::new(TurnId::random());
        turn.number_rounds_above(7);
        assert_eq!(turn.next_round(), 8);
        turn.number_rounds_above(3);
        assert_eq!(turn.next_round(), 9, "a number that was used does not come again");
    }

    #[tokio::test]
    async fn work_for_the_last_answer_runs_in_order_and_once() {
        let (turn, order) = (Turn::new(TurnId::random()), Arc::new(Mutex::new(Vec::new())));
        let set = |name| {
            let order = Arc::clone(&order);
            turn.on_rejected(async move {
                tokio::task::yield_now().await;
                order.lock().unwrap().push(name);
            });
        };
        turn.note_answer(&Message::assistant("An answer."));
        set("of the first answer");
        turn.note_answer(&Message::assistant("Another answer."));
        set("inner");
        set("outer");
        turn.reject_answer().await;
        turn.reject_answer().await;
        assert_eq!(*order.lock().unwrap(), ["inner", "outer"]);
    }
}
