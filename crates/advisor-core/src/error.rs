//! `Error`, `Result` and `BoxError`: the one error type that crosses crates.

mod decision_problem;
mod json;
mod kind;

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use message_aggregator::{AggregateError, ChatResponse, MessageList};

pub use self::decision_problem::DecisionProblem;
pub use self::kind::ErrorKind;

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
