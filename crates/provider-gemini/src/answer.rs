//! `generateContent` and `streamGenerateContent` as a [`WireFormat`]: converts one event to deltas.
//!
//! **Order** within an event: its parts as they are listed, sources, token counts, finish reason.

mod calls;
mod sources;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fmt;

use advisor_core::{
    AggregatorLimits, Delta, DeltaKind, Finish, FinishReason, Media, MediaDelta, Opaque, ProviderData, Text,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use provider_http::answer::{AnswerEvent, Meaning, WireFormat};
use provider_http::failure::Report;
use provider_http::fast_path::{Field, Framing};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::wire::{EVENT, Object, SIGNATURE, SIGNED_BYTES, THOUGHT, TokenCounts, text, value};
use calls::Calls;
use sources::Sources;

/// The fields of an event that is a part of an answer.
const PARTS_OF_ANSWERS: [&str; 3] = ["candidates", "promptFeedback", "usageMetadata"];
/// The fields of a part that are no content.
const NO_CONTENT: [&str; 6] =
    ["text", THOUGHT, SIGNATURE, "partMetadata", "mediaResolution", "videoMetadata"];

// All finish reasons are of the API reference (`FinishReason` of `GenerateContentResponse`).

/// The words for an answer that a filter stopped.
const FILTERED: [&str; 11] = [
    "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR",
    "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "RECITATION_IMAGE",
];
/// The words for an answer that could not be given (Q67).
const FAILED: [&str; 7] = [
    "MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS",
    MISSING_SIGNATURE, "NO_IMAGE", "IMAGE_OTHER",
];
const MISSING_SIGNATURE: &str = "MISSING_THOUGHT_SIGNATURE";

/// One answer in the wire format of Gemini, streamed or whole. Of several candidates in an event the first is read: its
/// number may be wrong.
pub(crate) struct GenerateContent {
    /// The format name of the server's data.
    format: Text,
    /// The maximum bytes of a call that is kept until its end.
    most_kept: usize,
    sent_origin: bool,
    counts: TokenCounts,
    calls: Calls,
    sources: Sources,
    /// Whether anything arrived that is shown.
    has_content: bool,
    /// The data of an empty part with a signature, before anything that is shown.
    held: Option<ProviderData>,
    ended: bool,
}

impl GenerateContent {
    /// Creates the format of an answer with these limits. `format` is the format name of the server's data.
    pub(crate) fn new(format: Text, limits: AggregatorLimits) -> Self {
        Self {
            format,
            most_kept: limits.answer_bytes,
            sent_origin: false,
            counts: TokenCounts::default(),
            calls: Calls::default(),
            sources: Sources::default(),
            has_content: false,
            held: None,
            ended: false,
        }
    }

    /// Appends the deltas of an event to `deltas`.
    ///
    /// # Errors
    /// The failure that the event reports. Beside it, finish reasons are dropped.
    fn event(&mut self, event: &Object<'_>, deltas: &mut VecDeque<Delta>) -> Result<(), Box<Report>> {
        let word = |name: &str| event.text(name).map(|word| word.as_ref().into());
        let (id, model) = (word("responseId"), word("modelVersion"));
        if !self.sent_origin && (id.is_some() || model.is_some()) {
            self.sent_origin = true;
            deltas.push_back(Delta::origin(id, model));
        }
        let candidate = event.list("candidates").into_iter().find_map(Object::read);
        if let Some(candidate) = &candidate {
            self.content(candidate, deltas);
        }
        let counts = event.object("usageMetadata").and_then(|counts| self.counts.update(&counts));
        deltas.extend(counts.map(Delta::usage));
        // An answer to a blocked prompt has no candidates.
        let blocked = event.object("promptFeedback").and_then(|feedback| {
            let reason = feedback.text("blockReason")?;
            Some(Finish::written(FinishReason::ContentFilter, reason.as_ref()))
        });
        let finish = candidate.map(|candidate| self.finish_of(&candidate)).transpose()?.flatten();
        deltas.extend(blocked.into_iter().chain(finish).map(Delta::finish));
        Ok(())
    }

    /// Emits the parts of a candidate and, at the end of the answer, its sources.
    fn content(&mut self, candidate: &Object<'_>, deltas: &mut VecDeque<Delta>) {
        for json in candidate.object("content").unwrap_or_default().list("parts") {
            if let Some(part) = Object::read(json) {
                self.part(json, &part, deltas);
            }
        }
        self.sources.read(candidate);
        self.ended |= candidate.field("finishReason").is_some();
        if self.ended {
            self.sources.emit(deltas);
        }
    }

    /// Emits a part. `json` is the whole part.
    fn part(&mut self, json: &RawValue, part: &Object<'_>, deltas: &mut VecDeque<Delta>) {
        let signature = part.text(SIGNATURE);
        let has_text = part.field("text").and_then(text).is_some_and(|text| !text.is_empty());
        let is_content = |name: &&str| !NO_CONTENT.contains(name) && part.field(name).is_some();
        if let Some(call) = part.object("functionCall") {
            self.begin_content(deltas);
            let signature = signature.map(|signature| self.own(json!({ SIGNATURE: signature })));
            self.calls.read(&call, signature, deltas);
        } else if let Some(media) = media(part) {
            self.begin_content(deltas);
            let mut media = MediaDelta::from(media);
            media.provider_data = signature.map(|signature| self.own(json!({ SIGNATURE: signature })));
            deltas.push_back(Delta::media(media));
        } else if let Some(kind) = part.names().find(is_content).filter(|_| !has_text) {
            self.begin_content(deltas);
            if let Some(part) = value(json) {
                let opaque = Opaque::new(self.format.clone(), kind, part);
                deltas.push_back(DeltaKind::Opaque(Box::new(opaque)).into());
            }
        } else {
            self.text(part, deltas);
        }
    }

    /// Emits a text or a thought. Its signature goes to the block whose last bytes it signs, and ends that block:
    /// Google forbids to join a signed part with others.
    fn text(&mut self, part: &Object<'_>, deltas: &mut VecDeque<Delta>) {
        let text = part.field("text").and_then(text).unwrap_or_default();
        let is_thought = part.is_true(THOUGHT);
        if !text.is_empty() {
            self.begin_content(deltas);
            deltas.push_back(if is_thought { Delta::reasoning(&*text) } else { Delta::text(&*text) });
        }
        let Some(signature) = part.text(SIGNATURE) else { return };
        let mut data = json!({ SIGNATURE: signature, SIGNED_BYTES: text.len() });
        if is_thought {
            data[THOUGHT] = true.into();
        }
        self.held = Some(self.own(data));
        if self.has_content {
            self.begin_content(deltas);
        }
    }

    /// Makes data that goes back to the server.
    fn own(&self, value: Value) -> ProviderData {
        ProviderData::new(self.format.clone(), value)
    }

    /// Notes that something follows that is shown. An empty part before it gets a separate block; alone it would
    /// be an answer of nothing.
    fn begin_content(&mut self, deltas: &mut VecDeque<Delta>) {
        self.has_content = true;
        if let Some(held) = self.held.take() {
            deltas.push_back(DeltaKind::BlockData(Box::new(held)).into());
            deltas.push_back(DeltaKind::BlockEnd.into());
        }
    }

    /// Returns the finish reason, if the candidate has one; `None` also for the words for none (Q31).
    ///
    /// # Errors
    /// The failure that a finish reason names (Q67). An unknown reason without content is one, too. With content, a call
    /// without its end never runs; one that came whole does.
    fn finish_of(&self, candidate: &Object<'_>) -> Result<Option<Finish>, Box<Report>> {
        let Some(written) = candidate.text("finishReason") else { return Ok(None) };
        let reason = match &*written {
            "FINISH_REASON_UNSPECIFIED" | "null" => return Ok(None),
            "STOP" => FinishReason::Stop,
            "MAX_TOKENS" => FinishReason::Length,
            word if FILTERED.contains(&word) => FinishReason::ContentFilter,
            word if self.has_content && !FAILED.contains(&word) => FinishReason::Other(word.into()),
            word => {
                let mut report = Report::default();
                report.message = candidate.text("finishMessage").unwrap_or_default().as_ref().into();
                report.code = Some(word.into());
                // The history lacks it, so the same request would fail again.
                report.status = (word == MISSING_SIGNATURE).then_some(400);
                return Err(Box::new(report));
            }
        };
        Ok(Some(Finish::written(reason, &*written)))
    }
}

impl WireFormat for GenerateContent {
    const FRAMING: Framing = Framing::Sse;
    const FIELDS: &'static Field = &EVENT;
    // Google sends none; some gateways do.
    const END_MARKER: Option<&'static str> = Some("[DONE]");

    fn read(&mut self, event: AnswerEvent<'_>, deltas: &mut VecDeque<Delta>) -> serde_json::Result<Meaning> {
        let json: &RawValue = serde_json::from_str(event.data)?;
        let object = Object::read(json).unwrap_or_default();
        let is_answer = PARTS_OF_ANSWERS.iter().any(|field| object.field(field).is_some());
        if !is_answer || object.field("error").is_some() {
            let meaning = Meaning::from_json(&value(json).unwrap_or(Value::Null));
            if meaning != Meaning::Unknown || !is_answer {
                return Ok(meaning);
            }
        }
        if let Err(report) = self.event(&object, deltas) {
            return Ok(Meaning::Failure(report));
        }
        if self.calls.note_kept(event.data.len()) > self.most_kept {
            return Ok(Meaning::TooLarge { limit: self.most_kept });
        }
        // Later events about a call mean something else, also if they have the same form.
        Ok(if event.data.contains("\"functionCall\"") { Meaning::BlockStart } else { Meaning::Piece })
    }

    fn finish(&mut self, deltas: &mut VecDeque<Delta>) {
        self.calls.abandon(deltas);
    }
}

/// Shows no content of the answer.
impl fmt::Debug for GenerateContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GenerateContent").field("counts", &self.counts).finish_non_exhaustive()
    }
}

/// Returns the media in a part. Media in thoughts are drafts, and stay parts that only Gemini understands.
fn media(part: &Object<'_>) -> Option<Media> {
    if part.is_true(THOUGHT) {
        return None;
    }
    let mime = |fields: &Object<'_>| {
        fields
            .text("mimeType")
            .map_or_else(|| "application/octet-stream".to_owned(), |mime| mime.into_owned())
    };
    if let Some(data) = part.object("inlineData") {
        let bytes = STANDARD.decode(data.text("data")?.as_bytes()).ok()?;
        return Some(Media::from_bytes(mime(&data), bytes));
    }
    let file = part.object("fileData")?;
    Some(Media::from_url(mime(&file), Text::from(file.text("fileUri")?.as_ref())))
}
