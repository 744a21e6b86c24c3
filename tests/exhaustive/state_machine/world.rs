//! `World`: two processes that share a store, on which the operations of a case are run.

use advisor_chain::memory::ForkPoint;
use advisor_chain::memory::store::{export, import};
use advisor_testkit::FaultStore;
use advisor_tests::prelude::*;

use crate::state_machine::answers::words_of_user;
use crate::state_machine::leaves::Leaves;
use crate::state_machine::operation::{Case, How, Operation, Script, Setup};
use crate::state_machine::reading::{Over, Reading};
use crate::state_machine::reference::{Expected, Reference};
use crate::state_machine::steps::Steps;

/// Two processes that share a store, and their expected state.
pub(crate) struct World {
    pub(crate) setup: Setup,
    pub(crate) leaves: Leaves,
    pub(crate) faults: FaultStore<Arc<dyn ConversationStore>>,
    pub(crate) processes: [Process; 2],
    /// A turn that has begun and is suspended.
    pub(crate) standing: Option<Standing>,
    /// Whether a turn that no longer runs may still hold its lease.
    pub(crate) is_held: bool,
    pub(crate) told: Reference,
    /// The processes that did something in the operation that was done last.
    pub(crate) active: [bool; 2],
}

/// The state of a process.
pub(crate) struct Process {
    pub(crate) memory: ChatMemoryAdvisor,
    pub(crate) window: Window,
}

/// A suspended turn.
pub(crate) struct Standing {
    pub(crate) by: usize,
    /// Its number among those that were submitted.
    pub(crate) nth: usize,
    pub(crate) reading: Reading,
}

/// A property that does not hold, in words.
pub(crate) type Broken = String;

pub(crate) fn key() -> ConversationKey {
    ConversationKey::new("c").unwrap()
}

/// A conversation of the same id, of another tenant.
pub(crate) fn elsewhere() -> ConversationKey {
    ConversationKey::in_tenant("d", "c").unwrap()
}

/// Runs the operations of a case, and checks the laws after each operation and at the end.
pub(crate) async fn run(case: &Case, store: Arc<dyn ConversationStore>) -> Result<(), Broken> {
    let mut world = World::new(case.setup, store);
    for (place, operation) in case.operations.iter().enumerate() {
        let after = |broken| format!("after operation {place}, {operation:?}: {broken}");
        world.apply(*operation).await.map_err(after)?;
        world.check().await.map_err(after)?;
    }
    world.check_end().await.map_err(|broken| format!("in the end: {broken}"))
}

impl World {
    pub(crate) fn new(setup: Setup, store: Arc<dyn ConversationStore>) -> Self {
        let steps = Steps::default();
        let faults = FaultStore::new(Arc::clone(&store));
        let leaves = Leaves { steps, store, seen: Arc::default() };
        let process = || Process::new(setup, &leaves, &faults);
        let processes = [process(), process()];
        let told = Reference::default();
        Self { setup, leaves, faults, processes, standing: None, is_held: false, told, active: [false; 2] }
    }

    async fn apply(&mut self, operation: Operation) -> Result<(), Broken> {
        self.active = [false; 2];
        match operation {
            Operation::Submit(submission) => self.submit(submission).await?,
            Operation::Twice { by, script } => self.submit_twice(by, script).await?,
            Operation::GoOn(stop) => self.go_on(stop).await?,
            Operation::Window { by, window } => self.processes[by].window = window,
            Operation::Restart { by } => {
                self.active[by] = true;
                self.end_standing_of(by, How::Close).await?;
                let closed = self.processes[by].memory.close_unfinished().await;
                closed.map_err(|error| format!("what was dropped could not be closed: {error:?}"))?;
                self.restart(by);
            }
            Operation::Kill { by } => {
                self.end_standing_of(by, How::Kill).await?;
                self.forget_shown_by(by);
                self.restart(by);
            }
            Operation::Delete => {
                self.leaves.store.delete(&key()).await.unwrap();
                self.told.is_deleted(self.standing.as_ref().map(|standing| standing.nth));
                self.leaves.seen.deletions.fetch_add(1, Ordering::Relaxed);
                if let Some(standing) = &self.standing {
                    standing.reading.run.outdate();
                }
            }
            Operation::Move => self.move_away_and_back().await,
            Operation::Elsewhere { by } => self.turn_elsewhere(by).await?,
            Operation::Wait => {
                tokio::time::advance(Duration::from_secs(60)).await;
                self.is_held = false;
            }
        }
        Ok(())
    }

    pub(crate) fn client(&self, by: usize) -> ChatClient {
        let process = &self.processes[by];
        self.leaves.client(self.setup.memory, process.memory.clone(), process.window)
    }

    /// A turn of the conversation.
    pub(crate) fn turn(&self, by: usize, nth: usize, fork_point: Option<ForkPoint>) -> TurnStream {
        let submitted = &self.told.turns[nth];
        let prompt = self.client(by).prompt().user(submitted.said.clone()).conversation(key());
        let prompt = prompt.turn(submitted.id.clone());
        match fork_point {
            Some(place) => prompt.extension(place).stream(),
            None => prompt.stream(),
        }
    }

    /// Ends a process and starts it again, without the state of its memory.
    pub(crate) fn restart(&mut self, by: usize) {
        let window = self.processes[by].window;
        let process = Process::new(self.setup, &self.leaves, &self.faults);
        self.processes[by] = Process { window, ..process };
    }

    async fn end_standing_of(&mut self, by: usize, how: How) -> Result<(), Broken> {
        if let Some(standing) = self.standing.take_if(|standing| standing.by == by) {
            self.note_stop(&standing, how).await?;
            standing.reading.drop_as(how).await;
            self.is_held = true;
        }
        Ok(())
    }

    async fn move_away_and_back(&mut self) {
        let store = &self.leaves.store;
        let lines: String = export(Arc::clone(store), key()).try_collect().await.unwrap();
        store.delete(&key()).await.unwrap();
        import(store, lines.as_bytes(), None).await.unwrap();
    }

    async fn turn_elsewhere(&mut self, by: usize) -> Result<(), Broken> {
        self.leaves.seen.alone.store(true, Ordering::Relaxed);
        let said = words_of_user("d", self.told.turns.len() + self.told.elsewhere.len(), Script::Plain);
        let turn = self.client(by).prompt().user(said).conversation(elsewhere()).stream();
        match Reading::new(turn, &self.leaves.steps, None).read().await {
            Over::Completed(_) => {
                self.told.elsewhere = self.log_of(&elsewhere()).await?;
                Ok(())
            }
            over => Err(format!("a turn of another conversation did not complete: {over:?}")),
        }
    }

    /// Returns the expected outcome of a turn: its answer, unless something prevents it.
    pub(crate) fn expected(&self, fault: Option<StoreFault>, script: Script) -> Expected {
        let is_free = self.standing.is_none() && !(self.setup.leases && self.is_held);
        match fault {
            _ if !is_free || script == Script::Breaks => Expected::Anything,
            None => Expected::Answer,
            Some(StoreFault::Conflict) => Expected::Anything,
            Some(_) => Expected::NoConflict,
        }
    }
}

impl Process {
    fn new(setup: Setup, leaves: &Leaves, faults: &FaultStore<Arc<dyn ConversationStore>>) -> Self {
        let store = leaves.steps.store(Arc::new(faults.clone()));
        let memory = ChatMemoryAdvisor::new(store).with_on_busy(setup.on_busy);
        Self { memory, window: Window::All }
    }
}
