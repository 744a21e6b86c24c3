//! Converts one wire event to deltas.
//!
//! [`Converter::convert`] is a function of the event, apart from some state of earlier events, see
//! [`Converter`]. The aggregator does everything else that needs more than one event.
//!
//! **Reasoning** arrives under several names, sometimes under two at once with the same text. Each event yields
//! one: the first non-empty one of `reasoning_content`, `reasoning`, `thinking` parts of the content, and the
//! texts of `reasoning_details`. The raw details are kept beside it.
//!
//! **Order** within an event: reasoning, text, refusal, media, citations, tool calls, usage, finish reason.
//!
//! One path reads the answers of all servers. Of a profile, only `TextMode` and `ThinkTags` change it.

mod choices;
mod finish;
mod indexes;
mod text;
mod think_tags;
mod whole;

use std::collections::VecDeque;

use advisor_core::{Citation, Delta, DeltaKind, Opaque, ProviderData, Text, ToolCallDelta};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::audio::Audio;
use crate::wire::{
    Choice, Content, Delta as WireDelta, Event, Few, Function, Part, REASONING_DETAILS, ToolCall, is_nothing,
    read,
};
use choices::{Choices, SeveralAnswers};
use finish::finish_of;
use indexes::CallIndexes;
use provider_http::failure::Report;
use text::AnswerText;
pub(crate) use text::TextForm;

/// Turns wire events into deltas.
#[derive(Debug)]
pub(crate) struct Converter {
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
    /// The numbers for calls whose indexes are no numbers.
    indexes: CallIndexes,
    text: AnswerText,
    choices: Choices,
}

/// The meaning of an event beside its deltas.
#[derive(Debug, Default)]
pub(crate) struct Converted {
    /// The failure that the server reports.
    pub(crate) error: Option<Report>,
    /// Whether the event may belong to another answer than those before it.
    pub(crate) mixes: bool,
    /// Whether the event is a whole answer and no event of a stream.
    pub(crate) whole: bool,
    /// Whether a text was split or held back, so that an equal event may mean something else.
    pub(crate) altered: bool,
}

impl Converter {
    pub(crate) fn new(text: TextForm, format: Text) -> Self {
        Self {
            format,
            sent_id: false,
            sent_model: false,
            streamed: false,
            citations: 0,
            audio: Audio::default(),
            indexes: CallIndexes::default(),
            text: AnswerText::new(text),
            choices: Choices::default(),
        }
    }

    /// Appends the deltas of `event` to `deltas`. Beside an error, or what mixes answers, any finish reason is dropped.
    // The event is large: it is converted where it is, without being moved.
    pub(crate) fn convert(&mut self, event: &mut Event<'_>, deltas: &mut VecDeque<Delta>) -> Converted {
        let mut converted = Converted { error: event.error.and_then(error_of), ..Converted::default() };
        let before = deltas.len();
        self.origin(event, deltas);
        for choice in event.choices.iter_mut().flat_map(Few::iter_mut) {
            let repeats = self.streamed && !choice.is_streamed();
            match self.choices.read(choice, repeats) {
                Ok(true) => self.choice(choice, event.citations, deltas, &mut converted),
                Ok(false) => {}
                Err(SeveralAnswers) => converted.mixes = true,
            }
        }
        let reported = event.usage.as_ref().and_then(|counts| counts.to_usage());
        let groq = event.x_groq.as_deref();
        if let Some(usage) = reported.or_else(|| groq?.usage?.to_usage()) {
            deltas.push_back(Delta::usage(usage));
        }
        converted.error = converted.error.or_else(|| groq?.error.and_then(error_of));
        converted.altered = self.text.take_altered() || !self.choices.are_decided();
        if converted.error.is_some() || converted.mixes {
            let new = deltas.split_off(before);
            deltas.extend(new.into_iter().filter(|delta| !matches!(delta.kind, DeltaKind::Finish(_))));
        }
        converted
    }

    /// Checks whether equal events give equal deltas.
    ///
    /// They do not if text is cumulative, if numbers of choices count tokens, or after an index that is not kept. The same holds after a piece of audio,
    /// which is kept until the end.
    pub(crate) fn is_repeatable(&self) -> bool {
        self.text.is_repeatable()
            && self.choices.are_repeatable()
            && !self.indexes.forgets()
            && self.audio.is_empty()
    }

    /// Returns the bytes that are kept until the end, at least.
    pub(crate) fn kept(&self) -> usize {
        self.audio.kept() + self.text.kept()
    }

    /// Appends the deltas that were kept until the end of the answer.
    pub(crate) fn finish(&mut self, deltas: &mut VecDeque<Delta>) {
        self.text.end(&mut |kind| deltas.push_back(kind.into()));
        deltas.extend(self.audio.end(&self.format).map(Delta::from));
    }

    #[inline(always)]
    fn origin(&mut self, event: &Event<'_>, deltas: &mut VecDeque<Delta>) {
        let id = event.id.text().filter(|_| !self.sent_id);
        let model = event.model.text().filter(|_| !self.sent_model);
        if id.is_none() && model.is_none() {
            return;
        }
        self.sent_id |= id.is_some();
        self.sent_model |= model.is_some();
        deltas.push_back(Delta::origin(id.map(Text::from), model.map(Text::from)));
    }

    #[inline(always)]
    fn choice(
        &mut self,
        choice: &mut Choice<'_>,
        citations: Option<&RawValue>,
        deltas: &mut VecDeque<Delta>,
        converted: &mut Converted,
    ) {
        converted.error = converted.error.take().or_else(|| choice.error.and_then(error_of));
        let mut push = |kind: DeltaKind| deltas.push_back(kind.into());
        if let Some(delta) = &mut choice.delta {
            self.streamed = true;
            self.delta(delta, &mut push);
        } else if let Some(message) = choice.message.as_deref_mut().filter(|_| !self.streamed) {
            converted.whole = true;
            whole::number_calls(message);
            self.delta(message, &mut push);
        }
        if let Some(usage) = choice.usage.as_ref().and_then(|counts| counts.to_usage()) {
            push(DeltaKind::Usage(Box::new(usage)));
        }
        if let Some(reason) = choice.finish_reason() {
            self.sources(citations, &mut push);
            push(DeltaKind::Finish(Box::new(finish_of(reason))));
        }
    }

    fn delta(&mut self, delta: &mut WireDelta<'_>, push: &mut impl FnMut(DeltaKind)) {
        let parts = match &delta.content {
            Content::Parts(parts) => parts.as_slice(),
            _ => &[],
        };
        if reasoning(delta, parts, &self.format, push) {
            self.text.note_reasoning();
        }
        if let Content::Text(text) = &delta.content
            && let Some(text) = text.text()
        {
            self.text.push(text, push);
        }
        for part in parts {
            self.part(part, push);
        }
        let text = &mut self.text;
        let mut push_other = |kind| {
            text.end(push);
            push(kind);
        };
        if let Some(refusal) = delta.refusal.text() {
            push_other(DeltaKind::Refusal(refusal.into()));
        }
        whole::media(delta, &self.format, &mut push_other);
        if let Some(transcript) = self.audio.add(delta.audio) {
            push_other(DeltaKind::Text(transcript));
        }
        for citation in list_of(delta.annotations).iter().filter_map(whole::citation_of) {
            push(DeltaKind::Citation(Box::new(citation)));
        }
        self.tool_calls(delta, push);
    }

    fn part(&mut self, Part { raw, fields: part }: &Part<'_>, push: &mut impl FnMut(DeltaKind)) {
        match part.kind.text() {
            Some("thinking") => {}
            Some("refusal") => {
                self.text.end(push);
                push(DeltaKind::Refusal(part.refusal.text().unwrap_or_default().into()));
            }
            _ if part.text.text().is_some() => {
                self.text.push(part.text.text().unwrap_or_default(), push);
            }
            None | Some("text" | "output_text") => {}
            Some(name) => {
                let value = read(raw.get()).unwrap_or_default();
                self.text.end(push);
                push(match whole::media_of(name, &value) {
                    Some(media) => DeltaKind::Media(Box::new(media.into())),
                    None => DeltaKind::Opaque(Box::new(Opaque::new(self.format.clone(), name, value))),
                });
            }
        }
    }

    /// Emits the sources of the whole answer, once, when it ends.
    fn sources(&mut self, citations: Option<&RawValue>, push: &mut impl FnMut(DeltaKind)) {
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
        let calls = delta.tool_calls.take().into_iter().flatten();
        let mut fragments: Vec<ToolCallDelta> = calls.map(|call| self.fragment_of(call)).collect();
        if !fragments.is_empty() || delta.function_call.is_some() {
            self.text.end(push);
        }
        match fragments.len() {
            0 => {}
            1 => fragments.pop().into_iter().for_each(|fragment| push(Delta::tool_call(fragment).kind)),
            _ => push(DeltaKind::ToolCalls(fragments)),
        }
        if let Some(function) = delta.function_call.take() {
            let call = ToolCall { function: *function, ..ToolCall::default() };
            push(Delta::tool_call(self.fragment_of(call)).kind);
        }
    }

    fn fragment_of(&mut self, call: ToolCall<'_>) -> ToolCallDelta {
        let Function { name, arguments, extras } = call.function;
        let mut fragment = ToolCallDelta::default();
        fragment.index = self.indexes.number_of(call.index);
        fragment.call_id = call.id.text().map(Text::from);
        fragment.name = name.text().map(Text::from);
        fragment.arguments_delta = arguments.text().map(Text::from);
        fragment.provider_data = whole::extras_of(call.extras, extras, &self.format);
        fragment
    }
}

/// Returns the entries of a list; none if the JSON is something else.
fn list_of(json: Option<&RawValue>) -> Vec<Value> {
    json.and_then(|json| read(json.get())).unwrap_or_default()
}

fn error_of(error: &RawValue) -> Option<Report> {
    if is_nothing(error) {
        return None;
    }
    Some(read(error.get()).map(|value| Report::read(&value)).unwrap_or_default())
}

/// Emits one text per event, by the precedence in the module documentation, then the raw details. Returns whether there
/// is such a text.
fn reasoning(
    delta: &WireDelta<'_>,
    parts: &[Part<'_>],
    format: &Text,
    push: &mut impl FnMut(DeltaKind),
) -> bool {
    let details = list_of(delta.reasoning_details);
    let text = delta.reasoning_content.text().or_else(|| delta.reasoning.text()).map(Text::from);
    let text = text.or_else(|| {
        let thinking: String = parts.iter().map(|part| part.fields.thinking.0.as_str()).collect();
        let text = if thinking.is_empty() { whole::text_of_details(&details) } else { thinking };
        (!text.is_empty()).then(|| text.into())
    });
    let has_text = text.is_some();
    text.into_iter().for_each(|text| push(DeltaKind::Reasoning(text)));
    if !details.is_empty() {
        push(DeltaKind::ReasoningData(Box::new(ProviderData::new(
            format.clone(),
            json!({ REASONING_DETAILS: details }),
        ))));
    }
    has_text
}

#[cfg(test)]
mod tests;
