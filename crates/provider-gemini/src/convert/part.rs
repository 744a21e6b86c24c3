//! A content and its parts: text, thoughts, calls, media, and parts that only Gemini understands.

use std::borrow::Cow;

use advisor_core::{Delta, DeltaKind, Media, MediaDelta, Opaque, ProviderData, Text};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::candidate::Candidate;
use crate::wire::{Object, SIGNATURE, SIGNED_BYTES, THOUGHT, text, value};

/// The fields of a part that are no content.
const NO_CONTENT: [&str; 6] =
    ["text", THOUGHT, SIGNATURE, "partMetadata", "mediaResolution", "videoMetadata"];

impl Candidate {
    /// Emits the parts of a content and, at the end of the answer, its sources.
    pub(super) fn content(&mut self, fields: &Object<'_>, push: &mut impl FnMut(Delta)) {
        for json in fields.object("content").unwrap_or_default().list("parts") {
            if let Some(part) = Object::read(json) {
                self.part(json, &part, push);
            }
        }
        self.sources.read(fields);
        self.ended |= fields.field("finishReason").is_some();
        if self.ended {
            self.sources.emit(push);
        }
    }

    /// Emits a part. `json` is the whole part.
    fn part(&mut self, json: &RawValue, part: &Object<'_>, push: &mut impl FnMut(Delta)) {
        let signature = part.text(SIGNATURE);
        let has_text = part.field("text").and_then(text).is_some_and(|text| !text.is_empty());
        let is_content = |name: &&str| !NO_CONTENT.contains(name) && part.field(name).is_some();
        if let Some(call) = part.object("functionCall") {
            self.begin_content(push);
            let signature = signature.map(|signature| self.own(json!({ SIGNATURE: signature })));
            self.calls.read(&call, signature, push);
        } else if let Some(media) = media(part) {
            self.begin_content(push);
            let mut media = MediaDelta::from(media);
            media.provider_data = signature.map(|signature| self.own(json!({ SIGNATURE: signature })));
            push(Delta::media(media));
        } else if let Some(kind) = part.names().find(is_content).filter(|_| !has_text) {
            self.begin_content(push);
            if let Some(part) = value(json) {
                push(DeltaKind::Opaque(Box::new(Opaque::new(self.format.clone(), kind, part))).into());
            }
        } else {
            self.text(part, push);
        }
    }

    /// Emits a text or a thought. Its signature goes to the block whose last bytes it signs, and ends that block:
    /// Google forbids to join a signed part with others.
    fn text(&mut self, part: &Object<'_>, push: &mut impl FnMut(Delta)) {
        let text = part.field("text").and_then(text).unwrap_or_default();
        if !text.is_empty() {
            self.begin_content(push);
            let is_thought = part.is_true(THOUGHT);
            push(if is_thought { Delta::reasoning(&*text) } else { Delta::text(&*text) });
        }
        let Some(signature) = part.text(SIGNATURE) else { return };
        let signed = self.own(signed_text(part, &signature, text.len()));
        if self.has_content {
            push(data(signed));
            push(DeltaKind::BlockEnd.into());
        } else {
            self.held = Some(signed);
        }
    }

    /// Makes data that goes back to the server.
    fn own(&self, value: Value) -> ProviderData {
        ProviderData::new(self.format.clone(), value)
    }

    /// Notes that something follows that is shown. An empty part before it gets a separate block; alone it would
    /// be an answer of nothing.
    fn begin_content(&mut self, push: &mut impl FnMut(Delta)) {
        self.has_content = true;
        if let Some(held) = self.held.take() {
            push(data(held));
            push(DeltaKind::BlockEnd.into());
        }
    }
}

fn data(data: ProviderData) -> Delta {
    DeltaKind::BlockData(Box::new(data)).into()
}

/// Returns the data of a block whose last bytes were a part with this signature.
fn signed_text(part: &Object<'_>, signature: &str, bytes: usize) -> Value {
    if part.is_true(THOUGHT) {
        json!({ SIGNATURE: signature, SIGNED_BYTES: bytes, THOUGHT: true })
    } else {
        json!({ SIGNATURE: signature, SIGNED_BYTES: bytes })
    }
}

/// Returns the media in a part. Media in thoughts are drafts, and stay parts that only Gemini understands.
fn media(part: &Object<'_>) -> Option<Media> {
    if part.is_true(THOUGHT) {
        return None;
    }
    if let Some(data) = part.object("inlineData") {
        let bytes = STANDARD.decode(data.text("data")?.as_bytes()).ok()?;
        return Some(Media::from_bytes(&*mime(&data), bytes));
    }
    let file = part.object("fileData")?;
    Some(Media::from_url(&*mime(&file), Text::from(file.text("fileUri")?.as_ref())))
}

fn mime<'a>(fields: &Object<'a>) -> Cow<'a, str> {
    fields.text("mimeType").unwrap_or(Cow::Borrowed("application/octet-stream"))
}
