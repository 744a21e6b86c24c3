//! Chat Completions as a [`WireFormat`]: converts one wire event to deltas.
//!
//! Apart from some state of earlier events, see [`ChatCompletions`], deltas are a function of the event. The aggregator does
//! everything else that needs more than one.
//!
//! **Reasoning** arrives under several names, sometimes under two at once with the same text. Each event yields
//! one: the first non-empty one of `reasoning_content`, `reasoning`, `thinking` parts of the content, and the
//! texts of `reasoning_details`. The raw details are kept beside it.
//!
//! **Order** within an event: reasoning, text, refusal, media, citations, tool calls, usage, finish reason.
//!
//! One path reads the answers of all servers. Of a profile, only `ThinkTags` changes it.

mod choices;
mod details;
mod finish;
#[cfg(test)]
mod tests;
mod think_tags;

use std::collections::{HashSet, VecDeque};

use advisor_core::{Citation, Delta, DeltaKind, Media, Opaque, ProviderData, Text, ToolCallDelta, Usage};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use provider_http::answer::{AnswerEvent, Framing, Meaning, WireFormat};
use provider_http::citation_of;
use provider_http::failure::Report;
use provider_http::json::{Json, is_nothing, read, value};
use serde_json::{Value, json};

use crate::audio::Audio;
use crate::profile::ThinkTags;
use crate::wire::{
    Choice, Delta as WireDelta, Event, Part, REASONING_DETAILS, Rare, TokenCounts, ToolCall, list_of,
};
use choices::{Choices, SeveralAnswers};
use details::Details;
use finish::finish_of;
use think_tags::ThinkTagSplitter;

/// One answer in the wire format of Chat Completions.
#[derive(Debug)]
pub(crate) struct ChatCompletions {
    /// The format name of data that goes back to the server.
    format: Text,
    /// Whether the id and the model of the answer were emitted. Nearly every event repeats them.
    sent_id: bool,
    sent_model: bool,
    /// Whether a delta arrived. A whole message after it only repeats the streamed text (Q49).
    streamed: bool,
    /// The number of sources already emitted. Perplexity repeats all of them in every event.
    citations: usize,
    /// The audio so far.
    audio: Audio,
    /// The raw details of reasoning that wait for more of the same.
    details: Details,
    text: ThinkTagSplitter,
    choices: Choices,
}

impl WireFormat for ChatCompletions {
    const FRAMING: Framing = Framing::Sse;
    const END_MARKER: Option<&'static str> = Some("[DONE]");
    // `p` is Mistral's padding, `token_id` is Together's.
    const IGNORED: &'static [&'static str] = &["obfuscation", "p", "token_id", "logprobs"];
    const USAGE: Option<&'static str> = Some("usage");

    fn read(&mut self, event: AnswerEvent<'_>, deltas: &mut VecDeque<Delta>) -> serde_json::Result<Meaning> {
        if !event.data.starts_with('{') {
            return Ok(Meaning::from_json(&value(event.data)?));
        }
        let mut object = Event::default();
        read(event.data, |json| object.read(json))?;
        if !object.is_answer {
            let meaning = Meaning::from_json(&value(event.data).unwrap_or_default());
            if meaning != Meaning::Unknown {
                return Ok(meaning);
            }
        }
        Ok(self.convert(&mut object, deltas))
    }

    /// Appends the deltas that were kept until the end of the answer.
    fn finish(&mut self, deltas: &mut VecDeque<Delta>) {
        let mut push = |kind: DeltaKind| deltas.push_back(kind.into());
        self.text.end(&mut push);
        self.end_details(&mut push);
        self.audio.end(&self.format).into_iter().for_each(push);
    }

    fn usage<'a>(&mut self, json: Json<'a>, usage: &mut Option<Usage>) -> Option<Json<'a>> {
        let mut counts = None::<TokenCounts>;
        let rest = json.object_in(&mut counts, TokenCounts::read)?;
        *usage = counts.and_then(|counts| counts.to_usage());
        Some(rest)
    }

    /// Checks whether an event like the last one, with this text, means the same: its text is no tag, its choice is known, and
    /// none of its audio is kept. Its details are noted.
    #[inline]
    fn repeat(&mut self, spelling: &str) -> bool {
        self.text.is_over()
            && self.choices.are_known()
            && self.audio.kept() == 0
            && (self.details.new == 0 || self.details.repeat(spelling))
    }

    fn kept(&self) -> usize {
        self.audio.kept()
    }
}

impl ChatCompletions {
    /// Creates a reader of an answer. `format` is the format name of data that goes back to the server.
    pub(crate) fn new(tags: ThinkTags, format: Text) -> Self {
        Self {
            format,
            sent_id: false,
            sent_model: false,
            streamed: false,
            citations: 0,
            audio: Audio::default(),
            details: Details::default(),
            text: ThinkTagSplitter::new(tags),
            choices: Choices::default(),
        }
    }

    /// Appends the deltas of `event` to `deltas`. Beside an error, or what mixes answers, any finish reason is dropped.
    // The event is large: it is converted where it is, without being moved.
    fn convert(&mut self, event: &mut Event<'_>, deltas: &mut VecDeque<Delta>) -> Meaning {
        let (mut error, mut mixes, mut is_whole) = (error_of(event.error), false, false);
        let before = deltas.len();
        self.origin(event, deltas);
        self.details.new = 0;
        for choice in event.choice.iter_mut().chain(&mut event.choices) {
            let repeats = self.streamed && !choice.is_streamed;
            match self.choices.read(choice, repeats) {
                Ok(true) => {
                    error = error.or_else(|| error_of(choice.error));
                    is_whole |= self.choice(choice, event.citations, deltas);
                }
                Ok(false) => {}
                Err(SeveralAnswers) => mixes = true,
            }
        }
        let mut counts = event.usage.iter().chain(event.groq_usage.as_deref());
        if let Some(usage) = counts.find_map(TokenCounts::to_usage) {
            deltas.push_back(Delta::usage(usage));
        }
        let error = error.or_else(|| error_of(event.groq_error));
        if error.is_some() || mixes {
            let new = deltas.split_off(before);
            deltas.extend(new.into_iter().filter(|delta| !matches!(delta.kind, DeltaKind::Finish(_))));
        }
        match error {
            Some(report) => Meaning::Failure(report),
            None if mixes => {
                Meaning::Contradiction("the server mixes several answers to one request; make it give one")
            }
            None if !event.is_answer => Meaning::Unknown,
            None if is_whole => Meaning::Whole,
            None => Meaning::Piece,
        }
    }

    #[inline(always)]
    fn origin(&mut self, event: &Event<'_>, deltas: &mut VecDeque<Delta>) {
        let is_known = |is_sent: bool, is_empty: bool| is_sent || is_empty;
        if is_known(self.sent_id, event.id.is_empty()) && is_known(self.sent_model, event.model.is_empty()) {
            return;
        }
        let id = event.id.text().filter(|_| !self.sent_id).map(Text::from);
        let model = event.model.text().filter(|_| !self.sent_model).map(Text::from);
        self.sent_id |= id.is_some();
        self.sent_model |= model.is_some();
        deltas.push_back(Delta::origin(id, model));
    }

    /// Converts a choice. Returns whether it is a whole answer and no event of a stream.
    #[inline(always)]
    fn choice(&mut self, choice: &mut Choice<'_>, citations: &str, deltas: &mut VecDeque<Delta>) -> bool {
        let mut is_whole = false;
        let mut push = |kind: DeltaKind| deltas.push_back(kind.into());
        if let Some(piece) = choice.piece.as_mut().filter(|_| choice.is_streamed || !self.streamed) {
            if choice.is_streamed {
                self.streamed = true;
            } else {
                is_whole = true;
                number_calls(piece);
            }
            self.delta(piece, &mut push);
        }
        if let Some(usage) = choice.usage.as_ref().and_then(|counts| counts.to_usage()) {
            push(DeltaKind::Usage(Box::new(usage)));
        }
        if let Some(reason) = choice.finish_reason() {
            self.end_details(&mut push);
            self.sources(citations, &mut push);
            push(DeltaKind::Finish(Box::new(finish_of(&reason))));
        }
        is_whole
    }

    fn delta(&mut self, delta: &mut WireDelta<'_>, push: &mut impl FnMut(DeltaKind)) {
        self.reasoning(delta, push);
        if delta.speaks() || delta.calls() {
            self.end_details(push);
        }
        if let Some(text) = delta.content.text() {
            self.text.push(&text, push);
        }
        for part in &delta.parts {
            self.part(part, push);
        }
        if let Some(refusal) = delta.refusal.text() {
            self.text.end(push);
            push(DeltaKind::Refusal(refusal.into()));
        }
        if let Some(rare) = &delta.rare {
            self.rare(rare, push);
        }
        self.tool_calls(delta, push);
    }

    fn rare(&mut self, rare: &Rare<'_>, push: &mut impl FnMut(DeltaKind)) {
        let mut push_other = |kind| {
            self.text.end(push);
            push(kind);
        };
        for image in list_of(rare.images) {
            push_other(match media_of("image_url", &image) {
                Some(media) => DeltaKind::Media(Box::new(media.into())),
                None => DeltaKind::Opaque(Box::new(Opaque::new(self.format.clone(), "image", image))),
            });
        }
        // Results of the server's own tools.
        for run in list_of(rare.executed_tools) {
            push_other(DeltaKind::Opaque(Box::new(Opaque::new(self.format.clone(), "executed_tools", run))));
        }
        if let Some(transcript) = self.audio.add(rare.audio) {
            push_other(DeltaKind::Text(transcript));
        }
        for annotation in list_of(rare.annotations) {
            let source = annotation.get("url_citation");
            let citation =
                source.and_then(|source| citation_of(source, [&["url"], &["title"], &["content"]]));
            citation.into_iter().for_each(|citation| push(DeltaKind::Citation(Box::new(citation))));
        }
    }

    /// Emits one text per event, by the precedence in the module documentation.
    #[inline(always)]
    fn reasoning(&mut self, delta: &WireDelta<'_>, push: &mut impl FnMut(DeltaKind)) {
        if !delta.reasons() {
            return;
        }
        let of_details = self.details.add(delta.reasoning_details);
        let field = delta.reasoning_content.text().or_else(|| delta.reasoning.text());
        let text = field.map(Text::from).unwrap_or_else(|| {
            let thinking: String = delta.parts.iter().map(|part| part.thinking.as_str()).collect();
            if thinking.is_empty() { Text::from(&of_details) } else { thinking.into() }
        });
        self.details.are_said = of_details == *text;
        if !text.is_empty() {
            push(DeltaKind::Reasoning(text));
            self.text.note_reasoning();
        }
        if self.details.are_long() {
            self.end_details(push);
        }
    }

    /// Emits the details so far, which the reasoning does not continue.
    fn end_details(&mut self, push: &mut impl FnMut(DeltaKind)) {
        if let Some(details) = self.details.end() {
            let data = json!({ REASONING_DETAILS: details });
            push(DeltaKind::ReasoningData(Box::new(ProviderData::new(self.format.clone(), data))));
        }
    }

    fn part(&mut self, part: &Part<'_>, push: &mut impl FnMut(DeltaKind)) {
        let kind = part.kind.text();
        match kind.as_deref() {
            Some("thinking") => {}
            Some("refusal") => {
                self.text.end(push);
                push(DeltaKind::Refusal(part.refusal.text().unwrap_or_default().into()));
            }
            _ if let Some(text) = part.text.text() => self.text.push(&text, push),
            None | Some("text" | "output_text") => {}
            Some(name) => {
                let value = value(part.raw).unwrap_or_default();
                self.text.end(push);
                push(match media_of(name, &value) {
                    Some(media) => DeltaKind::Media(Box::new(media.into())),
                    None => DeltaKind::Opaque(Box::new(Opaque::new(self.format.clone(), name, value))),
                });
            }
        }
    }

    /// Emits the sources of the whole answer, once, when it ends.
    fn sources(&mut self, citations: &str, push: &mut impl FnMut(DeltaKind)) {
        let sources = list_of(citations);
        for source in sources.iter().skip(self.citations) {
            let mut citation = Citation::default();
            citation.url = source.as_str().or_else(|| source.get("url")?.as_str()).map(Text::from);
            citation.title = source.get("title").and_then(Value::as_str).map(Text::from);
            push(DeltaKind::Citation(Box::new(citation)));
        }
        self.citations = self.citations.max(sources.len());
    }

    fn tool_calls(&mut self, delta: &mut WireDelta<'_>, push: &mut impl FnMut(DeltaKind)) {
        if delta.calls() {
            self.text.end(push);
        }
        let fragment_of = |call: &mut ToolCall<'_>| fragment_of(call, &self.format);
        match delta.tool_calls.as_mut_slice() {
            [] => {}
            [call] => push(Delta::tool_call(fragment_of(call)).kind),
            calls => push(DeltaKind::ToolCalls(calls.iter_mut().map(fragment_of).collect())),
        }
        if let Some(call) = delta.rare.as_mut().and_then(|rare| rare.function_call.as_mut()) {
            push(Delta::tool_call(fragment_of(call)).kind);
        }
    }
}

fn fragment_of(call: &mut ToolCall<'_>, format: &Text) -> ToolCallDelta {
    let mut fragment = ToolCallDelta::default();
    fragment.index = call.index;
    fragment.call_id = call.id.text().map(Text::from);
    fragment.name = call.name.text().map(Text::from);
    fragment.arguments_delta = call.arguments.text().map(Text::from);
    let mut extras = std::mem::take(&mut call.extras);
    if !call.function_extras.is_empty() {
        let of_function = std::mem::take(&mut call.function_extras);
        extras.insert("function".to_owned(), Value::Object(of_function));
    }
    fragment.provider_data =
        (!extras.is_empty()).then(|| ProviderData::new(format.clone(), Value::Object(extras)));
    fragment
}

/// Numbers the calls of a whole message by position, which is certain there, and removes repeated ids.
fn number_calls(message: &mut WireDelta<'_>) {
    let mut ids = HashSet::new();
    for (place, call) in (0..).zip(&mut message.tool_calls) {
        call.index = Some(place);
        if call.id.text().is_some_and(|id| !ids.insert(id)) {
            call.id = Default::default();
        }
    }
}

/// Returns the media of a part of this kind: at a URL, or those that a `data:` URL holds.
fn media_of(kind: &str, part: &Value) -> Option<Media> {
    let mime = match kind {
        "image_url" => "image/*",
        "audio_url" => "audio/*",
        "video_url" => "video/*",
        _ => return None,
    };
    let url = part.get(kind).unwrap_or(part);
    let url = url.as_str().or_else(|| url.get("url")?.as_str())?;
    let inline = url.strip_prefix("data:").and_then(|data| data.split_once(";base64,"));
    match inline {
        Some((mime, data)) => Some(Media::from_bytes(mime, STANDARD.decode(data).ok()?)),
        None => Some(Media::from_url(mime, Text::from(url))),
    }
}

/// Returns the failure that a field named `error` reports, if it reports one.
#[inline]
pub(crate) fn error_of(error: &str) -> Option<Box<Report>> {
    (!is_nothing(error)).then(|| Box::new(Report::read(&value(error).unwrap_or_default())))
}
