//! Converts the events of an answer to deltas.

use std::sync::Arc;

use advisor_core::{
    Delta, DeltaKind, Finish, FinishReason, Media, Opaque, ProviderData, Text, ToolCallDelta, Usage,
};
use provider_http::names::WireNames;
use rig_core::completion::{CompletionResponse, FinishReason as Reason, Usage as Counts};
use rig_core::message::{AssistantContent, DocumentSourceKind, Image, MimeType, Origin, ToolCall};
use rig_core::streaming::StreamEvent;
use serde::{Deserialize, Serialize};

/// The name of content that only rig understands.
pub(crate) const CONTENT: &str = "assistant_content";

/// Content that goes back to its model. rig sends it as it came only in a message of the same origin.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Own {
    pub(crate) origin: Origin,
    pub(crate) content: AssistantContent,
}

/// Turns the events of one answer into deltas.
#[derive(Debug)]
pub(crate) struct Converter {
    names: Arc<WireNames>,
    /// The format name of data that goes back to the server.
    format: Text,
    origin: Origin,
    calls: i64,
}

impl Converter {
    pub(crate) fn new(names: Arc<WireNames>, format: Text, origin: Origin) -> Self {
        Self { names, format, origin, calls: 0 }
    }

    pub(crate) fn event(&mut self, event: StreamEvent) -> Vec<Delta> {
        match event {
            StreamEvent::Text { text, .. } => vec![Delta::text(text)],
            StreamEvent::Reasoning { text, .. } => vec![Delta::reasoning(text)],
            StreamEvent::End { content, .. } => self.part(&content),
            // The id of a call is known at its end only.
            StreamEvent::Start { .. } | StreamEvent::Arguments { .. } => Vec::new(),
        }
    }

    /// Returns what the end of a part adds to its pieces.
    fn part(&mut self, content: &AssistantContent) -> Vec<Delta> {
        let delta = match content {
            AssistantContent::ToolCall(call) => Some(self.call(call)),
            AssistantContent::Image(image) => media(image).map(Delta::media),
            AssistantContent::Reasoning(reasoning) if reasoning.native.is_some() || reasoning.redacted => {
                self.data(content).map(|data| DeltaKind::ReasoningData(Box::new(data)).into())
            }
            AssistantContent::Opaque(_) => self.data(content).map(|data| {
                let opaque = Opaque::new(data.format, CONTENT, data.value);
                DeltaKind::Opaque(Box::new(opaque)).into()
            }),
            _ => None,
        };
        delta.into_iter().collect()
    }

    /// Returns the content as it goes back to the same model.
    fn data(&self, content: &AssistantContent) -> Option<ProviderData> {
        let own = Own { origin: self.origin.clone(), content: content.clone() };
        let value = serde_json::to_value(own).ok()?;
        Some(ProviderData::new(self.format.clone(), value))
    }

    fn call(&mut self, call: &ToolCall) -> Delta {
        let name = call.function.name.as_str();
        let name = self.names.meant_by(name).unwrap_or_else(|| name.into());
        let arguments = match &call.function.invalid_arguments {
            Some(written) => written.clone(),
            None => call.function.arguments_value().to_string(),
        };
        let index = self.calls;
        self.calls += 1;
        let mut delta = ToolCallDelta::start(index, call.id.wire(), name).with_arguments(arguments);
        let content = call.native.is_some().then(|| AssistantContent::ToolCall(call.clone()));
        delta.provider_data = content.and_then(|content| self.data(&content));
        Delta::tool_call(delta)
    }

    /// Returns what the response adds to its events.
    pub(crate) fn end(&self, response: &CompletionResponse) -> Vec<Delta> {
        let id = response.response_id().map(Text::from);
        let model = response.model().map(Text::from);
        let mut deltas = vec![Delta::origin(id, model)];
        deltas.extend(usage(&response.usage).map(Delta::usage));
        match response.finish_reason() {
            Some(reason) => deltas.push(Delta::finish(finish(&reason))),
            // The provider ended the answer without a reason.
            None => deltas.push(Delta::done()),
        }
        deltas
    }
}

/// Returns a generated image, if it is one that can be kept.
fn media(image: &Image) -> Option<Media> {
    let mime = image.media_type.as_ref().map_or("image/*", |kind| kind.to_mime_type());
    match &image.data {
        DocumentSourceKind::Url(url) => Some(Media::from_url(mime, url.as_str())),
        DocumentSourceKind::Base64(data) => Some(Media::from_url(mime, format!("data:{mime};base64,{data}"))),
        DocumentSourceKind::Raw(bytes) => Some(Media::from_bytes(mime, bytes.clone())),
        _ => None,
    }
}

fn usage(counts: &Counts) -> Option<Usage> {
    let mut usage = Usage::default();
    usage.input_tokens = counts.input_tokens;
    usage.output_tokens = counts.output_tokens;
    usage.total_tokens = counts.total_tokens;
    // rig counts a part of zero where the server counts none.
    let part = |count: Option<u64>| count.filter(|count| *count > 0);
    usage.cached_input_tokens = part(counts.cached_input_tokens);
    usage.cache_write_tokens = part(counts.cache_creation_input_tokens);
    usage.reasoning_tokens = part(counts.reasoning_tokens);
    (usage != Usage::default()).then_some(usage)
}

fn finish(reason: &Reason) -> Finish {
    match reason {
        Reason::Stop => Finish::written(FinishReason::Stop, "stop"),
        Reason::Length => Finish::written(FinishReason::Length, "length"),
        Reason::ToolCalls => Finish::written(FinishReason::ToolCalls, "tool_calls"),
        Reason::ContentFilter => Finish::written(FinishReason::ContentFilter, "content_filter"),
        Reason::Other(word) => {
            let known = match word.as_str() {
                "eos" | "eos_token" => FinishReason::Stop,
                "refusal" => FinishReason::Refusal,
                "pause_turn" => FinishReason::Paused,
                // The server gave up in the middle, so an open call must not run.
                "error" | "MALFORMED_FUNCTION_CALL" => FinishReason::Interrupted,
                other => FinishReason::Other(other.into()),
            };
            Finish::written(known, word.as_str())
        }
        _ => Finish::inferred(FinishReason::Stop),
    }
}
