//! `AwaitPoints`: numbers the await points of a turn, and injects faults at them.

pub(crate) mod pass;
pub(crate) mod store;
mod wrapped;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use advisor_core::{ChatModel, Error, ErrorKind, Result, Tool};
use conversation_store::ConversationStore;
use tool_call_advisor::LoopHooks;

use super::{AwaitPoint, Event, Fault, Injection, PointStore};
use crate::crash::points::pass::{Pass, WANTED};
use crate::crash::points::wrapped::{PointHooks, PointModel, PointTool};

/// Numbers the await points of a turn as its leaves pass them, and injects the faults of a test. Clones share
/// everything.
///
/// Polls of the turn are not counted: one poll passes several ready leaves, and no fault could come between
/// them.
///
/// An await point is a pending or a ready of an instrumented leaf:
///
/// - a store, before and after its effect,
/// - a model, when it is asked and before each of its items,
/// - a tool, when it starts and before it answers,
/// - a hook of the loop,
/// - the reader, after each chunk,
/// - any other code that calls [`pass`](Self::pass).
///
/// Leaves that a turn runs at the same time pass their points in the order in which they are polled. So on one
/// thread the same turn has the same points.
///
/// # Cancellation
/// A point whose future is dropped counts as passed. A point that is passed while no turn runs is recorded as
/// [`Event::Late`].
///
/// # Example
/// ```
/// use advisor_core::ChatClient;
/// use advisor_testkit::{Answer, ScriptedModel};
/// use advisor_conformance::crash::{AwaitPoint, AwaitPoints, Operation};
/// use chat_memory_advisor::{ChatMemoryAdvisor, InMemoryStore};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> advisor_core::Result<()> {
/// let points = AwaitPoints::new();
/// let model = points.model(ScriptedModel::new([Answer::from_text("Hi")]));
/// let memory = ChatMemoryAdvisor::new(points.store(InMemoryStore::new()));
/// let client = ChatClient::builder(model).advisor(memory).build()?;
/// client.prompt().user("Hello").conversation("c").call().await?;
/// let first = [
///     AwaitPoint::Before(Operation::Load),
///     AwaitPoint::After(Operation::Load),
///     AwaitPoint::Before(Operation::Append),
/// ];
/// assert_eq!(points.passed()[..3], first);
/// # Ok(()) }
/// ```
#[derive(Clone, Default)]
pub struct AwaitPoints {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
pub(super) struct Shared {
    /// The points of the running turn.
    passed: Vec<AwaitPoint>,
    injections: Vec<Injection>,
    /// Stops whose points were reached, until the driver takes them. Leaves that run side by side may reach
    /// several in one poll.
    stops: VecDeque<Injection>,
    /// Whether leaves that wait to be stopped may continue.
    pub(super) released: bool,
    let_go: bool,
    pub(super) stopped: Vec<Waker>,
    closed: bool,
    alive: usize,
    pub(super) events: Vec<Event>,
    watch: Option<Arc<Watch>>,
}

type Watch = dyn Fn(usize, AwaitPoint) + Send + Sync;

impl AwaitPoints {
    /// Creates an empty list of points, without injections.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Wraps a store so that it passes points before and after its effect, and records appended batches.
    ///
    /// It supports no leases, unless [`with_leases`](super::with_leases) enables them.
    #[must_use]
    pub fn store(&self, store: impl ConversationStore) -> PointStore {
        PointStore::with(Arc::new(store), store::StorePoints::new(self))
    }

    /// Wraps a model so that it passes a point when it is asked and before each item, and records its requests.
    #[must_use]
    pub fn model(&self, model: impl ChatModel) -> Arc<dyn ChatModel> {
        Arc::new(PointModel { points: self.clone(), inner: Arc::new(model) })
    }

    /// Wraps a tool so that it passes a point when it starts and when it has run, and records both.
    pub fn tool<T: Tool>(&self, tool: T) -> impl Tool + use<T> {
        PointTool { points: self.clone(), inner: tool }
    }

    /// Returns hooks of the loop, each of which passes a point and does nothing else.
    pub fn hooks(&self) -> impl LoopHooks + use<> {
        PointHooks(self.clone())
    }

    /// Passes a point of a leaf of the test's own, such as an advisor that waits, or a timer.
    ///
    /// # Errors
    /// Of kind [`ErrorKind::Advisor`], if a fault makes it fail here.
    pub async fn pass(&self, name: &'static str) -> Result<()> {
        self.fallible(AwaitPoint::Other(name)).await
    }

    /// Calls `watch` with the number and the kind of each later point, before the point is passed.
    ///
    /// `watch` may block forever. A process that is to be killed at a point waits there, after it has reported
    /// the events that have [happened](Self::events).
    pub fn watch(&self, watch: impl Fn(usize, AwaitPoint) + Send + Sync + 'static) {
        self.lock().watch = Some(Arc::new(watch));
    }

    /// Returns the points that the running turn has passed, in order; after its end, those of the last turn.
    #[must_use]
    pub fn passed(&self) -> Vec<AwaitPoint> {
        self.lock().passed.clone()
    }

    /// Returns all events so far.
    #[must_use]
    pub fn events(&self) -> Vec<Event> {
        self.lock().events.clone()
    }

    /// Begins a turn with these injections.
    pub(super) fn begin(&self, injections: &[Injection]) {
        let mut shared = self.lock();
        shared.passed.clear();
        shared.injections = injections.to_vec();
        (shared.released, shared.let_go, shared.closed) = (false, false, false);
        shared.stops.clear();
    }

    /// Ends the turn. Records its remaining parts, and any later point as late.
    pub(super) fn end(&self) {
        let mut shared = self.lock();
        shared.closed = true;
        let stopped = std::mem::take(&mut shared.stopped);
        if shared.alive > 0 {
            let left = shared.alive;
            shared.events.push(Event::Leaked(left));
        }
        drop(shared);
        drop(stopped);
    }

    pub(super) fn take_events(&self) -> Vec<Event> {
        std::mem::take(&mut self.lock().events)
    }

    pub(super) fn record(&self, event: Event) {
        self.lock().events.push(event);
    }

    /// Takes the next stop whose point was reached, if any.
    pub(super) fn take_stop(&self) -> Option<Fault> {
        let mut shared = self.lock();
        let Injection { point, fault } = shared.stops.pop_front()?;
        if let Some(await_point) = shared.passed.get(point).copied() {
            shared.events.push(Event::Injected { point, await_point, fault });
        }
        Some(fault)
    }

    /// Checks whether leaves that waited to be stopped were released since the last call.
    pub(super) fn was_released(&self) -> bool {
        std::mem::take(&mut self.lock().let_go)
    }

    /// Lets leaves that wait to be stopped continue, if they still exist.
    pub(super) fn release(&self) {
        let stopped = {
            let mut shared = self.lock();
            (shared.released, shared.let_go) = (true, true);
            std::mem::take(&mut shared.stopped)
        };
        stopped.into_iter().for_each(Waker::wake);
    }

    /// Passes a point of the driver, at which a fault can only stop the turn.
    pub(super) fn pass_at_once(&self, await_point: AwaitPoint) {
        self.call_watch(await_point);
        let _ = self.lock().arrive(await_point);
    }

    /// Passes a point. Returns the fault that the leaf must have; a panic unwinds.
    pub(super) fn at(&self, await_point: AwaitPoint) -> Pass {
        Pass::new(self, await_point)
    }

    /// Does the same for a leaf whose only fault is an error of the chain.
    pub(super) async fn fallible(&self, await_point: AwaitPoint) -> Result<()> {
        match self.at(await_point).await {
            None => Ok(()),
            Some(_) => Err(Error::new(ErrorKind::Advisor, WANTED)),
        }
    }

    /// Calls the watch before a point is passed.
    pub(super) fn call_watch(&self, await_point: AwaitPoint) {
        let (point, watch) = {
            let shared = self.lock();
            (shared.passed.len(), shared.watch.clone())
        };
        if let Some(watch) = watch {
            watch(point, await_point);
        }
    }

    /// Registers a part of a turn that must not remain when the turn has ended.
    pub(super) fn alive(&self) -> Alive {
        self.lock().alive += 1;
        Alive(self.clone())
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// Counts a point and returns the fault at it.
    pub(super) fn arrive(&mut self, await_point: AwaitPoint) -> Option<Fault> {
        if self.closed {
            self.events.push(Event::Late(await_point));
            return None;
        }
        let point = self.passed.len();
        self.passed.push(await_point);
        let due = self.injections.iter().find(|injection| injection.point == point)?;
        let injection = Some(*due).filter(|injection| injection.fault.can_happen_at(await_point))?;
        if injection.fault.is_stop() {
            self.stops.push_back(injection);
            self.released = false;
        } else {
            self.events.push(Event::Injected { point, await_point, fault: injection.fault });
        }
        Some(injection.fault)
    }
}

/// Held by a leaf while a part of it exists.
pub(super) struct Alive(AwaitPoints);

impl Drop for Alive {
    fn drop(&mut self) {
        let mut shared = self.0.lock();
        shared.alive = shared.alive.saturating_sub(1);
    }
}
