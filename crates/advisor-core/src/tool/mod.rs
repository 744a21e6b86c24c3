pub(crate) mod invocation;
pub(crate) mod leniency;
pub(crate) mod offered;
pub(crate) mod output;
pub(crate) mod set;
pub(crate) mod validate;

use std::time::Duration;

use async_trait::async_trait;
use message_aggregator::Text;
use serde_json::Value;

use crate::{Effect, Leniency, ToolError, ToolInvocation, ToolOutput};

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
    /// The name the model calls it by: 1 to 64 letters, digits, `_`, `-` and `.`. Others are refused ([`Self::validate`]).
    pub name: Text,
    /// What it does and when to use it, for the model.
    pub description: Text,
    /// The JSON schema of its arguments, whose root says `"type": "object"`; `null` takes any object.
    pub parameters: Value,
    /// Its result is the answer to the user; the model is not asked again.
    pub return_direct: bool,
    /// It must not run while other tools of the same answer run.
    pub exclusive: bool,
    /// Its calls are not run here but handed to the caller, who answers them in the next turn's input.
    pub client_side: bool,
    /// The longest it may take; absent, the loop's own bound.
    pub timeout: Option<Duration>,
    /// What arguments it is given that do not fit its schema as they are; absent, the loop's own setting.
    pub leniency: Option<Leniency>,
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
            client_side: false,
            timeout: None,
            leniency: None,
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
    pub fn client_side(self) -> Self {
        Self { client_side: true, ..self }
    }

    /// The same tool with a bound on its time.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self }
    }

    /// The same tool with its own word on arguments that do not fit its schema as they are.
    #[must_use]
    pub fn with_leniency(self, leniency: Leniency) -> Self {
        Self { leniency: Some(leniency), ..self }
    }

    /// The same tool, with what running it does to the world.
    #[must_use]
    pub fn with_effect(self, effect: Effect) -> Self {
        Self { effect: Some(effect), ..self }
    }
}
