//! `CrashDriver`: runs cases: each fault at each await point, and pairs of points.
//!
//! A case runs in one task, so that the same turn has the same await points every time.

use std::sync::Arc;

use advisor_core::{ChatClient, ClientSideCall, ConversationKey, Prompt, Result, ToolSet, TurnId};
use chat_memory_advisor::ChatMemoryAdvisor;
use conversation_store::{ConversationStore, Entry, ReadRange};

use super::drive::drive;
use super::leaves::{ASKING_INPUT, INPUTS, LAST_INPUT};
use super::{
    AwaitPoint, CaseRun, Fault, Injection, Invariant, Leaves, Operation, Outcome, Scenario, TurnRun,
};

/// Runs turns of a chain, injects faults at their await points, and checks every [`Invariant`] on the result.
///
/// A case is several turns of one conversation, each with its injections, and a last turn without any, which must
/// work. Each case begins with a new client, like a new process. After [`Fault::Kill`] it continues with
/// another client over the same store. Everything runs in the caller's task, which needs a tokio runtime with a
/// clock. Nothing waits on that clock.
///
/// # Panics
/// The `every_…` methods panic at the first case in which an invariant does not hold. The message lists all
/// events of the case.
///
/// # Example
/// ```
/// use advisor_conformance::crash::{CrashDriver, Fault, Scenario};
/// use conversation_store::InMemoryStore;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let mut driver = CrashDriver::new(Scenario::PLAIN, InMemoryStore::new(), |leaves| {
///     leaves.client().advisor(leaves.memory()).advisor(leaves.tool_loop().build()?).build()
/// });
/// let cases = driver.every_point(&Fault::ALL).await;
/// assert!(cases >= 100, "{cases}");
/// # }
/// ```
pub struct CrashDriver {
    leaves: Leaves,
    make: Box<MakeClient>,
    scenario: Scenario,
    store: Arc<dyn ConversationStore>,
    without: Vec<Invariant>,
    /// The log of a conversation that has only the last turn; known when the first case begins.
    alone: Option<Vec<Entry>>,
    /// Distinguishes the conversations from those of other drivers on the same server.
    name: String,
    cases: usize,
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

type MakeClient = dyn Fn(&Leaves) -> Result<ChatClient> + Send + Sync;

impl CrashDriver {
    /// Creates a driver of the chain that `make` creates from the leaves, once for each process.
    pub fn new(
        scenario: Scenario,
        store: impl ConversationStore,
        make: impl Fn(&Leaves) -> Result<ChatClient> + Send + Sync + 'static,
    ) -> Self {
        let store: Arc<dyn ConversationStore> = Arc::new(store);
        Self {
            leaves: Leaves::new(scenario, scenario, Arc::clone(&store)),
            make: Box::new(make),
            scenario,
            store,
            without: Vec::new(),
            alone: None,
            name: String::from(TurnId::random()),
            cases: 0,
        }
    }

    /// Sets the scenario of the turns after the first. The loop keeps the limits of the first scenario.
    #[must_use]
    pub fn followed_by(self, following: Scenario) -> Self {
        let leaves = Leaves::new(self.scenario, following, Arc::clone(&self.store));
        Self { leaves, ..self }
    }

    /// Leaves out the check of an invariant.
    #[must_use]
    pub fn without(mut self, invariant: Invariant) -> Self {
        self.without.push(invariant);
        self
    }

    /// Returns the points of the first turn without faults.
    pub async fn await_points(&mut self) -> Vec<AwaitPoint> {
        self.whole_turn().await.await_points
    }

    /// Runs the first turn without faults.
    pub(super) async fn whole_turn(&mut self) -> TurnRun {
        self.turn_of(&[&[]], 0).await
    }

    /// Runs a case, and returns one of its turns. The turn that asks is before them.
    async fn turn_of(&mut self, turns: &[&[Injection]], place: usize) -> TurnRun {
        let before = usize::from(self.scenario.asks());
        self.checked(turns).await.turns.swap_remove(before + place)
    }

    /// Returns the tools of the leaves.
    pub(super) fn tools(&self) -> &ToolSet {
        &self.leaves.tools
    }

    /// Injects each of these faults at each point of a turn at which it can happen. Returns the number of
    /// points, each counted once per fault.
    pub async fn every_point(&mut self, faults: &[Fault]) -> usize {
        let injections = injections(&self.await_points().await, 0, faults);
        for fault in faults {
            let happens = injections.iter().any(|injection| injection.fault == *fault);
            assert!(happens, "{fault:?} can happen at no point of this turn");
        }
        for injection in &injections {
            self.injected(&[&[*injection]]).await;
        }
        injections.len()
    }

    /// Injects each of the faults `first` at each point of a turn, and then each of `second` at each point of
    /// the next turn. Returns the number of pairs.
    pub async fn every_pair_of_points(&mut self, first: &[Fault], second: &[Fault]) -> usize {
        let mut pairs = 0;
        for one in injections(&self.await_points().await, 0, first) {
            let next = self.turn_of(&[&[one], &[]], 1).await;
            for other in injections(&next.await_points, 0, second) {
                self.injected(&[&[one], &[other]]).await;
                pairs += 1;
            }
        }
        pairs
    }

    /// Injects each of the faults `first` at each point of a turn, and each of `second` at each later point of
    /// the same turn. After a drop or a kill there are no later points. Returns the number of pairs.
    pub async fn every_pair_in_a_turn(&mut self, first: &[Fault], second: &[Fault]) -> usize {
        let mut pairs = 0;
        let goes_on = |injection: &Injection| !matches!(injection.fault, Fault::Drop(_) | Fault::Kill);
        for one in injections(&self.await_points().await, 0, first).into_iter().filter(goes_on) {
            let turn = self.turn_of(&[&[one]], 0).await;
            for other in injections(&turn.await_points, one.point + 1, second) {
                self.injected(&[&[one, other]]).await;
                pairs += 1;
            }
        }
        pairs
    }

    /// Runs a case: each turn with its injections, then the last turn.
    ///
    /// # Errors
    /// If the chain cannot be created, or the store itself fails.
    pub async fn run(&mut self, turns: &[&[Injection]]) -> std::result::Result<CaseRun, BoxError> {
        let alone = match self.alone.take() {
            Some(alone) => alone,
            None => self.conversation(&[], "alone").await?.log,
        };
        self.cases += 1;
        let run = self.conversation(turns, &self.cases.to_string()).await?;
        self.alone = Some(alone.clone());
        Ok(CaseRun { alone, ..run })
    }

    /// Runs these turns of a conversation, and the last one.
    async fn conversation(
        &self,
        turns: &[&[Injection]],
        name: &str,
    ) -> std::result::Result<CaseRun, BoxError> {
        let conversation = ConversationKey::new(&format!("{}-{name}", self.name))?;
        let mut run = CaseRun::new(self.scenario, conversation);
        self.leaves.points.take_events();
        let mut process = (self.make)(&self.leaves)?;
        if self.scenario.asks() && !turns.is_empty() {
            let asking = process.prompt().user(ASKING_INPUT).conversation(run.conversation.clone());
            run.turns.push(self.turn(asking, &run.conversation, &[]).await?);
        }
        for (place, injections) in turns.iter().enumerate() {
            let said = INPUTS.get(place).copied().unwrap_or("more");
            let prompt = self.prompt(&process, said, &run.conversation).await?;
            let turn = self.turn(prompt, &run.conversation, injections).await?;
            if turn.outcome == Outcome::Killed {
                process = (self.make)(&self.leaves)?;
            }
            run.turns.push(turn);
        }
        let last = process.prompt().user(LAST_INPUT).conversation(run.conversation.clone());
        run.turns.push(self.turn(last, &run.conversation, &[]).await?);
        run.log = run.turns.last().map(|turn| turn.log.clone()).unwrap_or_default();
        self.store.delete(&run.conversation).await?;
        Ok(run)
    }

    /// Returns the prompt of a turn: the user's message, or the approval of the calls that wait for one.
    async fn prompt(
        &self,
        client: &ChatClient,
        said: &str,
        key: &ConversationKey,
    ) -> std::result::Result<Prompt, BoxError> {
        let prompt = client.prompt().conversation(key.clone());
        let mut waiting = ChatMemoryAdvisor::new(Arc::clone(&self.store)).client_side_calls(key).await?;
        if !self.scenario.asks() || waiting.is_empty() {
            return Ok(prompt.user(said));
        }
        // A started call needs no decision: its process is lost.
        waiting.retain(|call| !call.started);
        Ok(prompt.resume(waiting.iter().map(ClientSideCall::approve).collect::<Result<Vec<_>>>()?))
    }

    async fn turn(
        &self,
        prompt: Prompt,
        key: &ConversationKey,
        injections: &[Injection],
    ) -> std::result::Result<TurnRun, BoxError> {
        let points = &self.leaves.points;
        let turn = prompt.stream();
        let id = turn.turn().id().clone();
        points.begin(injections);
        let outcome = drive(turn, points).await;
        let log = self.store.load(key, ReadRange::All).await?.entries;
        let (await_points, events) = (points.passed(), points.take_events());
        Ok(TurnRun { id, injections: injections.to_vec(), await_points, outcome, events, log })
    }

    /// Runs a case and checks every invariant on it.
    #[allow(clippy::panic, reason = "an assertion in a test ends the test")]
    async fn checked(&mut self, turns: &[&[Injection]]) -> CaseRun {
        let run = self.run(turns).await.unwrap_or_else(|error| panic!("{turns:?}: {error}"));
        if let Err(broken) = run.check(&self.without) {
            panic!("{broken}");
        }
        run
    }

    /// Runs and checks a case, and checks that every fault of it was injected.
    async fn injected(&mut self, turns: &[&[Injection]]) -> CaseRun {
        let run = self.checked(turns).await;
        assert!(
            run.all_injected(),
            "{turns:?}: a point was not reached. The same turn must have the same points every time: run it in one \
             task, without randomness and without a real clock. {run}"
        );
        run
    }
}

/// Returns each fault at each of the points from `from` on, where it can happen. If a turn asks for its lease
/// repeatedly, the first and the last request represent all.
fn injections(await_points: &[AwaitPoint], from: usize, faults: &[Fault]) -> Vec<Injection> {
    let points = await_points.iter().copied().enumerate().skip(from);
    points
        .filter(|(point, _)| !is_asked_in_between(await_points, *point))
        .flat_map(|(point, await_point)| {
            let possible = faults.iter().filter(move |fault| fault.can_happen_at(await_point));
            possible.map(move |fault| Injection::new(point, *fault))
        })
        .collect()
}

/// Checks whether this point of a lease request has the same point of another request before and after it.
fn is_asked_in_between(await_points: &[AwaitPoint], point: usize) -> bool {
    let here = await_points.get(point);
    let is_same = |other: Option<usize>| other.is_some_and(|other| await_points.get(other) == here);
    matches!(here, Some(AwaitPoint::Before(Operation::Acquire) | AwaitPoint::After(Operation::Acquire)))
        && is_same(point.checked_sub(2))
        && is_same(point.checked_add(2))
}
