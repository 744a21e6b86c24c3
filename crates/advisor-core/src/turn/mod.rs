//! `Turn`: id, round numbers, typed extensions, recorders, final transcript, behind one lock.

pub(crate) mod answered_before;
pub(crate) mod earlier_rounds;
pub(crate) mod end_turn;
pub(crate) mod extensions;
pub(crate) mod interrupted_calls;
pub(crate) mod last_answer;
pub(crate) mod nested_bounds;
pub(crate) mod once_per_turn;
pub(crate) mod recorder;
mod rejections;
pub(crate) mod replacements;
pub(crate) mod side_tasks;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use futures::FutureExt;
use message_aggregator::{BlockId, Message, MessageList, Text};

use crate::turn::earlier_rounds::EarlierRound;
use crate::turn::extensions::Extensions;
use crate::turn::interrupted_calls::RunningCalls;
use crate::turn::rejections::Rejections;
use crate::turn::replacements::Replacements;
use crate::turn::side_tasks::SideTasks;
use crate::{Error, Record, Result, Step, TurnId, TurnRecorder};

/// State that one turn shares, and the only channel from inner advisors to outer ones.
///
/// Requests are passed inwards by value; advisors put results for others here. The root creates the turn. One lock
/// guards its state and is never held across an await.
pub struct Turn {
    id: TurnId,
    rounds: AtomicU32,
    input: OnceLock<MessageList>,
    /// The results in front of the input.
    results: OnceLock<Vec<Message>>,
    end_recorded: AtomicBool,
    pub(crate) side_tasks: SideTasks,
    extensions: Extensions,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    recorders: Vec<Arc<dyn TurnRecorder>>,
    answers: Vec<Message>,
    /// The answers as editors changed them.
    changed_answers: Vec<Message>,
    transcript: MessageList,
    running_calls: Option<RunningCalls>,
    replacements: Replacements,
    earlier_rounds: Vec<EarlierRound>,
    contexts: Vec<Message>,
    /// The message of the user that they stand before.
    context_place: Option<Message>,
    rejections: Rejections,
    /// The last part of a position that was given to an added block, by the position's first part.
    parts: BTreeMap<BlockId, u32>,
}

impl Turn {
    /// Creates a turn with the given id.
    #[must_use]
    pub fn new(id: TurnId) -> Arc<Self> {
        Arc::new(Self {
            id,
            rounds: AtomicU32::new(0),
            input: OnceLock::new(),
            results: OnceLock::new(),
            end_recorded: AtomicBool::new(false),
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
        self.rounds.fetch_add(1, Ordering::Relaxed).saturating_add(1)
    }

    /// Makes all later round numbers greater than `round`. A resumed turn numbers its rounds after those of its
    /// earlier run, so that no two of its calls have the same [`CallKey`](crate::CallKey).
    pub fn number_rounds_above(&self, round: u32) {
        self.rounds.fetch_max(round, Ordering::Relaxed);
    }

    /// Returns the values that advisors and tools of this turn share, one per type.
    #[must_use]
    pub fn extensions(&self) -> &Extensions {
        &self.extensions
    }

    /// Adds a recorder. It receives all records from now on.
    pub fn add_recorder(&self, recorder: Arc<dyn TurnRecorder>) {
        self.lock().recorders.push(recorder);
    }

    /// Checks whether this turn has a recorder.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        !self.lock().recorders.is_empty()
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

    /// Calls every recorder, one after the other, and awaits each. If one fails, the others are still called.
    ///
    /// # Errors
    /// That of the first recorder that fails.
    pub async fn record(&self, record: &Record) -> Result<()> {
        self.note(record, &self.cut_off_before(record));
        let mut outcome = Ok(());
        for recorder in self.recorders() {
            let recorded = recorder.record(record).await;
            outcome = outcome.and(recorded);
        }
        let ends = matches!(record.step, Step::End(_));
        self.end_recorded.store(ends && outcome.is_ok(), Ordering::Release);
        outcome
    }

    /// Returns the messages of the turn that are final so far, in order, including its input.
    #[must_use]
    pub fn transcript(&self) -> MessageList {
        let final_so_far = self.lock().transcript.clone();
        if final_so_far.is_empty() { self.input().unwrap_or_default() } else { final_so_far }
    }

    /// Returns the answer whose tools may be running, if any.
    pub(crate) fn running_calls(&self) -> Option<RunningCalls> {
        self.lock().running_calls.clone()
    }

    fn note(&self, record: &Record, cut_off: &[Message]) {
        let mut state = self.lock();
        state.running_calls = RunningCalls::after(record, state.running_calls.take());
        if state.transcript.is_empty() {
            state.transcript = self.input().unwrap_or_default();
        }
        for message in cut_off.iter().chain(&record.messages) {
            if !state.transcript.last().is_some_and(|last| last.is_same(message)) {
                state.transcript.push(message.clone());
            }
        }
    }

    /// Checks whether the end of the turn has been recorded and the chain was not called since.
    pub(crate) fn is_end_recorded(&self) -> bool {
        self.end_recorded.load(Ordering::Acquire)
    }

    /// Marks the turn as continued: a recorded end no longer counts, and another one has to follow.
    pub(crate) fn resume(&self) {
        self.end_recorded.store(false, Ordering::Release);
    }

    /// Checks whether this message is an answer of this turn, from the model or from an advisor in its place.
    ///
    /// An answer that an [editor](crate::ChunkStream::edit_with) changed is one, too. An error may carry the answer
    /// of another turn that ran inside this one.
    #[must_use]
    pub fn has_answer(&self, message: &Message) -> bool {
        self.has_original_answer(message) || has(&self.lock().changed_answers, message)
    }

    /// Checks whether this message is an answer of this turn that no editor changed. In a changed answer, calls may
    /// have other positions than in the recorded one.
    #[must_use]
    pub fn has_original_answer(&self, message: &Message) -> bool {
        has(&self.lock().answers, message)
    }

    pub(crate) fn note_answer(&self, message: &Message) {
        // That of the answer before, which was not rejected.
        drop(self.take_rejections());
        self.lock().answers.push(message.clone());
    }

    /// Returns the messages that the turn began with, without system messages. `None` before the turn has begun.
    #[must_use]
    pub fn input(&self) -> Option<MessageList> {
        let input = self.input.get()?;
        let Some(results) = self.results.get() else { return Some(input.clone()) };
        Some(results.iter().chain(input).cloned().collect())
    }

    /// Puts the results of decided calls in front of the input. A memory that applies the
    /// [`Decisions`](crate::Decisions) of a turn calls it once; later calls have no effect.
    pub fn begin_after(&self, results: &[Message]) {
        if self.results.set(results.to_vec()).is_ok() {
            let mut state = self.lock();
            if !state.transcript.is_empty() {
                state.transcript = results.iter().chain(&state.transcript).cloned().collect();
            }
        }
    }

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

    /// Notes a changed answer, if the original is one of this turn. Returns the handle of an equal change, if any.
    pub(crate) fn replace_answer(&self, original: &Message, new: Message) -> Message {
        let is_answer = self.has_answer(original);
        let mut state = self.lock();
        let new = state.replacements.stable(original, new);
        if is_answer && !has(&state.changed_answers, &new) {
            state.changed_answers.push(new.clone());
        }
        new
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
        let random: String =
            self.id.as_str().chars().rev().filter(char::is_ascii_alphanumeric).take(12).collect();
        format!("call_{random}").into()
    }

    pub(crate) fn begin_with(&self, messages: &MessageList) {
        self.input.get_or_init(|| messages.split_system().1.into());
    }

    pub(crate) fn recorders(&self) -> Vec<Arc<dyn TurnRecorder>> {
        self.lock().recorders.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Code under the lock never leaves the state inconsistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Checks whether a message is among others, by its handle.
fn has(messages: &[Message], message: &Message) -> bool {
    messages.iter().any(|known| known.is_same(message))
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn").field("id", &self.id).field("rounds", &self.rounds).finish_non_exhaustive()
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
}
