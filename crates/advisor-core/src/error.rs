//! `Error`, `ErrorKind`, `DecisionProblem` and `Result`: the one error type that crosses crates, with its JSON form.

use std::borrow::Cow;
use std::fmt;
use std::ops::Not;
use std::time::Duration;

use message_aggregator::{AggregateError, ChatResponse, MessageList};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Result type of this workspace.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Any error of another library, kept as the source of an [`Error`].
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The one error that crosses crates: matching it needs no provider crate.
///
/// Tool errors, reached limits and refusals of the model are not errors: they are results and finish reasons. The
/// text contains neither secrets nor the content of a conversation.
///
/// Its JSON form is documented in `docs/json.md` of the repository. It has the kind, the text and
/// [`emitted`](Self::emitted); it lacks the partial answer, the history and the causes, and
/// a delay that is not that of its kind.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    message: Cow<'static, str>,
    emitted: bool,
    retry_after: Option<Duration>,
    partial: Option<ChatResponse>,
    history: Option<MessageList>,
    source: Option<BoxError>,
}

/// Returns the text of an error and of its sources, from the outermost to the innermost, separated by `: `.
///
/// # Example
/// ```
/// use advisor_core::{Error, ErrorKind, text_with_sources};
///
/// let error = Error::new(ErrorKind::Connection, "the server cannot be reached").with_source("port 8080 is closed");
/// assert_eq!(text_with_sources(&error), "the server cannot be reached: port 8080 is closed");
/// ```
#[must_use]
pub fn text_with_sources(error: &dyn std::error::Error) -> String {
    let errors = std::iter::successors(Some(error), |error| error.source());
    errors.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

impl Error {
    /// Creates an error. The text is lower-case, contains no secrets and no content, and names the remedy.
    pub fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            emitted: false,
            retry_after: None,
            partial: None,
            history: None,
            source: None,
        }))
    }

    /// Creates an error of an advisor with the given cause.
    pub fn advisor(source: impl Into<BoxError>) -> Self {
        Self::new(ErrorKind::Advisor, "an advisor failed").with_source(source)
    }

    /// Creates an error of kind `Configuration`.
    pub fn configuration(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::Configuration, message)
    }

    /// Sets the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Sets the delay that the provider asks for, for an error of any kind.
    #[must_use]
    pub fn with_retry_after(mut self, delay: Duration) -> Self {
        self.0.retry_after = Some(delay);
        self
    }

    /// Attaches the partial answer, unless the error has one.
    #[must_use]
    pub fn or_partial(mut self, partial: ChatResponse) -> Self {
        self.0.partial.get_or_insert(partial);
        self
    }

    /// Attaches the messages of the turn that were final by then, unless the error has a history.
    #[must_use]
    pub fn or_history(mut self, history: MessageList) -> Self {
        self.0.history.get_or_insert(history);
        self
    }

    /// Marks the error: something had been shown, or a tool had been run, before it happened.
    #[must_use]
    pub fn mark_emitted(mut self) -> Self {
        self.0.emitted = true;
        self
    }

    /// Replaces partial answer and history by those that callers outside have seen.
    pub(crate) fn with_seen(mut self, partial: Option<ChatResponse>, history: Option<MessageList>) -> Self {
        self.0.partial = partial;
        self.0.history = history;
        self
    }

    /// Returns the class of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the delay that the provider asks for.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self.0.kind {
            ErrorKind::RateLimited { retry_after: Some(delay) } => Some(delay),
            _ => self.0.retry_after,
        }
    }

    /// Checks whether anything of this turn was shown, or a tool was run, before it failed. If so, a retry shows
    /// or runs it twice.
    #[must_use]
    pub fn emitted(&self) -> bool {
        self.0.emitted
    }

    /// Checks whether the same request may succeed later, and nothing was shown or run yet.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        let passing = match self.0.kind {
            ErrorKind::RateLimited { .. } | ErrorKind::Connection | ErrorKind::Timeout => true,
            ErrorKind::Provider { status } => status.is_none_or(|status| status >= 500 || status == 408),
            _ => false,
        };
        passing && !self.0.emitted
    }

    /// Returns the partial answer: its text and its calls so far. None of the calls may run: open ones are
    /// incomplete, and the finish reason [vetoes](message_aggregator::FinishReason::vetoes_calls) the others.
    #[must_use]
    pub fn partial(&self) -> Option<&ChatResponse> {
        self.0.partial.as_ref()
    }

    /// Returns the messages of the turn that were final when it failed.
    #[must_use]
    pub fn history(&self) -> Option<&MessageList> {
        self.0.history.as_ref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The partial answer and the history are content and do not belong in logs.
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("message", &self.0.message)
            .field("emitted", &self.0.emitted)
            .field("source", &self.0.source)
            .finish_non_exhaustive()
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|source| source as &(dyn std::error::Error + 'static))
    }
}

impl From<AggregateError> for Error {
    fn from(error: AggregateError) -> Self {
        let message = error.to_string();
        match error {
            AggregateError::Truncated { partial } => {
                Self::new(ErrorKind::Truncated, message).or_partial(*partial)
            }
            AggregateError::TooLarge { .. } => Self::new(ErrorKind::TooLarge, message),
            _ => Self::new(ErrorKind::Protocol { position: None }, message),
        }
    }
}

/// Class of an [`Error`](crate::Error), which determines the reaction of a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// The provider limits the rate of requests.
    RateLimited {
        /// The delay that the provider asks for, if it states one.
        #[serde(
            rename = "retry_after_ms",
            default,
            skip_serializing_if = "Option::is_none",
            with = "milliseconds"
        )]
        retry_after: Option<Duration>,
    },
    /// The key is missing, wrong or lacks permission.
    Authentication,
    /// The request is longer than the model can read. Sending it unchanged fails again.
    ContextOverflow,
    /// The provider refuses the transcript. Sending it unchanged fails again.
    InvalidHistory,
    /// The provider does not know the model, or nothing is at the address. Sending it unchanged fails again.
    NotFound,
    /// The provider refuses the content of a message, such as an image that it cannot read. Sending the message again
    /// fails again, so a memory leaves it out of later turns.
    InvalidInput,
    /// The provider refuses the request for another reason.
    InvalidRequest,
    /// The provider failed: an error status or an error object in its stream.
    Provider {
        /// The HTTP status, if there was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
    },
    /// The provider could not be reached, or the connection broke.
    Connection,
    /// A timeout elapsed: connect, first byte, idle, progress or a limit of the caller's.
    Timeout,
    /// The stream ended before the answer was complete.
    Truncated,
    /// The received data violates the protocol.
    Protocol {
        /// The position in bytes from the start of the stream, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        position: Option<u64>,
    },
    /// The received data exceeds a configured bound.
    TooLarge,
    /// A stream of chunks ended without its completion: a defect of the advisor or model that created it.
    Unfinished,
    /// The tool machinery failed. A failing tool is a result, not this.
    Tool,
    /// The answer does not have the requested form, also after a repeated request.
    InvalidOutput,
    /// Another turn of this conversation is running.
    ConversationBusy,
    /// The turn's id was used before: for another input, or for a turn that cannot be continued.
    TurnIdReused,
    /// The call was started before. It must not run again.
    CallAlreadyStarted,
    /// The conversation does not wait for this client-side call: it was answered, or the conversation continued
    /// without it.
    NoClientSideCall,
    /// The decisions about calls that wait cannot be applied.
    Approval {
        /// The reason.
        #[serde(default)]
        problem: DecisionProblem,
    },
    /// Another turn has taken over the conversation.
    Fenced,
    /// The conversation changed in the store meanwhile.
    StoreConflict {
        /// The current version in the store.
        current: u64,
    },
    /// Messages that had to be remembered could not be stored.
    NotPersisted,
    /// The store cannot be opened, no longer knows the conversation, or holds data that cannot be read.
    Store,
    /// The turn was cancelled.
    Cancelled,
    /// The chain, the client or the request is misconfigured; the text names the remedy.
    Configuration,
    /// An advisor failed for its own reason.
    Advisor,
    /// A kind that was read from JSON and that this version does not know.
    #[serde(other)]
    Unknown,
}

impl ErrorKind {
    /// Returns the kind as one word without its data, such as `rate_limited`, for traces and counters.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::RateLimited { .. } => "rate_limited",
            Self::Authentication => "authentication",
            Self::ContextOverflow => "context_overflow",
            Self::InvalidHistory => "invalid_history",
            Self::NotFound => "not_found",
            Self::InvalidInput => "invalid_input",
            Self::InvalidRequest => "invalid_request",
            Self::Provider { .. } => "provider",
            Self::Connection => "connection",
            Self::Timeout => "timeout",
            Self::Truncated => "truncated",
            Self::Protocol { .. } => "protocol",
            Self::TooLarge => "too_large",
            Self::Unfinished => "unfinished",
            Self::Tool => "tool",
            Self::InvalidOutput => "invalid_output",
            Self::ConversationBusy => "conversation_busy",
            Self::TurnIdReused => "turn_id_reused",
            Self::CallAlreadyStarted => "call_already_started",
            Self::NoClientSideCall => "no_client_side_call",
            Self::Approval { .. } => "approval",
            Self::Fenced => "fenced",
            Self::StoreConflict { .. } => "store_conflict",
            Self::NotPersisted => "not_persisted",
            Self::Store => "store",
            Self::Cancelled => "cancelled",
            Self::Configuration => "configuration",
            Self::Advisor => "advisor",
            Self::Unknown => "unknown",
        }
    }
}

/// The reason why the decisions of a turn cannot be applied, in an error of kind
/// [`Approval`](crate::ErrorKind::Approval). Nothing has run, and the calls wait as before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DecisionProblem {
    /// A call waits, and has neither a decision nor a result.
    Missing,
    /// A call has two decisions.
    Duplicate,
    /// A call has a decision and a result.
    WithResult,
    /// A decision was made for another tool or other arguments than those of its call.
    OtherCall,
    /// A decision has expired.
    Expired,
    /// The turn that continues has the id of the turn that asked.
    SameTurn,
    /// The tool of an approved call is not among those of the request.
    UnknownTool,
    /// The tool of an approved call runs at the client.
    ClientSide,
    /// An approved call is incomplete.
    Incomplete,
    /// The arguments of an approved call do not fit its tool.
    Arguments,
    /// The policy or a hook denies the arguments that a person has changed.
    Policy,
    /// A problem that was read from JSON and that this version does not know.
    #[default]
    #[serde(other)]
    Unknown,
}

/// The JSON form of an error.
#[derive(Serialize, Deserialize)]
struct Form<'a> {
    #[serde(flatten)]
    kind: ErrorKind,
    message: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Not::not")]
    emitted: bool,
}

impl Serialize for Error {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let message = Cow::from(&*self.0.message);
        Form { kind: self.kind(), message, emitted: self.emitted() }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Error {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Form { kind, message, emitted } = Form::deserialize(deserializer)?;
        let error = Self::new(kind, message.into_owned());
        Ok(if emitted { error.mark_emitted() } else { error })
    }
}

/// A delay in whole milliseconds, rounded up.
mod milliseconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[allow(clippy::ref_option, reason = "serde passes a reference")]
    pub(super) fn serialize<S: Serializer>(
        delay: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let milliseconds =
            |delay: Duration| u64::try_from(delay.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
        delay.map(milliseconds).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        Option::<u64>::deserialize(deserializer).map(|read| read.map(Duration::from_millis))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use message_aggregator::ChatResponse;
    use serde_json::{Value, json};

    use super::*;
    use crate::DecisionProblem;

    /// Every kind, with and without its data.
    fn kinds() -> Vec<ErrorKind> {
        use ErrorKind::*;
        let delays = [None, Some(Duration::ZERO), Some(Duration::from_millis(1_500))];
        let mut kinds = delays.map(|retry_after| RateLimited { retry_after }).to_vec();
        kinds.extend([None, Some(503)].map(|status| Provider { status }));
        kinds.extend([None, Some(12)].map(|position| Protocol { position }));
        kinds.extend([DecisionProblem::Policy, DecisionProblem::Unknown].map(|problem| Approval { problem }));
        kinds.extend([
            Authentication,
            ContextOverflow,
            InvalidHistory,
            NotFound,
            InvalidInput,
            InvalidRequest,
            Connection,
            Timeout,
            Truncated,
            TooLarge,
            Unfinished,
            Tool,
            InvalidOutput,
            ConversationBusy,
            TurnIdReused,
            CallAlreadyStarted,
            NoClientSideCall,
            Fenced,
            StoreConflict { current: 7 },
            NotPersisted,
            Store,
            Cancelled,
            Configuration,
            Advisor,
            Unknown,
        ]);
        kinds
    }

    fn written(error: &Error) -> Value {
        serde_json::to_value(error).unwrap()
    }

    #[test]
    fn every_kind_comes_back_under_its_word() {
        for kind in kinds() {
            for error in [Error::new(kind, "it fails"), Error::new(kind, "it fails").mark_emitted()] {
                let json = written(&error);
                assert_eq!(json["kind"], kind.as_str());
                let read: Error = serde_json::from_value(json).unwrap();
                assert_eq!(
                    (read.kind(), read.to_string(), read.emitted()),
                    (kind, "it fails".into(), error.emitted())
                );
            }
        }
    }

    #[test]
    fn absent_data_takes_no_room() {
        let limited = |retry_after| Error::new(ErrorKind::RateLimited { retry_after }, "wait");
        assert_eq!(written(&limited(None)), json!({"kind": "rate_limited", "message": "wait"}));
        assert_eq!(
            written(&limited(Some(Duration::from_micros(1_500_001))).mark_emitted()),
            json!({"kind": "rate_limited", "retry_after_ms": 1501, "message": "wait", "emitted": true})
        );
    }

    #[test]
    fn unknown_kinds_and_fields_are_read() {
        let json = json!({"kind": "of_a_later_version", "quota": {"left": 0}, "message": "wait"});
        let error: Error = serde_json::from_value(json).unwrap();
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Unknown, false));
        assert!(serde_json::from_value::<Error>(json!({"message": "no kind"})).is_err());
        for json in
            [json!({"kind": "approval"}), json!({"kind": "approval", "problem": "of_a_later_version"})]
        {
            let kind = serde_json::from_value::<ErrorKind>(json).unwrap();
            assert_eq!(kind, ErrorKind::Approval { problem: DecisionProblem::Unknown });
        }
    }

    #[test]
    fn law_r3_json_has_neither_content_nor_causes() {
        let error = Error::new(ErrorKind::Connection, "the server cannot be reached")
            .with_source("canary in a cause")
            .or_partial(ChatResponse::from("canary in the answer"))
            .or_history(vec![message_aggregator::Message::user("canary in the history")].into());
        assert!(!written(&error).to_string().contains("canary"));
    }
}
