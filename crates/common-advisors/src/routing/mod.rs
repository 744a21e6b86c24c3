//! `RoutedModel`: orders the models for a request, and calls them by a `FallbackModel`. `RouteOrder`.

pub(crate) mod route;

mod health;
mod watched;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use advisor_core::{
    ChatModel, ChatRequest, ChunkStream, ConversationKey, Error, FallbackModel, Result, SchemaSupport,
    async_trait,
};
use tokio::time::Instant;

use self::health::Health;
use self::route::Route;
use self::watched::Watched;
use crate::recent::Recent;

/// A model that chooses one of several for each request, and calls the next one if that fails.
///
/// The order is, the first criterion first:
/// 1. the model that the request's options name; without it, the model that answered the conversation last, since its
///    provider has a cache of the prompt,
/// 2. models that have answered lately, before those that failed several times in a row and cool down,
/// 3. the [`RouteOrder`].
///
/// A model that answered a conversation last loses its place when it cools down, or when another one answers. Health, latency and the models of
/// conversations are kept in memory, and shared by clones. After a cool-down, one request tries the model. Until it has
/// ended, other requests go to the other models; they do not wait.
///
/// [`name`](ChatModel::name) and [`model_name`](ChatModel::model_name) return those of the first route. The answer names
/// the model that gave it, if its provider does. [`schema_support`](ChatModel::schema_support) returns the lowest of all
/// routes.
///
/// # Ordering
/// All attempts are of one round, as with [`FallbackModel`], which makes them.
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
/// use common_advisors::{Money, Price, Route, RouteOrder, RoutedModel};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> advisor_core::Result<()> {
/// # let large = ScriptedModel::new([Answer::from_text("A long answer.")]);
/// # let small = ScriptedModel::new([Answer::from_text("Hello.")]);
/// let (cheap, dear) = (Money::from_cents(15), Money::from_cents(250));
/// let model = RoutedModel::new([
///     Route::new(large).with_price(Price::per_million(dear, dear)),
///     Route::new(small)
///         .with_price(Price::per_million(cheap, cheap))
///         .with_condition(|request| request.messages.len() < 20 && request.tools.is_empty()),
/// ])?
/// .with_order(RouteOrder::Cost);
/// let client = ChatClient::builder(model).build()?;
/// assert_eq!(client.prompt().user("Hi").call().await?.text(), "Hello.");
/// # Ok(()) }
/// ```
#[must_use]
#[derive(Clone)]
pub struct RoutedModel {
    routes: Arc<[Route]>,
    shared: Arc<Shared>,
    after_output: AfterOutput,
}

/// The order of models that are equal otherwise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RouteOrder {
    /// The order in which they were given.
    #[default]
    AsGiven,
    /// The lowest price first: that of a million tokens of requests and a million of answers.
    Cost,
    /// The shortest time to the first chunk first, as an average that moves with each answer. A model that was not
    /// measured in the last minute comes before all others. Each chunk costs one call more.
    Latency,
}

/// The policy for a model that fails after a part of its answer was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AfterOutput {
    Fail,
    Restart,
}

/// The settings and the state that clones share.
struct Shared {
    order: RouteOrder,
    most_failures: u32,
    cool_down: Duration,
    most_conversations: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    health: Vec<Health>,
    sticky: Recent<ConversationKey, usize>,
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
        let shared = Shared {
            order: RouteOrder::AsGiven,
            most_failures: 3,
            cool_down: Duration::from_secs(30),
            most_conversations: 10_000,
            state: Mutex::new(State {
                health: vec![Health::default(); routes.len()],
                sticky: Recent::default(),
            }),
        };
        Ok(Self { routes, shared: Arc::new(shared), after_output: AfterOutput::Fail })
    }

    /// Sets the order of the models.
    pub fn with_order(self, order: RouteOrder) -> Self {
        self.with_shared(|shared| shared.order = order)
    }

    /// Sets the number of failures in a row after which a model is used last, and for how long. The first answer ends it.
    /// A server that asks for a delay is used last at once, for at least that time.
    pub fn with_cool_down(self, failures: u32, cool_down: Duration) -> Self {
        self.with_shared(|shared| (shared.most_failures, shared.cool_down) = (failures, cool_down))
    }

    /// Sets the number of conversations whose last model is known. With 0, each request is routed by itself.
    pub fn with_sticky_conversations(self, most: usize) -> Self {
        self.with_shared(|shared| shared.most_conversations = most)
    }

    /// Allows the next model to start again after a part of the answer was shown; see
    /// [`FallbackModel::with_restart_after_output`].
    pub fn with_restart_after_output(self) -> Self {
        Self { after_output: AfterOutput::Restart, ..self }
    }

    /// Changes the settings. Clones made before keep theirs, and no longer share the state.
    fn with_shared(self, change: impl FnOnce(&mut Shared)) -> Self {
        let mut shared = Shared {
            state: Mutex::new(State {
                health: vec![Health::default(); self.routes.len()],
                sticky: Recent::default(),
            }),
            ..*self.shared
        };
        change(&mut shared);
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
        if fitting.is_empty() {
            return Err(Error::configuration("no route takes the request; give one of them no condition"));
        }
        let named = self.named_in(request, &fitting)?;
        let (state, now) = (self.shared.lock(), Instant::now());
        let health = |place: usize| state.health.get(place).copied().unwrap_or_default();
        let sticky = || {
            state
                .sticky
                .of(request.conversation.as_ref()?)
                .copied()
                .filter(|place| !health(*place).is_cooling(now))
        };
        let first = named.or_else(sticky);
        let rank = |place: usize| match self.shared.order {
            RouteOrder::AsGiven => 0.0,
            #[expect(clippy::cast_precision_loss, reason = "prices are compared, not summed")]
            RouteOrder::Cost => {
                self.routes.get(place).map_or(f64::MAX, |route| route.cost().millionths() as f64)
            }
            RouteOrder::Latency => health(place).latency(now),
        };
        let key = |place: usize| (Some(place) != first, health(place).is_cooling(now));
        fitting.sort_by(|one, other| key(*one).cmp(&key(*other)).then(rank(*one).total_cmp(&rank(*other))));
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
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with_health(&self, route: usize, change: impl FnOnce(&mut Health)) {
        if let Some(health) = self.lock().health.get_mut(route) {
            change(health);
        }
    }

    fn note_failure(&self, route: usize, error: &Error) {
        self.with_health(route, |health| {
            health.note_failure(self.most_failures, self.cool_down, error.retry_after());
        });
    }

    fn note_answer(&self, route: usize, conversation: Option<&ConversationKey>) {
        self.with_health(route, Health::note_answer);
        if let Some(conversation) = conversation {
            self.lock().sticky.note(conversation, route, self.most_conversations);
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
            self.shared.with_health(*first, |health| health.note_trial(self.shared.cool_down));
        }
        let watched = |place: usize| {
            let model = Arc::clone(&self.routes.get(place)?.model);
            Some(Watched {
                shared: Arc::clone(&self.shared),
                route: place,
                model,
                conversation: conversation.clone(),
            })
        };
        let mut models = order.into_iter().filter_map(watched);
        let Some(first) = models.next() else {
            return Err(Error::configuration("no route takes the request"));
        };
        let model = models.fold(FallbackModel::new(first), FallbackModel::with_fallback);
        match self.after_output {
            AfterOutput::Fail => model.stream(request).await,
            AfterOutput::Restart => model.with_restart_after_output().stream(request).await,
        }
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
        f.debug_struct("RoutedModel")
            .field("routes", &self.routes)
            .field("order", &self.shared.order)
            .finish_non_exhaustive()
    }
}
