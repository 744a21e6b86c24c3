//! `RoutedModel`: orders its `Route`s for a request, and tries them. `Health` of a model.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use advisor_core::{
    Attempts, ChatModel, ChatRequest, ChunkStream, ConversationKey, Error, ErrorKind, Result, SchemaSupport,
    async_trait,
};
use futures::TryStreamExt;
use tokio::time::Instant;

use crate::recent::Recent;

/// The number of conversations whose last model is known.
const MOST_CONVERSATIONS: usize = 10_000;

/// A model that chooses one of several for each request, and calls the next one if that fails.
///
/// The order is, the first criterion first:
/// 1. the model that the request's options name; without it, the model that answered the conversation last, since its
///    provider has a cache of the prompt,
/// 2. models that have answered lately, before those that failed several times in a row and cool down,
/// 3. the order in which they were given, such as the cheapest first.
///
/// A model that answered a conversation last loses its place when it cools down, or when another one answers. Health and the models of
/// conversations are kept in memory, and shared by clones. After a cool-down, one request tries the model. Until it has
/// ended, other requests go to the other models; they do not wait.
///
/// [`name`](ChatModel::name) and [`model_name`](ChatModel::model_name) return those of the first route. The answer names
/// the model that gave it, if its provider does. [`schema_support`](ChatModel::schema_support) returns the lowest of all
/// routes.
///
/// # Ordering
/// All attempts are of one round, as with [`FallbackModel`](advisor_core::FallbackModel).
///
/// # Cancellation
/// Dropping the future or the stream stops the running call. It counts neither as an answer nor as a failure.
///
/// # Errors
/// Those of the last model. Of kind [`Configuration`](advisor_core::ErrorKind::Configuration) if no route takes the
/// request, or if the options name a model that no route has.
///
/// # Example
/// ```
/// use advisor_core::ChatClient;
/// use advisor_testkit::{Answer, ScriptedModel};
/// use common_advisors::{Route, RoutedModel};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> advisor_core::Result<()> {
/// # let large = ScriptedModel::new([Answer::from_text("A long answer.")]);
/// # let small = ScriptedModel::new([Answer::from_text("Hello.")]);
/// let model = RoutedModel::new([
///     Route::new(small).with_condition(|request| request.messages.len() < 20 && request.tools.is_empty()),
///     Route::new(large),
/// ])?;
/// let client = ChatClient::builder(model).build()?;
/// assert_eq!(client.prompt().user("Hi").call().await?.text(), "Hello.");
/// # Ok(()) }
/// ```
#[must_use]
#[derive(Clone)]
pub struct RoutedModel {
    routes: Arc<[Route]>,
    shared: Arc<Shared>,
}

type Condition = Arc<dyn Fn(&ChatRequest) -> bool + Send + Sync>;

/// A model among those of a [`RoutedModel`], with the condition on which it is chosen.
#[must_use]
#[derive(Clone)]
pub struct Route {
    model: Arc<dyn ChatModel>,
    condition: Option<Condition>,
}

impl Route {
    /// Creates a route to a model, for all requests.
    pub fn new(model: impl ChatModel) -> Self {
        Self { model: Arc::new(model), condition: None }
    }

    /// Uses the route only for requests for which `condition` returns true, such as those with few messages, or those of
    /// some tenants.
    pub fn with_condition(self, condition: impl Fn(&ChatRequest) -> bool + Send + Sync + 'static) -> Self {
        Self { condition: Some(Arc::new(condition)), ..self }
    }

    fn takes(&self, request: &ChatRequest) -> bool {
        self.condition.as_ref().is_none_or(|condition| condition(request))
    }
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let model = self.model.model_name().unwrap_or_else(|| self.model.name());
        f.debug_struct("Route").field("model", &model).finish_non_exhaustive()
    }
}

/// The settings and the state that clones share.
struct Shared {
    most_failures: u32,
    cool_down: Duration,
    state: Mutex<State>,
}

struct State {
    /// By route.
    health: Vec<Health>,
    sticky: Recent,
}

/// How a model has answered lately.
#[derive(Debug, Clone, Copy, Default)]
struct Health {
    /// The failures since the last answer.
    failures: u32,
    /// Until when the model is used last.
    cooling: Option<Instant>,
}

impl RoutedModel {
    /// Creates a model over these routes, in the order given. A model cools down for 30 seconds after 3 failures in a
    /// row. The models of 10,000 conversations are known.
    ///
    /// # Errors
    /// Without a route.
    pub fn new(routes: impl IntoIterator<Item = Route>) -> Result<Self> {
        let routes: Arc<[Route]> = routes.into_iter().collect();
        if routes.is_empty() {
            return Err(Error::configuration("a routed model needs a route; give it one or more models"));
        }
        let shared = Shared::new(routes.len(), 3, Duration::from_secs(30));
        Ok(Self { routes, shared: Arc::new(shared) })
    }

    /// Sets the number of failures in a row after which a model is used last, and for how long. The first answer ends it.
    /// A server that asks for a delay is used last at once, for at least that time. Clones made before keep their
    /// settings, and no longer share the state.
    pub fn with_cool_down(self, failures: u32, cool_down: Duration) -> Self {
        let shared = Shared::new(self.routes.len(), failures, cool_down);
        Self { shared: Arc::new(shared), ..self }
    }

    /// Returns the places of the routes for a request, in the order in which they are called.
    fn order_for(&self, request: &ChatRequest) -> Result<Vec<usize>> {
        let mut fitting: Vec<_> = self
            .routes
            .iter()
            .enumerate()
            .filter(|(_, route)| route.takes(request))
            .map(|(place, _)| place)
            .collect();
        let named = self.named_in(request, &fitting)?;
        let (state, now) = (self.shared.lock(), Instant::now());
        let health = |place: usize| state.health.get(place).copied().unwrap_or_default();
        let sticky = || {
            state.sticky.of(request.conversation.as_ref()?).filter(|place| !health(*place).is_cooling(now))
        };
        let first = named.or_else(sticky);
        fitting.sort_by_key(|place| (Some(*place) != first, health(*place).is_cooling(now)));
        Ok(fitting)
    }

    /// Returns the route of the model that the options name.
    fn named_in(&self, request: &ChatRequest, fitting: &[usize]) -> Result<Option<usize>> {
        let Some(name) = &request.options.model else { return Ok(None) };
        let is_named = |place: &&usize| {
            self.routes
                .get(**place)
                .and_then(|route| route.model.model_name())
                .is_some_and(|own| *own == **name)
        };
        let named = fitting.iter().find(is_named).copied();
        named.map(Some).ok_or_else(|| {
            Error::configuration(format!("no route for the request has the model `{}`", name.escape_debug()))
        })
    }
}

impl Shared {
    fn new(routes: usize, most_failures: u32, cool_down: Duration) -> Self {
        let state = State { health: vec![Health::default(); routes], sticky: Recent::default() };
        Self { most_failures, cool_down, state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with_health(&self, route: usize, change: impl FnOnce(&mut Health)) {
        if let Some(health) = self.lock().health.get_mut(route) {
            change(health);
        }
    }

    fn note_failure(&self, route: usize, error: &Error) {
        if !concerns_the_server(error) {
            return;
        }
        // The server may have asked for a delay.
        let delay = error.retry_after();
        self.with_health(route, |health| {
            health.failures = health.failures.saturating_add(1);
            if delay.is_some() || health.failures >= self.most_failures {
                health.cool(self.cool_down.max(delay.unwrap_or_default()));
            }
        });
    }

    /// Begins another cool-down, if one has ended: this request tries the model, and others go elsewhere.
    fn note_trial(&self, route: usize) {
        self.with_health(route, |health| {
            if health.cooling.is_some() {
                health.cool(self.cool_down);
            }
        });
    }

    fn note_answer(&self, route: usize, conversation: Option<&ConversationKey>) {
        self.with_health(route, |health| *health = Health::default());
        if let Some(conversation) = conversation {
            self.lock().sticky.note(conversation, route, MOST_CONVERSATIONS);
        }
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl ChatModel for RoutedModel {
    async fn stream(&self, mut request: ChatRequest) -> Result<ChunkStream> {
        let order = self.order_for(&request)?;
        // A name is for one turn. The conversation stays where it was.
        let named = request.options.model.take().is_some();
        let conversation = request.conversation.clone().filter(|_| !named);
        if let Some(first) = order.first() {
            self.shared.note_trial(*first);
        }
        let mut tries = Tries { model: self.clone(), request, conversation, left: order.into() };
        let none = || Err(Error::configuration("no route takes the request; give one of them no condition"));
        let first = tries.ask_next(None).await.unwrap_or_else(none);
        ChunkStream::from_attempts(first, tries).await
    }

    fn name(&self) -> &str {
        self.routes.first().map_or("routed", |route| route.model.name())
    }

    fn model_name(&self) -> Option<&str> {
        self.routes.first().and_then(|route| route.model.model_name())
    }

    fn schema_support(&self) -> SchemaSupport {
        self.routes.iter().map(|route| route.model.schema_support()).min().unwrap_or_default()
    }
}

impl fmt::Debug for RoutedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RoutedModel").field("routes", &self.routes).finish_non_exhaustive()
    }
}

impl Health {
    fn cool(&mut self, time: Duration) {
        // A time beyond the clock's range never ends; a year stands for it.
        let far = || Instant::now() + Duration::from_secs(365 * 24 * 60 * 60);
        self.cooling = Some(Instant::now().checked_add(time).unwrap_or_else(far));
    }

    fn is_cooling(&self, now: Instant) -> bool {
        self.cooling.is_some_and(|end| now < end)
    }
}

/// The attempts at an answer, one for each route.
struct Tries {
    model: RoutedModel,
    request: ChatRequest,
    /// The conversation that stays with the model that answers.
    conversation: Option<ConversationKey>,
    left: VecDeque<usize>,
}

impl Tries {
    /// Asks the model of the next route, whose answer or failure is noted. `failed` is the error of the one before.
    async fn ask_next(&mut self, failed: Option<&Error>) -> Option<Result<ChunkStream>> {
        let place = self.left.pop_front()?;
        let model = &self.model.routes.get(place)?.model;
        if let Some(error) = failed {
            tracing::info!(error = ?error.kind(), model = model.name(), "a model failed; asking the next one");
        }
        let opened = model.stream(self.request.clone()).await;
        let (shared, conversation) = (Arc::clone(&self.model.shared), self.conversation.clone());
        let failing = Arc::clone(&shared);
        let note_failure = move |error: &Error| failing.note_failure(place, error);
        Some(opened.inspect_err(&note_failure).map(|stream| {
            ChunkStream::new(stream.inspect_err(note_failure)).on_completed(move |response| async move {
                shared.note_answer(place, conversation.as_ref());
                Ok(response)
            })
        }))
    }
}

#[async_trait]
impl Attempts for Tries {
    fn can_follow(&self, error: &Error) -> bool {
        let concerns_the_model = concerns_the_server(error) || error.kind() == ErrorKind::ContextOverflow;
        concerns_the_model && !self.left.is_empty()
    }

    async fn open_next(&mut self, mut error: Error) -> Result<ChunkStream> {
        while self.can_follow(&error)
            && let Some(next) = self.ask_next(Some(&error)).await
        {
            match next {
                Ok(stream) => return Ok(stream),
                Err(failed) => error = failed,
            }
        }
        Err(error)
    }
}

/// Checks whether other requests to the same model are likely to fail, too.
fn concerns_the_server(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::RateLimited { .. }
            | ErrorKind::Authentication
            | ErrorKind::NotFound
            | ErrorKind::Provider { .. }
            | ErrorKind::Connection
            | ErrorKind::Timeout
            | ErrorKind::Truncated
            | ErrorKind::Protocol { .. }
    )
}
