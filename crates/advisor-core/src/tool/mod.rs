//! `Tool`, which a model may call, and `ToolDefinition`, which describes it, with the checks of names and schema roots.

mod offered;
pub(crate) mod run;
pub(crate) mod set;

use std::time::Duration;

use async_trait::async_trait;
use message_aggregator::Text;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{Effect, Error, Result, ToolError, ToolInvocation, ToolOutput};

/// A function that the model can call.
///
/// # Ordering
/// `run` starts after all advisors inside the tool loop have finished with the answer that made the call, so that
/// answer is already stored. Calls of one answer run concurrently, up to the loop's bound, unless the definition
/// is exclusive.
///
/// # Cancellation
/// The future is dropped when the turn is dropped or cancelled or its time is up; it is not polled again. The
/// tool's [`Effect`] defines how such a call is treated.
///
/// # Errors
/// The model reads a [`ToolError`] instead of a result, and the turn continues. A panic is caught and becomes such
/// an error.
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
    /// Returns the tool's description for the model and its settings for the loop. It must not change: its
    /// serialised form is cached.
    fn definition(&self) -> &ToolDefinition;

    /// Runs the tool once.
    async fn run(&self, invocation: ToolInvocation) -> Result<ToolOutput, ToolError>;
}

/// Description of a tool for the model, and its settings for the loop.
///
/// # Example
/// ```
/// use advisor_core::{Effect, ToolDefinition};
/// use serde_json::json;
///
/// let charge = ToolDefinition {
///     effect: Some(Effect::AtMostOnce),
///     exclusive: true,
///     ..ToolDefinition::new("charge", "Charges the customer's card.", json!({"type": "object"}))
/// };
/// assert_eq!(charge.timeout, None);
/// ```
#[must_use]
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDefinition {
    /// The tool's name: 1 to 64 letters, digits, `_`, `-` and `.`. Others are refused ([`Self::validate`]).
    pub name: Text,
    /// The tool's purpose and when to use it, for the model.
    pub description: Text,
    /// The JSON schema of its arguments, with `"type": "object"` at its root; `null` accepts any object.
    pub parameters: Value,
    /// Whether its result is the answer to the user; the model is not called again.
    pub return_direct: bool,
    /// Whether it must not run while other tools of the same answer run.
    pub exclusive: bool,
    /// Whether its calls are client-side: the turn ends with them, and the caller answers them in the next
    /// turn's input.
    pub client_side: bool,
    /// The other program that names it, such as an MCP server, by a text that no other one has; `None`: this program. A
    /// foreign tool gives way to a tool of this program with its name.
    pub origin: Option<Text>,
    /// The maximum duration of a run; `None` uses the loop's setting.
    pub timeout: Option<Duration>,
    /// The treatment of arguments that do not fit its schema; `None` uses the loop's setting.
    pub leniency: Option<Leniency>,
    /// The side effects of a run, which decide whether it may be repeated. `None`: unknown, never repeated.
    pub effect: Option<Effect>,
}

impl ToolDefinition {
    /// Creates a tool whose result goes back to the model and that may run beside others.
    pub fn new(name: impl Into<Text>, description: impl Into<Text>, parameters: Value) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            parameters,
            return_direct: false,
            exclusive: false,
            client_side: false,
            origin: None,
            timeout: None,
            leniency: None,
            effect: None,
        }
    }

    /// Returns a digest of what a model and a person know of the tool: its name, its description, the schema of its
    /// arguments and, for a foreign one, its origin. The order of the members of the schema does not count. An approval is
    /// bound to it.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut hash = Sha256::new();
        for part in [self.name.as_str(), self.description.as_str()] {
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        }
        hash_json(&mut hash, &self.parameters);
        if let Some(origin) = &self.origin {
            hash.update([b'@']);
            hash.update(origin.as_str());
        }
        hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Adds a JSON value to a hash, with the members of objects in the order of their names.
fn hash_json(hash: &mut Sha256, value: &Value) {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| *name);
            hash.update([b'{']);
            hash.update(members.len().to_le_bytes());
            for (name, member) in members {
                hash.update(name.len().to_le_bytes());
                hash.update(name);
                hash_json(hash, member);
            }
        }
        Value::Array(items) => {
            hash.update([b'[']);
            hash.update(items.len().to_le_bytes());
            items.iter().for_each(|item| hash_json(hash, item));
        }
        // The text of any other value ends where it says.
        leaf => {
            let text = leaf.to_string();
            hash.update([b'"']);
            hash.update(text.len().to_le_bytes());
            hash.update(text);
        }
    }
}

/// Treatment of arguments that do not fit their schema but have only one possible meaning.
///
/// | the model writes | where the schema wants | [`Strict`] | [`NullIsAbsent`] | [`Lenient`] |
/// | --- | --- | --- | --- | --- |
/// | `"unit": null` | a text, and does not require `unit` | refused | left out | left out |
/// | `"days": "3"` | an integer | refused | refused | `3` |
/// | `"share": "0.5"` | a number | refused | refused | `0.5` |
/// | `"exact": "true"` | a boolean | refused | refused | `true` |
/// | anything else that does not fit | | refused | refused | refused |
///
/// [`Strict`]: Self::Strict
/// [`NullIsAbsent`]: Self::NullIsAbsent
/// [`Lenient`]: Self::Lenient
///
/// A refused call is answered with an error that names the position. Numbers must be as JSON writes them: `"03"`,
/// `" 3"` and `"3.0"` for an integer are refused, as is `"True"`. Converted arguments must fit the whole schema.
/// Only the tool sees the conversion: the call is stored and sent as the model wrote it. Nothing inside a tuple, such as
/// `prefixItems`, is corrected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Leniency {
    /// The schema decides.
    Strict,
    /// `null` for an optional property counts as absent.
    #[default]
    NullIsAbsent,
    /// Like `NullIsAbsent`; also converts texts that are exactly the number or boolean of the schema. Not the
    /// default: a model that reads the error learns to write numbers.
    Lenient,
}

/// The longest name that OpenAI accepts, as did Anthropic before it allowed 128.
const LONGEST_NAME: usize = 64;

impl ToolDefinition {
    /// Checks the common rules of all servers: the name, and an object as the root of the schema.
    ///
    /// A name has 1 to 64 letters, digits, `_`, `-` and `.`. OpenAI refuses others by the pattern
    /// `^[a-zA-Z0-9_-]+$`, Anthropic by `^[a-zA-Z0-9_-]{1,64}$`. A dot is common in names from other sources;
    /// providers encode it for their server. A schema is absent (`null`), or has `"type": "object"` at its root.
    /// The tool loop checks the rest of the schema.
    ///
    /// # Errors
    /// Of kind [`Configuration`](crate::ErrorKind::Configuration). The text names the tool and the remedy.
    ///
    /// # Example
    /// ```
    /// use advisor_core::ToolDefinition;
    /// use serde_json::json;
    ///
    /// let spaced = ToolDefinition::new("search docs", "Searches.", json!({"type": "object"}));
    /// assert!(spaced.validate().unwrap_err().to_string().contains("call it `search_docs`"));
    /// ```
    pub fn validate(&self) -> Result<()> {
        validate_name(&self.name)?;
        if self.parameters.is_null() || self.parameters.get("type").is_some_and(|kind| kind == "object") {
            return Ok(());
        }
        Err(Error::configuration(format!(
            "the tool `{}` needs an object schema: write `\"type\": \"object\"` at its root, and its arguments as `properties`",
            self.name
        )))
    }
}

fn validate_name(name: &str) -> Result<()> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if name.is_empty() {
        return Err(Error::configuration(
            "a tool has no name: give it 1 to 64 letters, digits, `_`, `-` or `.`",
        ));
    }
    // A name may come from an untrusted source and must not control a terminal.
    let shown = name.escape_debug();
    let length = name.chars().count();
    if length > LONGEST_NAME {
        return Err(Error::configuration(format!(
            "the name of the tool `{shown}` has {length} characters; servers take at most {LONGEST_NAME}"
        )));
    }
    if name.chars().all(fits) {
        return Ok(());
    }
    let fitting: String = name.chars().map(|c| if fits(c) { c } else { '_' }).collect();
    Err(Error::configuration(format!(
        "the name of the tool `{shown}` has characters that servers refuse; they take letters, digits, `_`, `-` and `.`: call it `{fitting}`"
    )))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn digest_names_what_a_model_knows_of_a_tool() {
        let schema = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        let one = schema(r#"{"type":"object","properties":{"a":{"type":"integer"},"b":[1,"2"]}}"#);
        let of =
            |name: &str, text: &str, schema: &Value| ToolDefinition::new(name, text, schema.clone()).digest();
        let known = of("pay", "Pays.", &one);
        let moved = schema(r#"{"properties":{"b":[1,"2"],"a":{"type":"integer"}},"type":"object"}"#);
        assert_eq!(of("pay", "Pays.", &moved), known);
        let timeout = Some(Duration::from_secs(9));
        let slow = ToolDefinition { timeout, ..ToolDefinition::new("pay", "Pays.", one.clone()) };
        assert_eq!(slow.digest(), known, "a setting of the loop");
        let mut others = std::collections::HashSet::from([known]);
        for (name, text, schema) in [
            ("pays", "Pays.", one.clone()),
            ("pay", "sPays.", one.clone()),
            ("pay", "Pays!", one.clone()),
            ("pay", "Pays.", schema(r#"{"type":"object","properties":{"a":{"type":"string"},"b":[1,"2"]}}"#)),
            ("pay", "Pays.", schema(r#"{"type":"object","properties":{"a":{"type":"integer"},"b":[1,2]}}"#)),
            (
                "pay",
                "Pays.",
                schema(r#"{"type":"object","properties":{"a":{"type":"integer"},"b":["1,2"]}}"#),
            ),
            ("pay", "Pays.", json!(null)),
        ] {
            assert!(others.insert(of(name, text, &schema)), "{name} {text} {schema}");
        }
        for origin in ["a", "b", ""] {
            let origin = Some(origin.into());
            let foreign = ToolDefinition { origin, ..ToolDefinition::new("pay", "Pays.", one.clone()) };
            assert!(others.insert(foreign.digest()), "of {:?}", foreign.origin);
        }
    }
}
