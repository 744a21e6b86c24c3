//! `TurnMemory` and `TurnMemoryState`: memory of one turn. It begins the turn, stores what becomes final, and repeats
//! uncertain appends (`catch_up`); as the turn's recorder, it learns of ends and drops.

pub(crate) mod client_side;
pub(crate) mod decisions;
pub(crate) mod prompt;
pub(crate) mod start;
pub(crate) mod state;
pub(crate) mod stored_turn;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use advisor_core::{
    AdvisorChain, CallStart, ChatRequest, ChatResponse, ConversationKey, Decisions, Error, ErrorKind,
    FinishReason, Message, Record, Result, Role, Step, TurnEnd, TurnId, TurnRecorder, async_trait,
};
use conversation_store::{Batch, ConversationStore, Snapshot, StoreError};
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::Mutex;

use crate::conversation::hold::TurnLease;
use crate::conversation::unfinished::UnfinishedTurn;
use crate::conversation::{Registry, append_once};
use crate::settings::Settings;
use crate::transcript::repair::{has_calls, is_answer, is_remembered, whole_turns};
use crate::transcript::summary::UnwrittenSummary;
use crate::transcript::window::Measure;
use crate::turn::decisions::{DecidedResults, Deciding};
use crate::turn::prompt::Addition;
use crate::turn::start::{Start, StartOutcome};
use crate::turn::state::{Life, TurnState, Write};
use crate::turn::stored_turn::given_again;
use crate::{ForkPoint, MemoryReceipt, OnBusy, Summarizer};

/// The memory of one turn, from its first request to its end. It is an extension and a recorder of its
/// [`Turn`](advisor_core::Turn).
#[derive(Clone)]
pub(crate) struct TurnMemory(pub(crate) Arc<TurnMemoryState>);

pub(crate) struct TurnMemoryState {
    pub(crate) store: Arc<dyn ConversationStore>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) measure: Measure,
    pub(crate) on_busy: OnBusy,
    pub(crate) key: ConversationKey,
    pub(crate) turn: TurnId,
    pub(crate) fork_point: Option<ForkPoint>,
    /// The decisions with which the turn begins.
    pub(crate) decisions: Option<Decisions>,
    receipt: Option<MemoryReceipt>,
    /// The results of the decided calls, once these ran.
    pub(crate) results: OnceLock<DecidedResults>,
    pub(crate) lease: Arc<TurnLease>,
    /// Held across appends, so that the writes of a turn keep their order. Of the other mutexes of this crate, only that of a
    /// lease's renewal is held across an `await`.
    stage: Mutex<Stage>,
    /// Whether a tool loop or a root announces the end of the turn.
    is_announced: AtomicBool,
}

/// The progress of memory with a turn.
#[expect(clippy::large_enum_variant, reason = "every turn whose beginning is stored reaches this variant")]
enum Stage {
    /// Storing was not attempted. The messages that the turn begins with, as far as memory has received them.
    Waiting(Vec<Message>),
    /// Storing these messages was attempted.
    Starting(Vec<Message>),
    /// The beginning of the turn is stored.
    Running(TurnState),
    /// The turn was answered before it was submitted again, so that nothing is to be stored.
    Answered,
    /// Another memory of the same turn has taken over, in another conversation.
    Retired,
}

impl TurnMemory {
    /// Returns the memory of the turn of this request. Creates and registers it on first use.
    pub(crate) fn for_request(settings: &Settings, request: &ChatRequest) -> Result<Self> {
        let Some(key) = &request.conversation else {
            return Err(Error::configuration(
                "the turn has no conversation to be remembered in; name one with `conversation`, or leave the memory out of the chain",
            ));
        };
        let known: Option<Self> = request.turn.extensions().get();
        let known = known.filter(|known| known.0.key == *key || !known.retire());
        let memory = known.unwrap_or_else(|| {
            let memory = Self::new(settings, request, key.clone());
            request.turn.extensions().insert(memory.clone());
            request.turn.add_recorder(Arc::new(memory.clone()));
            if memory.0.store.leases().is_some() {
                request.turn.attach(Arc::clone(&memory.0.lease).keep());
            }
            memory
        });
        if memory.0.key != *key || !Arc::ptr_eq(&memory.0.registry, &settings.registry) {
            return Err(several_memories());
        }
        Ok(memory)
    }

    pub(crate) fn new(settings: &Settings, request: &ChatRequest, key: ConversationKey) -> Self {
        let said = request.messages.split_system().1;
        let (store, registry) = (Arc::clone(&settings.store), Arc::clone(&settings.registry));
        let lease =
            TurnLease::new(Arc::clone(&store), &registry, key.clone(), &request.turn, settings.lease_ttl);
        Self(Arc::new(TurnMemoryState {
            store,
            registry,
            measure: settings.measure.clone(),
            on_busy: settings.on_busy,
            key,
            turn: request.turn.id().clone(),
            fork_point: request.turn.extensions().get(),
            decisions: request.turn.decisions(),
            receipt: request.turn.extensions().get(),
            results: OnceLock::new(),
            lease,
            stage: Mutex::new(Stage::Waiting(said)),
            is_announced: AtomicBool::new(request.turn.input().is_some()),
        }))
    }

    /// Retires for a memory in another conversation, unless storing was attempted here. Returns whether it did.
    fn retire(&self) -> bool {
        let Ok(mut stage) = self.0.stage.try_lock() else { return false };
        let retires = matches!(*stage, Stage::Waiting(_) | Stage::Retired);
        if retires {
            *stage = Stage::Retired;
        }
        retires
    }

    /// Notes that a tool loop outside memory begins.
    pub(crate) fn on_loop_start(&self) {
        self.0.is_announced.store(true, Ordering::Relaxed);
    }

    /// Begins or continues the turn for a request on its way inwards, and replaces its messages with the prompt.
    /// Returns the answer if the turn, submitted again, has one.
    pub(crate) async fn enter(
        &self,
        request: &mut ChatRequest,
        next: &AdvisorChain,
    ) -> Result<Option<ChatResponse>> {
        let mut stage = self.0.stage.lock().await;
        let (system, said) = request.messages.split_system();
        let state = match &mut *stage {
            Stage::Running(state) => {
                self.0.continue_turn(state, said).await?;
                state
            }
            stage => match self.0.ensure_started(stage, said, Some((request, next))).await? {
                StartOutcome::Asking(state) => {
                    state.report_earlier_run(&request.turn);
                    state
                }
                StartOutcome::Answered(answer) => return Ok(Some(given_again(answer, &request.turn))),
            },
        };
        state.prompt.fit(&self.0.measure)?;
        state.prompt.note_asked();
        request.messages = state.prompt.messages(system);
        Ok(None)
    }

    /// Stores an answer that came out, with the end of the turn unless the turn continues.
    pub(crate) async fn answered(&self, response: &ChatResponse) -> Result<()> {
        let mut stage = self.0.stage.lock().await;
        let Stage::Running(state) = &mut *stage else { return Ok(()) };
        self.0.catch_up(state).await?;
        // If memory is outside the loop, the loop has announced everything by now.
        if matches!(state.life, Life::Ended(_)) {
            return Ok(());
        }
        let reason = &response.finish.reason;
        let goes_on = response.tool_calls().next().is_some() || *reason == FinishReason::Paused;
        let is_announced = self.0.is_announced.load(Ordering::Relaxed);
        let addition = state.prompt.add([response.message().clone()]);
        if addition.stored.is_empty() && is_announced {
            // Nothing is to be stored. If the turn ends with this answer, the loop or the root announces the end.
            state.prompt.apply(addition);
            return Ok(());
        }
        let end = (!goes_on).then(|| TurnEnd::Completed(reason.clone()));
        self.0.write(state, Write { end, ..Write::answer_of(response.round(), addition) }).await?;
        if !goes_on && !is_announced {
            self.0.lease.release_all(&state.hold).await;
            self.0.summarize_later(state.turns);
        }
        Ok(())
    }
}

impl TurnMemoryState {
    /// Returns the state of the turn, after storing its input `said` unless that is done already. `entered` has the request
    /// and the chain inside memory. Without it, it does not wait for the end of another turn.
    async fn ensure_started<'a>(
        &self,
        stage: &'a mut Stage,
        said: Vec<Message>,
        entered: Option<(&ChatRequest, &AdvisorChain)>,
    ) -> Result<StartOutcome<&'a mut TurnState>> {
        if let Stage::Waiting(_) | Stage::Starting(_) = stage {
            *stage = Stage::Starting(said.clone());
        }
        if matches!(stage, Stage::Starting(_) | Stage::Answered) {
            let hold = self.lease.acquire(entered.map(|_| self.on_busy_at_start())).await?;
            let started = async {
                if let Some((decisions, (request, next))) = self.decisions.as_ref().zip(entered) {
                    // Boxed, so that other turns do not carry its state.
                    Box::pin(self.apply_decisions(decisions, request, next)).await?;
                }
                let said: Vec<_> = self.decided_results().chain(said).collect();
                Start::new(self, &said).run(hold).await
            };
            let started = started.await;
            if !matches!(started, Ok(StartOutcome::Asking(_))) {
                self.lease.release().await;
            }
            let started = started?;
            if let Some(receipt) = &self.receipt {
                receipt.note_turn();
            }
            match started {
                StartOutcome::Asking(state) => *stage = Stage::Running(state),
                StartOutcome::Answered(answer) => {
                    *stage = Stage::Answered;
                    return Ok(StartOutcome::Answered(answer));
                }
            }
        }
        match stage {
            Stage::Running(state) => Ok(StartOutcome::Asking(state)),
            _ => Err(several_memories()),
        }
    }

    /// Returns the policy for a conversation in which another turn runs. Decisions do not interrupt it, since it may run the
    /// same calls.
    fn on_busy_at_start(&self) -> OnBusy {
        match self.on_busy {
            OnBusy::InterruptPrevious if self.decisions.is_some() => OnBusy::Reject,
            on_busy => on_busy,
        }
    }

    /// Sets the results of the decided calls. If they are set already, does nothing: the calls run once, however often the
    /// turn tries to begin.
    async fn apply_decisions(
        &self,
        decisions: &Decisions,
        request: &ChatRequest,
        next: &AdvisorChain,
    ) -> Result<()> {
        if self.results.get().is_none() {
            let decided = Deciding { memory: self, decisions, request }.apply(next).await?;
            request.turn.begin_after(&decided.results);
            self.results.get_or_init(|| decided);
        }
        Ok(())
    }

    /// Checks whether the turn has decisions that were not applied. Nothing is stored then, so that the same calls can be
    /// decided later.
    fn has_undecided_calls(&self) -> bool {
        self.decisions.is_some() && self.results.get().is_none()
    }

    /// Returns the results of the decided calls, if they ran.
    fn decided_results(&self) -> impl Iterator<Item = Message> {
        self.results.get().into_iter().flat_map(|decided| decided.results.iter().cloned())
    }

    /// Returns the turn whose calls ran when this one began.
    fn turn_that_asked(&self) -> Option<&TurnId> {
        self.results.get()?.asked.as_ref()
    }

    /// Notes that the results of the decided calls are stored.
    fn note_results_stored(&self) {
        if let Some(decisions) = &self.decisions {
            decisions.note_stored();
        }
    }

    async fn continue_turn(&self, state: &mut TurnState, said: Vec<Message>) -> Result<()> {
        self.catch_up(state).await?;
        self.reopen(state).await?;
        state.passes = state.passes.saturating_add(1);
        let mut addition = state.prompt.add(said);
        addition.settle();
        let write = Write::new(state.passes, "input", addition);
        self.write(state, write).await
    }

    /// Makes a turn that continues after its end the running one again.
    async fn reopen(&self, state: &mut TurnState) -> Result<()> {
        if matches!(state.life, Life::Running { .. }) {
            return Ok(());
        }
        self.lease.reacquire(&state.hold).await?;
        self.registry.forget(&self.key, |known| known.turn == self.turn);
        state.life = Life::Running { after_end: state.life.has_stored_end() };
        Ok(())
    }

    /// Appends new entries, if any, and updates the state afterwards.
    async fn write(&self, state: &mut TurnState, write: Write) -> Result<()> {
        if write.len() == 0 {
            state.note_stored(write);
            return Ok(());
        }
        state.set_pending(&self.turn, write);
        self.catch_up(state).await
    }

    /// Appends the pending write. A write that failed or was dropped before its confirmation is retried. Its key
    /// makes that safe, and an earlier attempt cannot take effect after the retry.
    async fn catch_up(&self, state: &mut TurnState) -> Result<()> {
        let Some(pending) = &mut state.pending else { return Ok(()) };
        if state.hold.is_lost() {
            return Err(StoreError::Fenced.into());
        }
        let unsure = std::mem::replace(&mut pending.unsure, true);
        let batch = Batch::new(pending.key.clone(), pending.write.entries(&self.turn))
            .with_token(self.lease.token())
            .with_last_turn(state.last_turn.clone())
            .with_parent(state.parent);
        let outcome = append_once(&*self.store, &self.key, state.version, batch).await;
        let unknown = match &outcome {
            Err(StoreError::OutcomeUnknown { .. }) => true,
            Err(StoreError::Unavailable { .. }) => unsure,
            _ => false,
        };
        if !unknown
            && let Some(pending) = state.pending.take()
            && outcome.is_ok()
        {
            (state.last_turn, state.parent) = (Some(self.turn.clone()), None);
            state.note_stored(pending.write);
        }
        outcome.map(drop).map_err(Error::from)
    }

    async fn record_step(&self, state: &mut TurnState, record: &Record, step: &Step) -> Result<()> {
        self.catch_up(state).await?;
        let mut addition = new_messages(state, record);
        if *step == Step::Answer && record.messages.iter().all(Message::is_empty_answer) {
            addition.note_empty_answer();
        }
        if addition.stored.is_empty() {
            state.prompt.apply(addition);
        } else {
            let write = match step {
                Step::Answer => Write::answer_of(record.round, addition),
                Step::Results => Write {
                    message_round: Some(record.round),
                    ..Write::new(record.round, "results", addition)
                },
                _ => Write::new(record.round, "injected", addition),
            };
            self.reopen(state).await?;
            self.write(state, write).await?;
        }
        if *step == Step::Answer {
            state.prompt.start_calls();
        }
        Ok(())
    }

    /// Records that calls that must not run twice are about to run. When memory begins the turn, it reports to the
    /// loop which calls were started before. Starting one of them again is an error.
    async fn record_starts(&self, state: &mut TurnState, round: u32, starts: &[CallStart]) -> Result<()> {
        self.catch_up(state).await?;
        if let Some(known) = starts.iter().find(|start| state.started.contains(&start.key)) {
            let text = format!("the call {} was started before, and its tool must not run twice", known.key);
            return Err(Error::new(ErrorKind::StoreConflict { current: state.version.0 }, text));
        }
        self.reopen(state).await?;
        let write = Write::new(round, None, state.prompt.unchanged());
        self.write(state, Write { starts: starts.to_vec(), ..write }).await
    }

    async fn record_end(&self, state: &mut TurnState, record: &Record, end: &TurnEnd) -> Result<()> {
        if breaks_off(end) {
            state.break_off();
        }
        let outcome = self.write_end(state, record, end).await;
        if outcome.is_ok() {
            self.registry.forget(&self.key, |known| known.turn == self.turn);
        } else if breaks_off(end)
            && let Some(unfinished) = state.unfinished(&self.turn, record.round, end)
        {
            self.register(unfinished);
        }
        if outcome.is_ok() || breaks_off(end) {
            self.lease.release_all(&state.hold).await;
        }
        outcome
    }

    async fn write_end(&self, state: &mut TurnState, record: &Record, end: &TurnEnd) -> Result<()> {
        self.catch_up(state).await?;
        let mut addition = new_messages(state, record);
        if addition.stored.is_empty() && state.has_ended_before(record.round, end) {
            return Ok(());
        }
        if matches!(end, TurnEnd::Failed { .. } | TurnEnd::Refused | TurnEnd::Interrupted { .. }) {
            addition.settle();
        }
        let end = state.end_in(record.round, end);
        let answers = addition.stored.last().is_some_and(is_answer);
        // Without an answer, the messages are at most results of the answer before.
        let last_round = state.answered.map(|answered| answered.round);
        let message_round = if answers { Some(record.round) } else { last_round };
        let pending = record.pending.clone();
        let write = Write::new(record.round, "end", addition);
        self.write(state, Write { message_round, answers, pending, end: Some(end), ..write }).await
    }

    /// Ends a turn whose start may or may not be written.
    async fn end_unconfirmed_start(&self, end: &TurnEnd) -> Result<()> {
        let Some(unfinished) = self.unconfirmed_start(end) else {
            self.lease.release().await;
            return Ok(());
        };
        let unfinished = self.register(unfinished);
        let closed = self.registry.try_close(&*self.store, &self.key, &unfinished).await;
        self.lease.release().await;
        // Until here, a drop of the turn may bring another end.
        self.registry.note_closed(&self.key, &unfinished, closed).map_err(Error::from)
    }

    /// Registers the turn as stopped, with its end still to be written.
    fn register(&self, turn: UnfinishedTurn) -> UnfinishedTurn {
        self.registry.register(&self.key, UnfinishedTurn { token: self.lease.token(), ..turn })
    }

    /// Returns the unwritten rest of a turn that was dropped.
    fn stopped(&self, round: u32, end: &TurnEnd) -> Option<UnfinishedTurn> {
        // The whole turn has stopped, so the lock should be free. If it is not, the log is read before anything is
        // written.
        let Ok(stage) = self.stage.try_lock() else {
            let silent = UnfinishedTurn::new(self.turn.clone(), None, Vec::new());
            return Some(UnfinishedTurn { end: end.clone(), ..silent });
        };
        let Stage::Running(state) = &*stage else { return self.unconfirmed_start(end) };
        state.unfinished(&self.turn, round, end)
    }

    /// Releases the lock, so that other turns of the conversation may begin.
    fn release_lock(&self) {
        if let Ok(stage) = self.stage.try_lock()
            && let Stage::Running(state) = &*stage
        {
            state.hold.release();
        }
    }

    /// Returns the turn whose start may be written. An end left by an earlier attempt of the same turn stays as it
    /// is, unless it is silent or the turn is rolled back.
    fn unconfirmed_start(&self, end: &TurnEnd) -> Option<UnfinishedTurn> {
        let known =
            self.registry.unfinished_in(&self.key).into_iter().find(|known| known.turn == self.turn)?;
        let is_its_end = known.is_silent() || *end == TurnEnd::RolledBack;
        Some(if is_its_end { UnfinishedTurn { end: end.clone(), ..known } } else { known })
    }

    /// Closes a turn that was dropped, and releases its lease.
    async fn clean_up(&self, unfinished: Option<UnfinishedTurn>) {
        if let Some(unfinished) = unfinished {
            let closed = self.registry.close(&*self.store, &self.key, &unfinished).await;
            if let Err(error) = closed {
                tracing::warn!(
                    conversation = %self.key,
                    turn = %self.turn,
                    %error,
                    "a dropped turn is not closed yet; the next turn of the conversation closes it"
                );
            }
        }
        self.lease.release().await;
    }

    /// Spawns a summary, if one is due after a turn with `earlier` uncovered turns before it. No turn waits for
    /// it.
    fn summarize_later(self: &Arc<Self>, earlier: usize) {
        let due = |summarizer: &&Summarizer| summarizer.is_due(earlier.saturating_add(1));
        let Some(summarizer) = self.measure.summarizer.as_ref().filter(due) else { return };
        if !self.registry.start_summary(&self.key) {
            return;
        }
        let (memory, with) = (Summarizing(Arc::clone(self)), summarizer.clone());
        let work = async move {
            if let Err(error) = memory.0.summarize(&with).await {
                let key = &memory.0.key;
                tracing::warn!(conversation = %key, %error, "no summary could be made; the next turn tries again");
            }
        };
        summarizer.spawner.spawn(work.boxed());
    }

    async fn summarize(&self, summarizer: &Summarizer) -> Result<()> {
        let range = self.registry.first_range(&self.key, &self.measure);
        let see = |snapshot: Snapshot| {
            let is_enough = self.measure.is_covered(&snapshot).unwrap_or(true);
            (whole_turns(snapshot), is_enough)
        };
        let log = self.registry.load(&*self.store, &self.key, None, range, see).await?;
        // Kept until the next turn writes it: an append now would change the version under a turn that runs.
        let summary = summarizer.summarize(&log).await?;
        if let Some(summary) = summary.and_then(|summary| UnwrittenSummary::new(summary, &log)) {
            self.registry.keep_summary(&self.key, summary);
        }
        Ok(())
    }
}

/// Marks that a summary is being made. If a spawner discards the work, dropping this allows the next one.
struct Summarizing(Arc<TurnMemoryState>);

impl Drop for Summarizing {
    fn drop(&mut self) {
        self.0.registry.stop_summary(&self.0.key);
    }
}

/// Records the announcements of the loop and the root. Memory recognises messages that it has stored, and does not
/// store them again.
#[async_trait]
impl TurnRecorder for TurnMemory {
    async fn record(&self, record: &Record) -> Result<()> {
        let mut stage = self.0.stage.lock().await;
        let said = match (&mut *stage, &record.step) {
            (Stage::Retired, _) => return Ok(()),
            (Stage::Answered, _) => return refuse_calls(record, ANSWERED_BEFORE),
            // The request will contain the message.
            (Stage::Waiting(said) | Stage::Starting(said), Step::Injected) => {
                await_injected(said, &record.messages);
                return Ok(());
            }
            (Stage::Waiting(_), Step::End(TurnEnd::RolledBack)) => return Ok(()),
            // A turn that failed to begin is not begun again just to record its end.
            (Stage::Starting(_), Step::End(end)) if breaks_off(end) => {
                return self.0.end_unconfirmed_start(end).await;
            }
            (Stage::Waiting(_) | Stage::Starting(_), step) if self.0.has_undecided_calls() => {
                if let Step::End(_) = step {
                    self.0.lease.release().await;
                }
                return refuse_calls(record, UNDECIDED);
            }
            (Stage::Waiting(said) | Stage::Starting(said), _) => said.clone(),
            (Stage::Running(_), _) => Vec::new(),
        };
        // An announcement cannot wait for the end of another turn.
        let StartOutcome::Asking(state) = self.0.ensure_started(&mut stage, said, None).await? else {
            return refuse_calls(record, ANSWERED_BEFORE);
        };
        match &record.step {
            Step::End(end) => {
                let outcome = self.0.record_end(state, record, end).await;
                if outcome.is_ok() {
                    self.0.summarize_later(state.turns);
                }
                outcome
            }
            Step::Started(starts) => self.0.record_starts(state, record.round, starts).await,
            step => self.0.record_step(state, record, step).await,
        }
    }

    fn dropped(&self, round: u32, end: &TurnEnd) -> Option<BoxFuture<'static, ()>> {
        let unfinished = self.0.stopped(round, end).map(|turn| self.0.register(turn));
        self.0.release_lock();
        let has_work = unfinished.is_some() || self.0.lease.is_held();
        let memory = Arc::clone(&self.0);
        has_work.then(|| async move { memory.clean_up(unfinished).await }.boxed())
    }
}

/// Adds messages that a hook injected before the first request; the request contains them, too.
fn await_injected(said: &mut Vec<Message>, messages: &[Message]) {
    for message in messages {
        if !said.iter().rev().any(|known| known.is_same(message)) {
            said.push(message.clone());
        }
    }
}

/// Why the calls of a turn that was answered before do not run. Announcing its answer again is allowed.
const ANSWERED_BEFORE: &str = "the turn was answered when it was submitted before, and its calls were left to the \
    caller; answer them in a new turn";

/// Why the calls of a turn do not run whose decisions were not applied, since an advisor outside memory has ended it or
/// answered: not before the decided ones. Nothing else of such a turn is stored.
const UNDECIDED: &str = "an advisor outside memory answered with calls, before the decisions about earlier ones were \
    applied; let it pass turns with `Decisions` on";

/// Rejects a record of a turn that runs calls.
fn refuse_calls(record: &Record, why: &'static str) -> Result<()> {
    let runs_calls = match &record.step {
        Step::Answer => record.messages.iter().any(has_calls),
        Step::Results | Step::Started(_) => true,
        _ => false,
    };
    if runs_calls { Err(Error::configuration(why)) } else { Ok(()) }
}

fn breaks_off(end: &TurnEnd) -> bool {
    !matches!(end, TurnEnd::Completed(_))
}

/// Returns the new messages of a record. An announced answer is the one that the turn continues with. If memory
/// stored another answer last, or none, the announced one is new, even if it was stored before.
fn new_messages(state: &TurnState, record: &Record) -> Addition {
    let announces = matches!(record.step, Step::Answer | Step::End(_));
    let is_known = |message: &Message| match message.role() {
        Role::Assistant if announces => is_last_answer(state, record, message),
        _ => state.prompt.knows(message),
    };
    let is_new = |message: &&Message| is_remembered(message) && !is_known(message);
    state.prompt.add_again(record.messages.iter().filter(is_new).cloned())
}

/// Checks whether this is the answer that memory stored last. If an outer advisor changed the answer, memory keeps
/// the model's version.
fn is_last_answer(state: &TurnState, record: &Record, message: &Message) -> bool {
    let Some(last) = state.answered else { return false };
    // An answer that closes a turn after an answer with calls is a separate one.
    let of_model = record.step == Step::Answer || has_calls(message) || !last.has_calls;
    of_model && last.round == record.round && state.prompt.calls().are_those_of(message)
}

fn several_memories() -> Error {
    Error::configuration(
        "a turn is stored by one memory, in one conversation; run an inner client in a separate turn",
    )
}

impl fmt::Debug for TurnMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TurnMemory")
            .field("conversation", &self.0.key)
            .field("turn", &self.0.turn)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
