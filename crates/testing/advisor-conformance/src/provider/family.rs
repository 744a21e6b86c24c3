//! The part of the suite that a provider supplies: a model, and a writer of answers.

use std::sync::Arc;

use advisor_core::{ChatModel, FinishReason, Usage};
use bytes::Bytes;
use serde_json::{Value, json};

use advisor_testkit::Reply;

/// The wire format of a provider, from the side of its server.
pub trait WireFamily: Send + Sync {
    /// Returns a model of the server at this URL (`http://127.0.0.1:PORT`), which sends each request once: retries
    /// are off.
    fn model(&self, url: &str) -> Arc<dyn ChatModel>;

    /// Writes the body of a streamed answer as the server sends it; `None` if the format cannot express a part.
    ///
    /// The result has one entry for each part: the bytes of its events. A part that is sent with a later one is empty.
    /// Events that begin the body belong to the first part, and events that end a block to the part after it. No event
    /// may be split between two entries.
    fn write(&self, parts: &[AnswerPart]) -> Option<Vec<Bytes>>;

    /// Returns the reply with this body of a streamed answer. By default it is an event stream.
    fn reply(&self, body: Bytes) -> Reply {
        Reply::sse(body)
    }

    /// Returns the body of a response that reports a failure by its status. By default it is
    /// `{"error":{"message":…}}`.
    fn failure(&self, message: &str) -> Value {
        json!({ "error": { "message": message } })
    }

    /// Returns the token counts that the format can express. By default all of them.
    fn expressible(&self, usage: Usage) -> Usage {
        usage
    }
}

/// A part of an answer, in the order in which the server sends it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum AnswerPart {
    /// The next piece of text, as a separate event. Adjacent pieces belong to one block.
    Text(&'static str),
    /// The next piece of reasoning. Adjacent pieces belong to one block.
    Reasoning(&'static str),
    /// The next piece of a refusal.
    Refusal(&'static str),
    /// A whole tool call. Its arguments arrive in these pieces; a format of whole calls joins them. A format without
    /// ids omits the id.
    Call {
        /// The server's id of the call.
        id: &'static str,
        /// The name of the tool.
        name: &'static str,
        /// The pieces of the arguments, which are a JSON object.
        arguments: &'static [&'static str],
    },
    /// A tool call of which the server sends only the beginning. A format of whole calls cannot express it.
    CutCall {
        /// The server's id of the call.
        id: &'static str,
        /// The name of the tool.
        name: &'static str,
        /// The beginning of its arguments.
        arguments: &'static str,
    },
    /// Token counts. A format that reports them with the finish reason sends them there.
    Usage(Usage),
    /// The finish reason: `Stop`, `Length`, or `ToolCalls` after calls.
    Finish(FinishReason),
    /// The end marker; nothing, if the finish reason is the end.
    End,
    /// A failure that the server reports inside the answer, with this message.
    Failure(&'static str),
    /// An event of a kind that the format does not have, such as one of a later version.
    Unknown,
    /// An event whose JSON is malformed.
    Malformed,
}
