use std::fmt;
use std::future::Future;
use std::sync::Arc;

use advisor_core::{Tool, ToolDefinition, ToolError, ToolInvocation, ToolOutput, async_trait};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde::de::DeserializeOwned;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

/// A tool made of a closure.
///
/// With the feature `typed-tools`, `FnTool::typed` and `FnTool::from_args` make its schema of a type; others are given
/// their definition.
///
/// # Example
/// ```
/// use serde_json::{Value, json};
/// use tool_call_advisor::{FnTool, Tool, ToolDefinition};
///
/// let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
/// let weather = FnTool::new(
///     ToolDefinition::new("weather", "Tells the weather in a city.", schema),
///     |arguments: Value| async move { Ok(format!("Sunny in {}", arguments["city"])) },
/// );
/// assert_eq!(weather.definition().name, "weather");
/// ```
pub struct FnTool {
    definition: ToolDefinition,
    run: Box<dyn Fn(ToolInvocation) -> BoxFuture<'static, Result<ToolOutput, ToolError>> + Send + Sync>,
}

impl FnTool {
    /// A tool that is given its arguments, as JSON or as any type that deserialises.
    ///
    /// Arguments that fit the schema but not the type are an error that the model reads; it names the place.
    pub fn new<A, O, F, Fut>(definition: ToolDefinition, run: F) -> Self
    where
        A: DeserializeOwned,
        O: Into<ToolOutput>,
        F: Fn(A) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, ToolError>> + Send + 'static,
    {
        Self::with_invocation(definition, move |invocation| {
            // The closure is called before its future is polled, so that no argument type must be `Send`.
            let running = invocation.parse().map(&run);
            async move { Ok(running?.await?.into()) }
        })
    }

    /// A tool that is given the whole invocation: the call, its key, the turn and where to report progress.
    pub fn with_invocation<F, Fut>(definition: ToolDefinition, run: F) -> Self
    where
        F: Fn(ToolInvocation) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
    {
        Self { definition, run: Box::new(move |invocation| run(invocation).boxed()) }
    }

    /// The same tool with its definition changed, such as to run alone or with a time of its own.
    ///
    /// # Example
    /// ```
    /// # use serde_json::{Value, json};
    /// # use tool_call_advisor::{Effect, FnTool, Tool, ToolDefinition};
    /// # let definition = ToolDefinition::new("charge", "Charges a card.", json!({"type": "object"}));
    /// # let charge = FnTool::new(definition, |_: Value| async { Ok("charged") });
    /// let charge = charge.map_definition(|definition| definition.with_effect(Effect::AtMostOnce).exclusive());
    /// assert!(charge.definition().exclusive);
    /// ```
    #[must_use]
    pub fn map_definition(self, change: impl FnOnce(ToolDefinition) -> ToolDefinition) -> Self {
        Self { definition: change(self.definition), ..self }
    }

    /// A tool that blocks its thread. It runs off the async threads, at most `limit` of its runs at a time.
    ///
    /// # Cancellation
    /// A blocked thread cannot be stopped: after a drop or a timeout the closure runs on to its end, keeps
    /// its place in the limit until then, and its result is thrown away. A run that has not begun never does.
    ///
    /// # Errors
    /// Outside a tokio runtime it answers with an error.
    pub fn blocking<O, F>(definition: ToolDefinition, limit: usize, run: F) -> Self
    where
        O: Into<ToolOutput>,
        F: Fn(ToolInvocation) -> Result<O, ToolError> + Send + Sync + 'static,
    {
        let run = Arc::new(move |invocation| run(invocation).map(Into::into));
        let places = Arc::new(Semaphore::new(limit.max(1)));
        Self::with_invocation(definition, move |invocation| {
            off_thread(Arc::clone(&run), Arc::clone(&places), invocation)
        })
    }
}

async fn off_thread<F>(
    run: Arc<F>,
    places: Arc<Semaphore>,
    invocation: ToolInvocation,
) -> Result<ToolOutput, ToolError>
where
    F: Fn(ToolInvocation) -> Result<ToolOutput, ToolError> + Send + Sync + 'static,
{
    let runtime = Handle::try_current()?;
    let place = places.acquire_owned().await?;
    let mut running = NotBegun(runtime.spawn_blocking(move || {
        let outcome = run(invocation);
        drop(place);
        outcome
    }));
    match (&mut running.0).await {
        Ok(outcome) => outcome,
        // Its panic goes on here and is caught where those of all tools are.
        Err(failed) => match failed.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(ToolError::new("not run: the runtime is shutting down")),
        },
    }
}

/// A blocking run that is called off when it is dropped before a thread took it.
struct NotBegun(JoinHandle<Result<ToolOutput, ToolError>>);

impl Drop for NotBegun {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[async_trait]
impl Tool for FnTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    async fn run(&self, invocation: ToolInvocation) -> Result<ToolOutput, ToolError> {
        (self.run)(invocation).await
    }
}

impl fmt::Debug for FnTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FnTool").field("definition", &self.definition).finish_non_exhaustive()
    }
}
