//! The wire format of `generateContent`, as servers really send it.
//!
//! One event of a stream and a whole answer have the same form: candidates, each with parts of a content.

use advisor_core::{Text, Usage};
use provider_http::json::{self, Json, Key, Str, count};
use serde_json::Value;

/// The format name of provider data from Google's Gemini API, and of reports that are for the user only.
pub(crate) const FORMAT: &str = "gemini";
/// The host of Google's Gemini API.
const GEMINI_HOST: &str = "generativelanguage.googleapis.com";
/// The host of Vertex AI. That of a location has a prefix such as `us-east1-`.
const VERTEX_HOST: &str = "aiplatform.googleapis.com";
/// The key of a part that signs the model's thoughts. The signature must go back on the same part (Q66).
pub(crate) const SIGNATURE: &str = "thoughtSignature";
/// The key of the number of bytes at the end of a block that were the signed part. No field of the API.
pub(crate) const SIGNED_BYTES: &str = "signedBytes";
/// The key that marks a part as a thought.
pub(crate) const THOUGHT: &str = "thought";
/// The token counts that are read.
pub(crate) const COUNTS: [&str; 6] = [
    "promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "totalTokenCount",
    "cachedContentTokenCount", "toolUsePromptTokenCount",
];

/// The fields of an event.
#[derive(Default)]
pub(crate) struct Event<'a> {
    /// Whether it has a field of an answer.
    pub(crate) is_answer: bool,
    pub(crate) id: Str<'a>,
    pub(crate) model: Str<'a>,
    pub(crate) error: &'a str,
    /// The reason for blocking the prompt.
    pub(crate) block_reason: Str<'a>,
    pub(crate) counts: [Option<i64>; COUNTS.len()],
    pub(crate) candidate: Option<Candidate<'a>>,
}

/// The first candidate of an event.
#[derive(Default)]
pub(crate) struct Candidate<'a> {
    /// Nearly every event has one part.
    pub(crate) first_part: Part<'a>,
    pub(crate) other_parts: Vec<Part<'a>>,
    pub(crate) end: End<'a>,
}

/// The fields of a candidate beside its content.
#[derive(Default)]
pub(crate) struct End<'a> {
    pub(crate) finish_reason: Str<'a>,
    pub(crate) finish_message: Str<'a>,
    pub(crate) grounding: Value,
    pub(crate) url_context: Value,
    pub(crate) citations: Value,
}

/// A part of a content. One of an unexpected form is an empty text.
#[derive(Default)]
pub(crate) struct Part<'a> {
    pub(crate) text: Str<'a>,
    pub(crate) is_thought: bool,
    pub(crate) signature: Str<'a>,
    pub(crate) call: Option<Call<'a>>,
    /// The name of another field with content, and the whole part if there is one.
    pub(crate) other: Str<'a>,
    pub(crate) whole: &'a str,
}

/// A call, or a piece of one.
#[derive(Default)]
pub(crate) struct Call<'a> {
    pub(crate) is_empty: bool,
    pub(crate) id: Str<'a>,
    pub(crate) name: Str<'a>,
    /// An object, which some servers write into a text.
    pub(crate) args: Str<'a>,
    pub(crate) pieces: Value,
    /// Whether more pieces follow.
    pub(crate) continues: bool,
}

impl<'a> Event<'a> {
    pub(crate) fn read(data: &'a str) -> serde_json::Result<Self> {
        let mut event = Self::default();
        json::read(data, |json| json.object(|key| event.field(key)))?;
        Ok(event)
    }

    fn field(&mut self, key: Key<'a>) -> Option<Json<'a>> {
        if let Some(value) = key.is("candidates") {
            self.is_answer |= value.is_list();
            self.candidate = None;
            value.list(|candidate| {
                if self.candidate.is_some() || !candidate.is_object() {
                    return candidate.skip();
                }
                let first = self.candidate.insert(Candidate::default());
                candidate.object(|key| first.field(key))
            })
        } else if let Some(value) = key.is("usageMetadata") {
            self.is_answer |= value.is_object();
            read_counts(value, &mut self.counts)
        } else {
            let (name, value) = key.split()?;
            match name.spelling() {
                "modelVersion" => value.text(&mut self.model),
                "responseId" => value.text(&mut self.id),
                "error" => value.raw(&mut self.error),
                "promptFeedback" => {
                    self.is_answer |= value.is_object();
                    value.object(|key| match key.is("blockReason") {
                        Some(value) => value.text(&mut self.block_reason),
                        None => key.skip(),
                    })
                }
                _ => value.skip(),
            }
        }
    }
}

/// Reads token counts.
pub(crate) fn read_counts<'a>(json: Json<'a>, places: &mut [Option<i64>; COUNTS.len()]) -> Option<Json<'a>> {
    json.object(|key| {
        let counts = COUNTS.iter().zip(&mut *places);
        let mut counts = counts.filter_map(|(name, place)| Some((key.is(name)?, place)));
        match counts.next() {
            Some((value, place)) => value.number(place),
            None => key.skip(),
        }
    })
}

impl<'a> Candidate<'a> {
    fn field(&mut self, key: Key<'a>) -> Option<Json<'a>> {
        if let Some(value) = key.is("content") {
            (self.first_part, self.other_parts) = Default::default();
            let mut parts = 0;
            value.object(|key| match key.is("parts") {
                Some(value) => value.list(|part| {
                    parts += 1;
                    let first = &mut self.first_part;
                    let place = if parts == 1 { first } else { self.other_parts.push_mut(Part::default()) };
                    place.read(part)
                }),
                None => key.skip(),
            })
        } else {
            let (name, value) = key.split()?;
            match name.spelling() {
                "finishReason" => value.text(&mut self.end.finish_reason),
                "finishMessage" => value.text(&mut self.end.finish_message),
                "groundingMetadata" => value.value(&mut self.end.grounding),
                "urlContextMetadata" => value.value(&mut self.end.url_context),
                "citationMetadata" => value.value(&mut self.end.citations),
                _ => value.skip(),
            }
        }
    }
}

impl<'a> Part<'a> {
    fn read(&mut self, json: Json<'a>) -> Option<Json<'a>> {
        let rest = json.object(|key| {
            if let Some(value) = key.is("text") {
                return value.text(&mut self.text);
            }
            let (name, value) = key.split()?;
            match name.spelling() {
                THOUGHT => flag(value, &mut self.is_thought),
                SIGNATURE => value.text(&mut self.signature),
                "functionCall" if value.is_object() => {
                    let call = self.call.insert(Call { is_empty: true, ..Call::default() });
                    value.object(|key| call.field(key))
                }
                "partMetadata" | "mediaResolution" | "videoMetadata" => value.skip(),
                _ => {
                    let mut other = "";
                    let rest = value.raw(&mut other)?;
                    if self.other.is_empty() && !other.is_empty() {
                        self.other = name;
                    }
                    Some(rest)
                }
            }
        })?;
        if !self.other.is_empty() {
            json.raw(&mut self.whole)?;
        }
        Some(rest)
    }
}

impl<'a> Call<'a> {
    fn field(&mut self, key: Key<'a>) -> Option<Json<'a>> {
        self.is_empty = false;
        let (name, value) = key.split()?;
        match name.spelling() {
            "id" => value.text(&mut self.id),
            "name" => value.text(&mut self.name),
            "args" => value.text_or_json(&mut self.args),
            "partialArgs" => value.value(&mut self.pieces),
            "willContinue" => flag(value, &mut self.continues),
            _ => value.skip(),
        }
    }
}

/// Reads a boolean.
fn flag<'a>(json: Json<'a>, place: &mut bool) -> Option<Json<'a>> {
    let mut spelling = "";
    let rest = json.raw(&mut spelling)?;
    *place = spelling == "true";
    Some(rest)
}

/// Returns the format name of data from this host. A server refuses the signatures of another one, the Gemini API and
/// Vertex AI those of each other, so the name contains the host.
pub(crate) fn format_of(host: &str) -> Text {
    let host = host.to_ascii_lowercase();
    match host.as_str() {
        GEMINI_HOST => FORMAT.into(),
        _ if host.ends_with(VERTEX_HOST) => format!("{FORMAT}@{VERTEX_HOST}").into(),
        _ => format!("{FORMAT}@{host}").into(),
    }
}

/// The token counts of an answer so far. Each event has those of the whole answer: a lower or missing one takes nothing
/// back.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct TokenCounts([Option<u64>; COUNTS.len()]);

impl TokenCounts {
    /// Takes the counts of an event, and returns all so far; `None` if the event has none.
    ///
    /// Gemini counts the results of its own tools apart from the prompt, and thoughts apart from the answer. They are
    /// added here, because the input includes everything that the model read, and the output everything it wrote.
    pub(crate) fn update(&mut self, counts: [Option<i64>; COUNTS.len()]) -> Option<Usage> {
        let counts = counts.map(count);
        self.0.iter_mut().zip(counts).for_each(|(own, count)| *own = count.max(*own));
        let [prompt, answer, thoughts, total, cached, tool_results] = self.0;
        let sum = |one: Option<u64>, other| one.into_iter().chain(other).reduce(u64::saturating_add);
        let mut usage = Usage::default();
        usage.input_tokens = sum(prompt, tool_results);
        usage.output_tokens = sum(answer, thoughts);
        usage.total_tokens = total;
        usage.cached_input_tokens = cached;
        usage.reasoning_tokens = thoughts;
        counts.iter().any(Option::is_some).then_some(usage)
    }
}
