//! Servers that stand for processes of one service: they share a store and a relay, and nothing else.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use advisor_core::{ConversationKey, TurnId, async_trait};
use advisor_server::{Appended, Begun, RelayError, RunBatch, RunPage, ServerLimits, TurnRelay, TurnRun};
use advisor_testkit::{Answer, ScriptedModel};
use axum::body::Body;
use axum::http::{Request, Response};
use chat_memory_advisor::InMemoryStore;
use chat_memory_advisor::store::ConversationStore;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::relay::in_memory::InMemoryRelay;
use crate::setting::{Setting, setting_over, text};

/// Two processes. Clients begin turns at the first one.
pub(crate) struct Two {
    pub(crate) first: Setting,
    pub(crate) second: Setting,
    pub(crate) model: ScriptedModel,
    /// The way of the first process to the relay, and that of the second one.
    pub(crate) ways: [Way; 2],
}

/// Two processes over one relay in memory.
pub(crate) fn two(answers: impl IntoIterator<Item = Answer>) -> Two {
    two_over(InMemoryStore::new(), answers, ServerLimits::default())
}

pub(crate) fn two_over(
    store: impl ConversationStore,
    answers: impl IntoIterator<Item = Answer>,
    limits: ServerLimits,
) -> Two {
    let (store, model) = (Arc::new(store), ScriptedModel::new(answers));
    let relay = InMemoryRelay::new();
    let ways = [(); 2].map(|()| Way::to(relay.clone()));
    let process = |way: &Way| {
        let Setting { server, model } = setting_over(Arc::clone(&store), model.clone());
        Setting { server: server.with_limits(limits).with_relay(way.clone()), model }
    };
    let [first, second] = [process(&ways[0]), process(&ways[1])];
    Two { first, second, model, ways }
}

impl Two {
    /// Begins turn `t1` of conversation `c1` at the first process.
    pub(crate) async fn begin(&self) -> Response<Body> {
        self.first.post("/api/chat", &asking("t1")).await
    }
}

pub(crate) fn asking(turn: &str) -> Value {
    json!({"message": "How is it?", "conversation": "c1", "turn": turn})
}

pub(crate) fn joining(last_event: Option<&str>) -> Request<Body> {
    let request = Request::get("/api/conversations/c1/stream");
    let request = match last_event {
        Some(id) => request.header("last-event-id", id),
        None => request,
    };
    request.body(Body::empty()).unwrap()
}

/// A request for turn `t1`, whether or not it runs.
pub(crate) fn reading() -> Request<Body> {
    let request = Request::get("/api/conversations/c1/stream").header("x-turn-id", "t1");
    request.body(Body::empty()).unwrap()
}

pub(crate) async fn running(process: &Setting) -> Value {
    process.read().await["running"].clone()
}

/// Waits until a process sees turn `t1` to its end, and returns its events.
pub(crate) async fn read_to_end(process: &Setting) -> String {
    text(process.send(reading()).await).await
}

/// The way of one process to the relay, which a test can break.
#[derive(Clone)]
pub(crate) struct Way {
    relay: InMemoryRelay,
    state: watch::Sender<State>,
    batches: Arc<AtomicUsize>,
    most_items: Arc<AtomicUsize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Open,
    /// Each call fails at once.
    Down,
    /// No call is answered until the way is open.
    Held,
    /// No append is answered until the way is open. Other calls are answered.
    AppendHeld,
    /// A beginning takes effect, but is not answered until the way is open. Other calls are answered.
    BeginUnanswered,
    /// A read is of now, but is not answered until the way is open. Other calls are answered.
    ReadUnanswered,
}

impl Way {
    fn to(relay: InMemoryRelay) -> Self {
        let (state, batches) = (watch::Sender::new(State::Open), Arc::default());
        Self { relay, state, batches, most_items: Arc::default() }
    }

    pub(crate) fn set(&self, state: State) {
        self.state.send_replace(state);
    }

    /// Returns the number of batches that were sent, also in vain, and the items of the largest one.
    pub(crate) fn batches(&self) -> (usize, usize) {
        (self.batches.load(Ordering::SeqCst), self.most_items.load(Ordering::SeqCst))
    }

    async fn pass(&self) -> Result<&InMemoryRelay, RelayError> {
        let state = *self.state.subscribe().wait_for(|state| *state != State::Held).await.unwrap();
        if state == State::Down { Err(RelayError::new("the way is down")) } else { Ok(&self.relay) }
    }
}

#[async_trait]
impl TurnRelay for Way {
    async fn begin(&self, run: &TurnRun) -> Result<Begun, RelayError> {
        let begun = self.pass().await?.begin(run).await;
        let answers = |state: &State| *state != State::BeginUnanswered;
        drop(self.state.subscribe().wait_for(answers).await.unwrap());
        begun
    }

    async fn release(&self, run: &TurnRun) -> Result<(), RelayError> {
        self.pass().await?.release(run).await
    }

    async fn append(&self, run: &TurnRun, batch: &RunBatch) -> Result<Appended, RelayError> {
        self.batches.fetch_add(1, Ordering::SeqCst);
        self.most_items.fetch_max(batch.items.len(), Ordering::SeqCst);
        drop(self.state.subscribe().wait_for(|state| *state != State::AppendHeld).await.unwrap());
        self.pass().await?.append(run, batch).await
    }

    async fn read(
        &self,
        conversation: &ConversationKey,
        turn: &TurnId,
        from: u64,
    ) -> Result<Option<RunPage>, RelayError> {
        let page = self.pass().await?.read(conversation, turn, from).await;
        let answers = |state: &State| *state != State::ReadUnanswered;
        drop(self.state.subscribe().wait_for(answers).await.unwrap());
        page
    }

    async fn running(&self, conversation: &ConversationKey) -> Result<Vec<TurnId>, RelayError> {
        self.pass().await?.running(conversation).await
    }

    async fn stop(&self, conversation: &ConversationKey, turn: &TurnId) -> Result<(), RelayError> {
        self.pass().await?.stop(conversation, turn).await
    }

    async fn forget(&self, conversation: &ConversationKey) -> Result<(), RelayError> {
        self.pass().await?.forget(conversation).await
    }
}
