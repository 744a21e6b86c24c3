//! Audio of an answer. It arrives in pieces that cannot be played alone, so it is emitted as a whole.

use std::fmt;

use advisor_core::{DeltaKind, Media, MediaDelta, Opaque, ProviderData, Text};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use provider_http::json::value;
use serde_json::{Map, Value, json};

use crate::wire::AUDIO;

/// The audio of an answer so far.
#[derive(Default)]
pub(crate) struct Audio {
    /// The data that goes back to the server: the id and its time of expiry.
    fields: Map<String, Value>,
    bytes: Vec<u8>,
    /// Base64 that is not decoded yet: the beginning of a group of four letters.
    rest: String,
    /// The bytes of the fields.
    ids: usize,
}

impl Audio {
    /// Adds a piece. Returns its part of the transcript.
    pub(crate) fn add(&mut self, json: &str) -> Option<Text> {
        if json.is_empty() {
            return None;
        }
        let Ok(Value::Object(mut piece)) = value(json) else { return None };
        if let Some(data) = piece.get("data").and_then(Value::as_str) {
            self.decode(data);
        }
        for key in ["id", "expires_at"] {
            if let Some(value) = piece.remove(key).filter(|value| !value.is_null()) {
                // A server may send ids of any length.
                self.ids = self.ids.saturating_add(json.len());
                self.fields.insert(key.to_owned(), value);
            }
        }
        let transcript = piece.get("transcript").and_then(Value::as_str)?;
        Some(transcript.into())
    }

    /// Decodes the groups of four letters that are complete. Each piece may end with its own padding.
    pub(crate) fn decode(&mut self, data: &str) {
        if self.rest.is_empty()
            && let Ok(bytes) = STANDARD.decode(data)
        {
            return self.bytes.extend(bytes);
        }
        self.rest.extend(data.chars().filter(|letter| !letter.is_ascii_whitespace()));
        let whole = self.rest.len() - self.rest.len() % 4;
        let Some((groups, rest)) = self.rest.split_at_checked(whole) else { return };
        for group in groups.as_bytes().chunks(4) {
            // Invalid base64 is left out, like a lost frame.
            self.bytes.extend(STANDARD.decode(group).unwrap_or_default());
        }
        self.rest = rest.to_owned();
    }

    /// Returns the bytes that are kept, at least.
    pub(crate) fn kept(&self) -> usize {
        self.bytes.len() + self.rest.len() + self.ids
    }

    /// Ends the audio. Returns it as media or, without bytes, as data that goes back to the server.
    pub(crate) fn end(&mut self, format: &Text) -> Option<DeltaKind> {
        let Self { fields, bytes, .. } = std::mem::take(self);
        if bytes.is_empty() {
            let id = fields.contains_key("id");
            return id.then(|| {
                DeltaKind::Opaque(Box::new(Opaque::new(format.clone(), AUDIO, Value::Object(fields))))
            });
        }
        let mut media = MediaDelta::from(Media::from_bytes(mime_of(&bytes), bytes));
        if !fields.is_empty() {
            media.provider_data = Some(ProviderData::new(format.clone(), json!({ AUDIO: fields })));
        }
        Some(DeltaKind::Media(Box::new(media)))
    }
}

/// Shows no content of the answer.
impl fmt::Debug for Audio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Audio").field("bytes", &self.bytes.len()).finish_non_exhaustive()
    }
}

/// Returns the type of audio by its first bytes, since an answer does not name it. Streamed audio is bare samples.
fn mime_of(bytes: &[u8]) -> &'static str {
    match bytes {
        [b'R', b'I', b'F', b'F', ..] => "audio/wav",
        [b'f', b'L', b'a', b'C', ..] => "audio/flac",
        [b'O', b'g', b'g', b'S', ..] => "audio/ogg",
        [b'I', b'D', b'3', ..] => "audio/mpeg",
        [0xFF, second, third, ..] if second & 0xF6 == 0xF0 && third >> 2 & 0xF < 13 => "audio/aac",
        // A frame of MPEG, layer 3, with a valid bit rate and sample rate.
        [0xFF, second, third, ..]
            if second & 0xE6 == 0xE2 && !matches!(third >> 4, 0 | 15) && third >> 2 & 3 != 3 =>
        {
            "audio/mpeg"
        }
        _ => "audio/pcm",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn law_r1_ids_count_as_kept() {
        let mut audio = Audio::default();
        assert_eq!(audio.add(&format!(r#"{{"id":"{}"}}"#, "x".repeat(1_000))), None);
        assert!(audio.kept() > 1_000, "{}", audio.kept());
    }

    #[test]
    fn base64_is_decoded_at_any_split() {
        let bytes: Vec<u8> = (0..=255).collect();
        let text = STANDARD.encode(&bytes);
        for at in 0..=text.len() {
            let mut audio = Audio::default();
            [&text[..at], &text[at..]].into_iter().for_each(|piece| audio.decode(piece));
            assert_eq!((&audio.bytes, audio.rest.as_str()), (&bytes, ""), "{at}");
        }
        // OpenAI encodes each piece by itself.
        let mut audio = Audio::default();
        bytes.chunks(5).for_each(|piece| audio.decode(&STANDARD.encode(piece)));
        assert_eq!(audio.bytes, bytes);
        audio.decode("no base64 !!ü");
    }

    #[test]
    fn type_is_known_by_the_first_bytes() {
        for (bytes, mime) in [
            (&b"RIFF\0\0\0\0WAVE"[..], "audio/wav"),
            (b"fLaC", "audio/flac"),
            (b"OggS", "audio/ogg"),
            (b"ID3\x04", "audio/mpeg"),
            (b"\xFF\xFB\x90\x64", "audio/mpeg"),
            (b"\xFF\xF1\x50\x80", "audio/aac"),
            (b"\xFF\xFF\xFF\xFF", "audio/pcm"),
            (b"\0\0\0\0", "audio/pcm"),
            (b"\xFF", "audio/pcm"),
        ] {
            assert_eq!(mime_of(bytes), mime, "{bytes:?}");
        }
    }
}
