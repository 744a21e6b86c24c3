//! One run of a tool: `ToolInvocation` with its `Progress`, `ToolOutput` and `ToolError`.

use std::sync::Arc;

use message_aggregator::{Part, Text, ToolCall};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::{Path, Segment};
use tokio::sync::mpsc;

use crate::{CallKey, ConversationKey, Turn, text_with_sources};

/// One run of a tool.
#[derive(Debug)]
pub struct ToolInvocation {
    /// The call as the model wrote it.
    pub call: ToolCall,
    /// Its arguments, parsed and checked against the tool's schema.
    pub arguments: Value,
    /// Permanent key of this call. A repetition of the call in the same turn has the same key. Its text is the
    /// idempotency key for systems that the tool changes.
    pub key: CallKey,
    /// Channel for progress reports of the tool.
    pub progress: Progress,
    /// The turn of the call, with its id and its extensions ([`Turn::extensions`]).
    pub turn: Arc<Turn>,
    /// The conversation of the turn, with its tenant, if the turn is stored in one.
    pub conversation: Option<ConversationKey>,
}

impl ToolInvocation {
    /// Checks whether the run was dropped, with its turn or by a timeout, so that its result is discarded.
    ///
    /// It is for tools that block their thread, which a drop cannot stop. Other tools are dropped themselves. Without a
    /// receiver of its [progress](Progress::channel), it is not known: a run with [`Progress::ignored`] never is.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.progress.0.as_ref().is_some_and(mpsc::Sender::is_closed)
    }

    /// Parses the arguments into a type of the tool.
    ///
    /// # Errors
    /// The text, which the model reads, names the position, such as `/days/0`, and the expected value.
    ///
    /// # Example
    /// ```
    /// # use advisor_core::{CallKey, Progress, ToolCall, ToolInvocation, Turn, TurnId};
    /// # let turn = Turn::new(TurnId::random());
    /// # let key = CallKey::new(turn.id().clone(), 1, 0);
    /// # let call = ToolCall::new("c1", "weather", r#"{"days": [1, "two"]}"#);
    /// # let arguments = call.parsed_arguments()?;
    /// # let progress = Progress::ignored();
    /// # let invocation = ToolInvocation { call, arguments, key, progress, turn, conversation: None };
    /// #[derive(Debug, serde::Deserialize)]
    /// struct Weather {
    ///     days: Vec<u8>,
    /// }
    ///
    /// let error = invocation.parse::<Weather>().unwrap_err();
    /// assert!(error.text.contains(r#"/days/1: invalid type: string "two", expected u8"#));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn parse<A: DeserializeOwned>(&self) -> Result<A, ToolError> {
        // Tracking the position costs an allocation per name, so it is done only after a failure.
        let parsed = A::deserialize(&self.arguments);
        parsed.or_else(|_| serde_path_to_error::deserialize(&self.arguments)).map_err(|error| {
            let place = pointer(error.path());
            let apart = if place.is_empty() { "" } else { ": " };
            let wrong = error.inner();
            ToolError::new(format!("not started: the arguments do not fit the tool: {place}{apart}{wrong}"))
        })
    }
}

/// Channel for progress reports of a running tool. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Progress(Option<mpsc::Sender<Part>>);

impl Progress {
    /// Creates a progress that discards its reports.
    #[must_use]
    pub fn ignored() -> Self {
        Self(None)
    }

    /// Creates a progress and its receiver. Keep the receiver and drain it while the tool runs: a run whose receiver is
    /// dropped is [cancelled](ToolInvocation::is_cancelled), and beyond `capacity` reports that nobody has received, a
    /// tool that reports waits.
    #[must_use]
    pub fn channel(capacity: usize) -> (Self, mpsc::Receiver<Part>) {
        let (sender, receiver) = mpsc::channel(capacity.max(1));
        (Self(Some(sender)), receiver)
    }

    /// Reports progress, and waits while the buffer is full. Without a receiver the report is lost.
    pub async fn report(&self, part: impl Into<Part> + Send) {
        if let Some(sender) = &self.0 {
            // Without a receiver, the run was dropped, and this is left of it: a task or a thread of the tool.
            let _ = sender.send(part.into()).await;
        }
    }
}

/// Formats the position as a JSON pointer, as errors of schema validation do.
fn pointer(path: &Path) -> String {
    let step = |segment: &Segment| match segment {
        Segment::Seq { index } => format!("/{index}"),
        Segment::Map { key: name } | Segment::Enum { variant: name } => {
            format!("/{}", name.replace('~', "~0").replace('/', "~1"))
        }
        Segment::Unknown => String::from("/?"),
    };
    path.iter().map(step).collect()
}

/// Result of a tool: one or more parts.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ToolOutput {
    /// The content for the model, and for the user if the tool returns directly.
    pub parts: Vec<Part>,
}

impl ToolOutput {
    /// Creates a result of one JSON value: a struct, a list, a number or any other serialisable value.
    ///
    /// # Errors
    /// If it cannot be serialised as JSON, such as a map whose keys are not strings.
    ///
    /// # Example
    /// ```
    /// use advisor_core::ToolOutput;
    ///
    /// #[derive(serde::Serialize)]
    /// struct Weather {
    ///     degrees: i32,
    /// }
    ///
    /// let output = ToolOutput::json(&Weather { degrees: 21 }).unwrap();
    /// assert_eq!(output, serde_json::json!({"degrees": 21}).into());
    /// ```
    pub fn json(value: &(impl Serialize + ?Sized)) -> Result<Self, ToolError> {
        Ok(serde_json::to_value(value)?.into())
    }
}

macro_rules! from_part {
    ($($content:ty),*) => {$(
        impl From<$content> for ToolOutput {
            fn from(content: $content) -> Self {
                Self { parts: vec![content.into()] }
            }
        }
    )*};
}

from_part!(Part, &str, String, Value);

/// The output of a tool without a result: the model reads "Done."
impl From<()> for ToolOutput {
    fn from((): ()) -> Self {
        "Done.".into()
    }
}

impl From<Vec<Part>> for ToolOutput {
    fn from(parts: Vec<Part>) -> Self {
        Self { parts }
    }
}

/// Failure of a tool; the model reads it.
///
/// Any error converts into it with `?`. It keeps the text of the error and of its sources.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolError {
    /// The text that the model reads.
    pub text: Text,
}

impl ToolError {
    /// Creates an error with this text.
    pub fn new(text: impl Into<Text>) -> Self {
        Self { text: text.into() }
    }
}

// It does not implement `std::error::Error`, so that every error can convert into it.
impl<E: std::error::Error> From<E> for ToolError {
    fn from(error: E) -> Self {
        Self::new(text_with_sources(&error))
    }
}
