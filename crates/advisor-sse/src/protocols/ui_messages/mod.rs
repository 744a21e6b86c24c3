//! `UiMessages`: the UI message stream of the AI SDK.

mod event;
mod parts;

use advisor_core::{BlockContent, BlockDelta, Chunk, ErrorKind, Text, ToolResult};

use self::event::Event;
use self::parts::Parts;
use crate::encoder::Encoder;
use crate::shared::ending::Ending;
use crate::shared::json;
use crate::{Approvals, Failure, Frames};

/// The UI message stream of the AI SDK, which `useChat` reads.
///
/// - A round is a step. Text and reasoning are parts; a refusal is text.
/// - Calls are dynamic tools: the input streams while it forms, the output follows when the tool ends.
/// - A call without output at the end is one that the client has to run, or one that a person has to approve.
/// - When the model is called again, the parts of the void attempt end, and a `data-restart` part names the round.
/// - An answer that is cut has a last part `data-incomplete {reason, message}`. The reason is `length`,
///   `content_filter`, `interrupted` or `limit`.
/// - Citations with an address are sources, each with its own id.
///
/// Not written are the data stream of AI SDK 4, `source-document`, which needs a media type, `message-metadata`, whose type
/// each application defines, and preliminary outputs, which clients before 5.0.11 refuse.
///
/// # Errors
/// A failed tool is `tool-output-error`, and so is a call that the application denies. A failed turn is `error`, a
/// cancelled one `abort`.
#[derive(Debug)]
pub struct UiMessages {
    message_id: Text,
    profile: UiProfile,
    parts: Parts,
    /// The number of sources so far.
    sources: u32,
}

/// The versions of the AI SDK whose clients read the stream. Clients refuse events that their version lacks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum UiProfile {
    /// The events of 5.0.0, which all later clients read too.
    #[default]
    V5,
    /// The events of 6.0.0: also the finish reason, invalid input, approvals and their denials.
    V6,
    /// The events of 7.0.0. They are those of 6.0.0 for all that a turn has.
    V7,
}

impl UiMessages {
    /// Creates the encoder of one turn; the id names the assistant's message on the client.
    pub fn new(message_id: impl Into<Text>) -> Self {
        Self {
            message_id: message_id.into(),
            profile: UiProfile::default(),
            parts: Parts::default(),
            sources: 0,
        }
    }

    /// Sets the profile; [`UiProfile::V5`] by default.
    #[must_use]
    pub fn with_profile(mut self, profile: UiProfile) -> Self {
        self.profile = profile;
        self.parts.set_profile(profile);
        self
    }

    /// Asks the client for approvals of these calls. By default, and in [`UiProfile::V5`], it asks for none.
    #[must_use]
    pub fn with_approvals(mut self, approvals: Approvals) -> Self {
        self.parts.set_approvals(approvals);
        self
    }

    /// Makes the ids of the turn's calls end so. A turn that continues a message needs it: a message has one part per id, and
    /// models repeat ids.
    #[must_use]
    pub fn with_call_suffix(mut self, suffix: impl Into<Text>) -> Self {
        self.parts.turn.set_call_suffix(suffix.into());
        self
    }

    /// Writes the result of an approved call. The call is one of an earlier turn, and the client's message has its part.
    pub fn earlier_result(&mut self, call_id: &str, result: &ToolResult, frames: &mut Frames) {
        self.parts.output(call_id, result, frames);
    }

    /// Writes that a person has denied a call of an earlier turn, after a request for its approval. In [`UiProfile::V5`],
    /// the denial is an error.
    pub fn earlier_denial(&mut self, call_id: &str, frames: &mut Frames) {
        match self.profile {
            UiProfile::V5 => self.parts.output_error(call_id, "the call was denied", frames),
            _ => frames.data(&Event::ToolOutputDenied { tool_call_id: call_id }),
        }
    }

    fn delta(&mut self, chunk: &Chunk, frames: &mut Frames) {
        let Chunk::Delta { block, delta } = chunk else { return };
        match delta {
            BlockDelta::Text(text) | BlockDelta::Refusal(text) => self.parts.text(*block, text, frames),
            BlockDelta::Reasoning(text) => self.parts.reasoning(*block, text, frames),
            BlockDelta::Arguments(text) => self.parts.input(*block, text, frames),
            BlockDelta::Media(media) => {
                if let Some(url) = json::url(media) {
                    frames.data(&Event::File { url: &url, media_type: &media.mime });
                }
            }
            BlockDelta::Citation(citation) => {
                if let Some(url) = &citation.url {
                    self.sources += 1;
                    let source_id = &format!("source-{}", self.sources);
                    frames.data(&Event::SourceUrl { source_id, url, title: citation.title.as_deref() });
                }
            }
            _ => {}
        }
    }
}

impl Encoder for UiMessages {
    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("content-type", "text/event-stream"),
            ("cache-control", "no-store"),
            ("x-accel-buffering", "no"),
            ("x-vercel-ai-ui-message-stream", "v1"),
        ]
    }

    fn begin(&mut self, frames: &mut Frames) {
        frames.data(&Event::Start { message_id: &self.message_id });
    }

    fn chunk(&mut self, chunk: &Chunk, frames: &mut Frames) {
        self.parts.turn.note(chunk);
        match chunk {
            Chunk::Opened { block, head } => self.parts.open(*block, head, frames),
            Chunk::Delta { .. } => self.delta(chunk, frames),
            Chunk::Closed { block, content } => match content.content() {
                BlockContent::ToolCall(call) => self.parts.close_call(*block, call, frames),
                _ => self.parts.close_text(*block, frames),
            },
            Chunk::Tool(event) => self.parts.tool(event, frames),
            Chunk::AttemptRestarted { round } => self.parts.restart(*round, frames),
            Chunk::Completed(response) => {
                let calls = self.parts.turn.client_calls(response);
                self.parts.client_calls(&calls, frames);
                self.parts.finish_step(frames);
                let ending = Ending::new(&response.finish().reason, !calls.is_empty());
                if let Some(data) = ending.incomplete() {
                    frames.data(&Event::DataIncomplete { data });
                }
                frames.data(&Event::finish(self.profile, ending));
                frames.done();
            }
            _ => {}
        }
    }

    fn failure(&mut self, failure: &Failure, frames: &mut Frames) {
        match failure.kind() {
            ErrorKind::Cancelled => frames.data(&Event::Abort),
            _ => frames.data(&Event::Error { error_text: failure.message() }),
        }
        frames.done();
    }
}
