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
    Delta, DeltaKind, Finish, FinishReason, Media, MediaDelta, Opaque, ProviderData, Text, Usage,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use provider_http::answer::{AnswerEvent, Framing, Meaning, WireFormat};
use provider_http::failure::Report;
use provider_http::json::{self, Json, Str, is_nothing};
use serde_json::{Value, json};

use crate::wire::{COUNTS, End, Event, Part, SIGNATURE, SIGNED_BYTES, THOUGHT, TokenCounts, read_counts};
use calls::Calls;
use sources::Sources;

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
    /// Creates the format of an answer. `format` is the format name of the server's data.
    pub(crate) fn new(format: Text) -> Self {
        Self {
            format,
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
    fn event(&mut self, event: Event<'_>, deltas: &mut VecDeque<Delta>) -> Result<(), Box<Report>> {
        let is_named = !event.id.is_empty() || !event.model.is_empty();
        if is_named && !self.sent_origin {
            self.sent_origin = true;
            let [id, model] = [event.id, event.model].map(|word| word.text().as_deref().map(Text::from));
            deltas.push_back(Delta::origin(id, model));
        }
        let finish = event.candidate.map(|candidate| {
            self.part(candidate.first_part, deltas);
            candidate.other_parts.into_iter().for_each(|part| self.part(part, deltas));
            self.end(candidate.end, deltas)
        });
        deltas.extend(self.counts.update(event.counts).map(Delta::usage));
        // An answer to a blocked prompt has no candidates.
        let blocked =
            event.block_reason.text().map(|reason| Finish::written(FinishReason::ContentFilter, &*reason));
        deltas.extend(blocked.into_iter().chain(finish.transpose()?.flatten()).map(Delta::finish));
        Ok(())
    }

    /// Reads the list of all events, which is the body of an answer that was not asked for as events.
    fn list(&mut self, data: &str, deltas: &mut VecDeque<Delta>) -> serde_json::Result<Meaning> {
        let mut events = Vec::new();
        json::read(data, |json| json.list(|event| event.raw(events.push_mut(""))))?;
        let mut is_answer = false;
        for event in events.into_iter().filter(|event| !event.is_empty()) {
            match self.read(AnswerEvent { name: None, data: event }, deltas)? {
                Meaning::Piece => is_answer = true,
                failure @ Meaning::Failure(_) => return Ok(failure),
                _ => {}
            }
        }
        Ok(if is_answer { Meaning::Whole } else { Meaning::Unknown })
    }

    /// Emits a part.
    fn part(&mut self, part: Part<'_>, deltas: &mut VecDeque<Delta>) {
        if let Some(call) = part.call {
            self.begin_content(deltas);
            let signature = self.signature(part.signature);
            return self.calls.read(&call, signature, deltas);
        }
        let Some(kind) = part.other.text().filter(|_| part.text.is_empty()) else {
            return self.text(&part, deltas);
        };
        let Ok(whole) = json::value(part.whole) else { return };
        self.begin_content(deltas);
        // Media in thoughts are drafts, and stay parts that only Gemini understands.
        if let Some(media) = media(&whole).filter(|_| !part.is_thought) {
            let mut media = MediaDelta::from(media);
            media.provider_data = self.signature(part.signature);
            deltas.push_back(Delta::media(media));
        } else {
            let opaque = Opaque::new(self.format.clone(), &*kind, whole);
            deltas.push_back(DeltaKind::Opaque(Box::new(opaque)).into());
        }
    }

    /// Emits a text or a thought. Its signature goes to the block whose last bytes it signs, and ends that block:
    /// Google forbids to join a signed part with others.
    fn text(&mut self, part: &Part<'_>, deltas: &mut VecDeque<Delta>) {
        let text = part.text.text().unwrap_or_default();
        if !text.is_empty() {
            self.begin_content(deltas);
            deltas.push_back(if part.is_thought { Delta::reasoning(&*text) } else { Delta::text(&*text) });
        }
        let Some(signature) = part.signature.text() else { return };
        let data = match part.is_thought {
            true => json!({ SIGNATURE: signature, SIGNED_BYTES: text.len(), THOUGHT: true }),
            false => json!({ SIGNATURE: signature, SIGNED_BYTES: text.len() }),
        };
        self.held = Some(self.own(data));
        if self.has_content {
            self.begin_content(deltas);
        }
    }

    /// Returns the data of a part with this signature.
    fn signature(&self, signature: Str<'_>) -> Option<ProviderData> {
        Some(self.own(json!({ SIGNATURE: signature.text()? })))
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

    /// Emits the sources of a candidate at the end of the answer. Returns the finish reason; `None` also for the words for
    /// none (Q31).
    ///
    /// # Errors
    /// The failure that a finish reason names (Q67). An unknown reason without content is one, too. With content, a call
    /// without its end never runs; one that came whole does.
    fn end(&mut self, end: End<'_>, deltas: &mut VecDeque<Delta>) -> Result<Option<Finish>, Box<Report>> {
        let written = end.finish_reason.text();
        self.sources.read(end.grounding, end.url_context, &end.citations);
        self.ended |= written.is_some();
        if self.ended {
            self.sources.emit(deltas);
        }
        let Some(written) = written else { return Ok(None) };
        let reason = match &*written {
            "FINISH_REASON_UNSPECIFIED" | "null" => return Ok(None),
            "STOP" => FinishReason::Stop,
            "MAX_TOKENS" => FinishReason::Length,
            word if FILTERED.contains(&word) => FinishReason::ContentFilter,
            word if self.has_content && !FAILED.contains(&word) => FinishReason::Other(word.into()),
            word => {
                let mut report = Report::default();
                report.message = (&*end.finish_message.text().unwrap_or_default()).into();
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
    // Google sends none; some gateways do.
    const END_MARKER: Option<&'static str> = Some("[DONE]");
    const USAGE: Option<&'static str> = Some("usageMetadata");

    fn read(&mut self, event: AnswerEvent<'_>, deltas: &mut VecDeque<Delta>) -> serde_json::Result<Meaning> {
        if event.data.starts_with('[') {
            return self.list(event.data, deltas);
        }
        let wire = Event::read(event.data)?;
        if !wire.is_answer || !is_nothing(wire.error) {
            let meaning = Meaning::from_json(&json::value(event.data)?);
            if meaning != Meaning::Unknown || !wire.is_answer {
                return Ok(meaning);
            }
        }
        if let Err(report) = self.event(wire, deltas) {
            return Ok(Meaning::Failure(report));
        }
        self.calls.note_kept(event.data.len());
        Ok(Meaning::Piece)
    }

    fn usage<'a>(&mut self, json: Json<'a>, usage: &mut Option<Usage>) -> Option<Json<'a>> {
        let mut counts = [None; COUNTS.len()];
        let rest = read_counts(json, &mut counts)?;
        *usage = self.counts.update(counts);
        Some(rest)
    }

    /// A signature is data of its own, and an event with one never like the last.
    fn repeat(&mut self, _spelling: &str) -> bool {
        true
    }

    fn kept(&self) -> usize {
        self.calls.kept()
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

/// Returns the media in a part.
fn media(part: &Value) -> Option<Media> {
    let word = |fields: &Value, key: &str| Some(fields.get(key)?.as_str()?.to_owned());
    let mime = |fields| word(fields, "mimeType").unwrap_or_else(|| "application/octet-stream".to_owned());
    if let Some(data) = part.get("inlineData") {
        let bytes = STANDARD.decode(word(data, "data")?).ok()?;
        return Some(Media::from_bytes(mime(data), bytes));
    }
    let file = part.get("fileData")?;
    Some(Media::from_url(mime(file), word(file, "fileUri")?))
}
