//! `FnTool` and `ClientSideTool`: a tool made from a closure, and one that the caller runs.

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

/// A tool made from a closure.
///
/// With the feature `typed-tools`, `FnTool::typed` derives its schema from a type. The other constructors take a
/// definition.
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
    /// Its definition. Change it to run the tool exclusively, with its own timeout, or with a declared effect.
    pub definition: ToolDefinition,
    run: Box<dyn Fn(ToolInvocation) -> BoxFuture<'static, Result<ToolOutput, ToolError>> + Send + Sync>,
}

impl FnTool {
    /// Creates a tool that receives its arguments, as JSON or as any type that deserialises.
    ///
    /// Arguments that fit the schema but not the type are an error result, which names the position.
    pub fn new<A, O, F, Fut>(definition: ToolDefinition, run: F) -> Self
    where
        A: DeserializeOwned,
        O: Into<ToolOutput>,
        F: Fn(A) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, ToolError>> + Send + 'static,
    {
        Self::with_invocation(definition, move |invocation| {
            // Calls the closure before the future is polled, so that argument types need not be `Send`.
            let running = invocation.parse().map(&run);
            async move { Ok(running?.await?.into()) }
        })
    }

    /// Creates a tool that receives the whole invocation: the call, its key, the turn and the progress reporter.
    pub fn with_invocation<F, Fut>(definition: ToolDefinition, run: F) -> Self
    where
        F: Fn(ToolInvocation) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
    {
        Self { definition, run: Box::new(move |invocation| run(invocation).boxed()) }
    }

    /// Creates a tool that blocks its thread. It runs off the async threads, at most `limit` runs at a time.
    ///
    /// # Cancellation
    /// A blocked thread cannot be stopped. After a drop or a timeout the closure runs to its end and counts
    /// towards `limit` until then; its result is discarded. A long run should ask
    /// [`ToolInvocation::is_cancelled`] from time to time. A run that has not started never does.
    ///
    /// # Errors
    /// Outside a tokio runtime the tool returns an error.
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
        // Resumes the panic, which is caught with those of all tools.
        Err(failed) => match failed.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(ToolError::new("not run: the runtime is shutting down")),
        },
    }
}

/// A blocking run that is cancelled if it is dropped before a thread takes it.
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

/// A tool that only the caller can run: its calls are client-side.
///
/// The turn ends with them ([`ChatResponse::open_calls`](advisor_core::ChatResponse::open_calls)), and the results are
/// part of the next turn's input. The loop runs the other calls of the same answer.
#[derive(Debug, Clone)]
pub struct ClientSideTool(ToolDefinition);

impl ClientSideTool {
    /// Creates a client-side tool with this definition.
    #[must_use]
    pub fn new(definition: ToolDefinition) -> Self {
        Self(ToolDefinition { client_side: true, ..definition })
    }
}

#[async_trait]
impl Tool for ClientSideTool {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    async fn run(&self, _invocation: ToolInvocation) -> Result<ToolOutput, ToolError> {
        Err(ToolError::new("not started: only the caller can run this tool"))
    }
}
