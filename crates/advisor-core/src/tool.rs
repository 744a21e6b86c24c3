use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use message_aggregator::{Part, Text, ToolCall};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::{CallKey, Effect, Turn};

/// Something the model can ask for.
///
/// # Ordering
/// `run` starts after everything inside the tool loop is done with the answer that asked for it, so
/// that answer is remembered already. Calls of one answer run at the same time, up to the loop's bound,
/// unless the definition says exclusive.
///
/// # Cancellation
/// The future is dropped when the turn is dropped, cancelled or out of time; it is not polled again. What may become
/// of the call then, its [`Effect`] says.
///
/// # Errors
/// A [`ToolError`] is what the model reads instead of a result; the turn goes on. A panic is caught
/// and becomes such an error.
///
/// # Example
/// ```
/// use advisor_core::{Tool, ToolDefinition, ToolError, ToolInvocation, ToolOutput, async_trait};
/// use serde_json::json;
///
/// struct Dice(ToolDefinition);
///
/// #[async_trait]
/// impl Tool for Dice {
///     fn definition(&self) -> &ToolDefinition {
///         &self.0
///     }
///     async fn run(&self, invocation: ToolInvocation) -> Result<ToolOutput, ToolError> {
///         let sides = invocation.arguments["sides"].as_u64().ok_or_else(|| ToolError::new("`sides` must be a number"))?;
///         Ok(format!("{}", sides / 2 + 1).into())
///     }
/// }
///
/// let schema = json!({"type": "object", "properties": {"sides": {"type": "integer"}}, "required": ["sides"]});
/// let dice = Dice(ToolDefinition::new("roll", "Rolls one die.", schema));
/// assert_eq!(dice.definition().name, "roll");
/// ```
#[async_trait]
pub trait Tool: Send + Sync + 'static {
    /// What the model is told about the tool, and how the loop is to treat it. It is the same each time: what was written of it once
    /// is sent again.
    fn definition(&self) -> &ToolDefinition;

    /// Runs the tool once.
    async fn run(&self, invocation: ToolInvocation) -> Result<ToolOutput, ToolError>;
}

/// What the model is told about a tool, and how the loop is to treat it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolDefinition {
    /// The name the model calls it by: letters, digits, `_` and `-`, at most 64.
    pub name: Text,
    /// What it does and when to use it, for the model.
    pub description: Text,
    /// The JSON schema of its arguments, an object.
    pub parameters: Value,
    /// Its result is the answer to the user; the model is not asked again.
    pub return_direct: bool,
    /// It must not run while other tools of the same answer run.
    pub exclusive: bool,
    /// Its calls are not run here but handed to the caller, who answers them in the next turn's input.
    pub by_caller: bool,
    /// The longest it may take; absent, the loop's own bound.
    pub timeout: Option<Duration>,
    /// What running it does to the world, and so whether it may run again; absent, it is not said, and it never is.
    pub effect: Option<Effect>,
}

impl ToolDefinition {
    /// A tool whose result goes back to the model and that may run beside others.
    pub fn new(name: impl Into<Text>, description: impl Into<Text>, parameters: Value) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            parameters,
            return_direct: false,
            exclusive: false,
            by_caller: false,
            timeout: None,
            effect: None,
        }
    }

    /// The same tool, whose result is the answer to the user.
    #[must_use]
    pub fn return_direct(self) -> Self {
        Self { return_direct: true, ..self }
    }

    /// The same tool, which must run alone.
    #[must_use]
    pub fn exclusive(self) -> Self {
        Self { exclusive: true, ..self }
    }

    /// The same tool, whose calls are handed to the caller.
    #[must_use]
    pub fn by_caller(self) -> Self {
        Self { by_caller: true, ..self }
    }

    /// The same tool with a bound on its time.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self }
    }

    /// The same tool, with what running it does to the world.
    #[must_use]
    pub fn with_effect(self, effect: Effect) -> Self {
        Self { effect: Some(effect), ..self }
    }
}

/// One run of a tool.
#[derive(Debug)]
#[non_exhaustive]
pub struct ToolInvocation {
    /// The call as the model wrote it.
    pub call: ToolCall,
    /// Its arguments, parsed and checked against the tool's schema.
    pub arguments: Value,
    /// Names this call for ever: the same call of the same turn has the same key, also when it is repeated. Its text
    /// is the idempotency key for systems that the tool changes.
    pub key: CallKey,
    /// Where the tool tells how far it is.
    pub progress: Progress,
    /// The turn the call belongs to.
    pub turn: Arc<Turn>,
}

impl ToolInvocation {
    /// A run of `call`.
    #[must_use]
    pub fn new(call: ToolCall, arguments: Value, key: CallKey, progress: Progress, turn: Arc<Turn>) -> Self {
        Self { call, arguments, key, progress, turn }
    }
}

/// What a tool answers: one or more parts.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ToolOutput {
    /// What the model is told, and the user if the tool returns directly.
    pub parts: Vec<Part>,
}

impl From<Part> for ToolOutput {
    fn from(part: Part) -> Self {
        Self { parts: vec![part] }
    }
}

impl From<&str> for ToolOutput {
    fn from(text: &str) -> Self {
        Part::from(text).into()
    }
}

impl From<String> for ToolOutput {
    fn from(text: String) -> Self {
        Part::from(text).into()
    }
}

impl From<Value> for ToolOutput {
    fn from(value: Value) -> Self {
        Part::from(value).into()
    }
}

impl From<Vec<Part>> for ToolOutput {
    fn from(parts: Vec<Part>) -> Self {
        Self { parts }
    }
}

/// Why a tool did not do what it was asked; the model reads it.
///
/// Any error converts into it with `?`; its text and the texts of its sources are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolError(Text);

impl ToolError {
    /// An error with this text.
    pub fn new(text: impl Into<Text>) -> Self {
        Self(text.into())
    }

    /// What the model reads.
    #[must_use]
    pub fn text(&self) -> &Text {
        &self.0
    }
}

// Not an `Error` itself: that is what lets every error convert into it.
impl<E: std::error::Error> From<E> for ToolError {
    fn from(error: E) -> Self {
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            text.push_str(": ");
            text.push_str(&cause.to_string());
            source = cause.source();
        }
        Self(text.into())
    }
}

/// Where a running tool tells how far it is. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Progress(Option<mpsc::Sender<Part>>);

impl Progress {
    /// A progress that nobody listens to.
    #[must_use]
    pub fn ignored() -> Self {
        Self(None)
    }

    /// A progress and what it tells; at most `capacity` reports wait to be read.
    #[must_use]
    pub fn channel(capacity: usize) -> (Self, mpsc::Receiver<Part>) {
        let (sender, receiver) = mpsc::channel(capacity.max(1));
        (Self(Some(sender)), receiver)
    }

    /// Tells how far the tool is, and waits until there is room for it. Without a listener it is lost.
    pub async fn report(&self, part: impl Into<Part> + Send) {
        if let Some(sender) = &self.0 {
            // The listener goes first when a turn is dropped; the tool is dropped right after it.
            let _ = sender.send(part.into()).await;
        }
    }
}
