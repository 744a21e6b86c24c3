//! `ErrorKind`: the class of an error, and its word for traces.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::decision_problem::DecisionProblem;

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
            with = "super::json::milliseconds"
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
