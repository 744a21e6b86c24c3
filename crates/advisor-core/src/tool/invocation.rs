use std::sync::Arc;

use message_aggregator::{Part, ToolCall};
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::{Path, Segment};
use tokio::sync::mpsc;

use crate::{CallKey, ConversationKey, ToolError, Turn};

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
    /// The turn the call belongs to: its id, and what others left in it ([`Turn::extensions`]).
    pub turn: Arc<Turn>,
    /// The conversation that the turn belongs to, with its tenant, if it is remembered in one.
    pub conversation: Option<ConversationKey>,
}

impl ToolInvocation {
    /// A run of `call`.
    #[must_use]
    pub fn new(call: ToolCall, arguments: Value, key: CallKey, progress: Progress, turn: Arc<Turn>) -> Self {
        Self { call, arguments, key, progress, turn, conversation: None }
    }

    /// The same run in a conversation.
    #[must_use]
    pub fn with_conversation(self, conversation: Option<ConversationKey>) -> Self {
        Self { conversation, ..self }
    }

    /// Reads the arguments as a type of the tool's own.
    ///
    /// # Errors
    /// Names the place, such as `/days/0`, and what was expected there; for the model to read.
    ///
    /// # Example
    /// ```
    /// # use advisor_core::{CallKey, Progress, ToolCall, ToolInvocation, Turn, TurnId};
    /// # use serde_json::json;
    /// # let turn = Turn::new(TurnId::mint());
    /// # let key = CallKey::new(turn.id().clone(), 1, 0);
    /// # let call = ToolCall::new("c1", "weather", r#"{"days": [1, "two"]}"#);
    /// # let arguments = call.parsed_arguments()?;
    /// # let invocation = ToolInvocation::new(call, arguments, key, Progress::ignored(), turn);
    /// #[derive(Debug, serde::Deserialize)]
    /// struct Weather {
    ///     days: Vec<u8>,
    /// }
    ///
    /// let error = invocation.parse::<Weather>().unwrap_err();
    /// assert!(error.text().contains(r#"/days/1: invalid type: string "two", expected u8"#));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn parse<A: DeserializeOwned>(&self) -> Result<A, ToolError> {
        // To keep the place at hand costs an allocation for each name, so that it is looked for only if it is wanted.
        let parsed = A::deserialize(&self.arguments);
        parsed.or_else(|_| serde_path_to_error::deserialize(&self.arguments)).map_err(|error| {
            let place = pointer(error.path());
            let apart = if place.is_empty() { "" } else { ": " };
            let wrong = error.inner();
            ToolError::new(format!("not started: the arguments do not fit the tool: {place}{apart}{wrong}"))
        })
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

/// The place as a JSON pointer, as it is where arguments do not fit their schema.
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
