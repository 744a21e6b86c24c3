pub(crate) mod hooks;
pub(crate) mod model;
pub(crate) mod pass;
pub(crate) mod store;
pub(crate) mod tool;

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use advisor_core::{ChatModel, Error, ErrorKind, Result, Tool};
use conversation_store::ConversationStore;
use tool_call_advisor::LoopHooks;

use super::{Happened, Mishap, Place, PointHooks, PointModel, PointStore, PointTool, Strike};
use crate::crash::points::pass::{Pass, WANTED};

/// Numbers the await points of a turn as its leaves pass them, and strikes where a test says. Clones share everything.
///
/// An await point is a pending or a ready of an instrumented leaf: a store before and after its effect, a model that
/// is asked and before each of its items, a tool that starts and that is about to answer, a hook of the loop, whatever
/// else calls [`pass`](Self::pass), and the reader after each chunk. Leaves that a turn runs at the same time pass
/// their points in the order in which they are polled, so that on one thread the same turn has the same points.
///
/// # Cancellation
/// A point that is dropped has been passed. What passes a point while no turn runs is noted as
/// [`Happened::Late`].
///
/// # Example
/// ```
/// use advisor_core::ChatClient;
/// use advisor_testkit::{Answer, ScriptedModel};
/// use advisor_testkit::crash::{AwaitPoints, Place};
/// use chat_memory_advisor::{ChatMemoryAdvisor, InMemoryStore};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> advisor_core::Result<()> {
/// let points = AwaitPoints::new();
/// let model = points.model(ScriptedModel::new([Answer::from_text("Hi")]));
/// let memory = ChatMemoryAdvisor::new(points.store(InMemoryStore::new()));
/// let client = ChatClient::builder(model).advisor(memory).build()?;
/// client.prompt().user("Hello").conversation("c").call().await?;
/// assert_eq!(points.places()[..3], [Place::BeforeLoad, Place::AfterLoad, Place::BeforeAppend]);
/// # Ok(()) }
/// ```
#[derive(Clone, Default)]
pub struct AwaitPoints {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
pub(super) struct Shared {
    /// Those of the running turn.
    places: Vec<Place>,
    strikes: Vec<Strike>,
    /// Points that were reached at which someone is to stop the turn, until they do. Leaves that run side by side may
    /// reach several in one poll.
    stops: VecDeque<Strike>,
    /// Leaves that wait to be stopped go on.
    pub(super) released: bool,
    let_go: bool,
    pub(super) stuck: Vec<Waker>,
    closed: bool,
    alive: usize,
    happened: Vec<Happened>,
    watch: Option<Arc<Watch>>,
}

type Watch = dyn Fn(usize, Place) + Send + Sync;

impl AwaitPoints {
    /// No points passed, and nothing to go wrong.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A store that passes points before and after its effect, and tells of what was appended.
    ///
    /// It hands out no leases, unless it is asked to by [`PointStore::with_leases`].
    #[must_use]
    pub fn store(&self, store: impl ConversationStore) -> PointStore {
        PointStore::new(self, Arc::new(store))
    }

    /// A model that passes a point when it is asked and before each item, and tells of what it was asked.
    #[must_use]
    pub fn model(&self, model: impl ChatModel) -> PointModel {
        PointModel::new(self, Arc::new(model))
    }

    /// A tool that passes a point when it starts and when it has run, and tells of both.
    #[must_use]
    pub fn tool(&self, tool: impl Tool) -> PointTool {
        PointTool::new(self, Arc::new(tool))
    }

    /// Hooks of the loop of which each passes a point before it does anything.
    #[must_use]
    pub fn hooks(&self, hooks: impl LoopHooks) -> PointHooks {
        PointHooks::new(self, Arc::new(hooks))
    }

    /// Passes a point of a leaf of the test's own: an advisor that waits for something, a timer.
    ///
    /// # Errors
    /// Of kind [`ErrorKind::Advisor`], if it is to fail here.
    pub async fn pass(&self, name: &'static str) -> Result<()> {
        self.fallible(Place::Other(name)).await
    }

    /// Calls `watch` with the number and the place of each point from now on, before it is passed.
    ///
    /// It may stay there for ever: that is how a process that is to be killed at a point waits for it, when it has
    /// told whoever kills it what has [happened](Self::happened).
    pub fn watch(&self, watch: impl Fn(usize, Place) + Send + Sync + 'static) {
        self.lock().watch = Some(Arc::new(watch));
    }

    /// The points that the running turn has passed, in order; when it is over, those of the last turn.
    #[must_use]
    pub fn places(&self) -> Vec<Place> {
        self.lock().places.clone()
    }

    /// What has happened so far.
    #[must_use]
    pub fn happened(&self) -> Vec<Happened> {
        self.lock().happened.clone()
    }

    /// A turn begins, and is struck so.
    pub(super) fn begin(&self, strikes: &[Strike]) {
        let mut shared = self.lock();
        shared.places.clear();
        shared.strikes = strikes.to_vec();
        (shared.released, shared.let_go, shared.closed) = (false, false, false);
        shared.stops.clear();
    }

    /// The turn is over: nothing of it may be left, and nothing may happen until the next one begins.
    pub(super) fn end(&self) {
        let mut shared = self.lock();
        shared.closed = true;
        let stuck = std::mem::take(&mut shared.stuck);
        if shared.alive > 0 {
            let left = shared.alive;
            shared.happened.push(Happened::Left(left));
        }
        drop(shared);
        drop(stuck);
    }

    pub(super) fn take_happened(&self) -> Vec<Happened> {
        std::mem::take(&mut self.lock().happened)
    }

    pub(super) fn record(&self, happened: Happened) {
        self.lock().happened.push(happened);
    }

    /// Whether something among what has happened is so.
    pub(super) fn has_happened(&self, is_it: impl FnMut(&Happened) -> bool) -> bool {
        self.lock().happened.iter().any(is_it)
    }

    /// How the turn is to be stopped now, if a point was reached at which it is.
    pub(super) fn take_stop(&self) -> Option<Mishap> {
        let mut shared = self.lock();
        let Strike { point, mishap } = shared.stops.pop_front()?;
        if let Some(place) = shared.places.get(point).copied() {
            shared.happened.push(Happened::Struck { point, place, mishap });
        }
        Some(mishap)
    }

    /// Whether leaves that were to be stopped have been let go since this was last asked.
    pub(super) fn was_released(&self) -> bool {
        std::mem::take(&mut self.lock().let_go)
    }

    /// Leaves that wait to be stopped go on, as far as they are still there.
    pub(super) fn release(&self) {
        let stuck = {
            let mut shared = self.lock();
            (shared.released, shared.let_go) = (true, true);
            std::mem::take(&mut shared.stuck)
        };
        stuck.into_iter().for_each(Waker::wake);
    }

    /// Passes a point of the driver's own, at which it can only stop the turn.
    pub(super) fn pass_at_once(&self, place: Place) {
        self.tell_watch(place);
        let _ = self.lock().arrive(place);
    }

    /// Passes a point. A fault is for the leaf to have; a panic has unwound.
    pub(super) fn at(&self, place: Place) -> Pass {
        Pass::new(self, place)
    }

    /// The same for a leaf whose only fault is an error of the chain.
    pub(super) async fn fallible(&self, place: Place) -> Result<()> {
        match self.at(place).await {
            None => Ok(()),
            Some(_) => Err(Error::new(ErrorKind::Advisor, WANTED)),
        }
    }

    /// A point is about to be passed.
    pub(super) fn tell_watch(&self, place: Place) {
        let (point, watch) = {
            let shared = self.lock();
            (shared.places.len(), shared.watch.clone())
        };
        if let Some(watch) = watch {
            watch(point, place);
        }
    }

    /// Something of a turn that must be gone when the turn is over.
    pub(super) fn alive(&self) -> Alive {
        self.lock().alive += 1;
        Alive(self.clone())
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// Counts a point and gives what happens there.
    pub(super) fn arrive(&mut self, place: Place) -> Option<Mishap> {
        if self.closed {
            self.happened.push(Happened::Late(place));
            return None;
        }
        let point = self.places.len();
        self.places.push(place);
        let due = self.strikes.iter().find(|strike| strike.point == point)?;
        let strike = Some(*due).filter(|strike| strike.mishap.can_happen_at(place))?;
        if strike.mishap.is_stop() {
            self.stops.push_back(strike);
            self.released = false;
        } else {
            self.happened.push(Happened::Struck { point, place, mishap: strike.mishap });
        }
        Some(strike.mishap)
    }
}

/// Held by a leaf as long as something of it is there.
pub(super) struct Alive(AwaitPoints);

impl Drop for Alive {
    fn drop(&mut self) {
        let mut shared = self.0.lock();
        shared.alive = shared.alive.saturating_sub(1);
    }
}

impl fmt::Debug for AwaitPoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shared = self.lock();
        f.debug_struct("AwaitPoints")
            .field("passed", &shared.places.len())
            .field("strikes", &shared.strikes)
            .finish_non_exhaustive()
    }
}
