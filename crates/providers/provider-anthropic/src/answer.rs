//! The Messages API as a [`WireFormat`]: converts one wire event to deltas.
//!
//! Text, thinking and the arguments of calls are passed on as they arrive, under the server's number of their block.
//! A block of any other kind is passed on at its end, as an opaque one. Only the server understands it, and gets it
//! back unchanged. Tools that the server runs are such blocks. They are no tool calls.

mod open_blocks;
#[cfg(test)]
mod tests;
mod usage;

use std::collections::VecDeque;
use std::fmt;

use advisor_core::{Delta, DeltaKind, Finish, FinishReason, ProviderData, Text, ToolCallDelta};
use provider_http::answer::{AnswerEvent, Framing, Meaning, WireFormat};
use provider_http::citation_of;
use provider_http::failure::Report;
use provider_http::json::{self, Json, Key, Str, is_nothing};
use serde_json::{Map, Value, json};

use crate::wire::{CITATION, CONTAINER, SIGNATURE, STOP_DETAILS};
use open_blocks::{Content, OpenBlock, OpenBlocks};
use usage::TokenCounts;

/// The words for each finish reason, of the API reference (Messages, `stop_reason`). A word that is missing here lets only
/// those calls run whose block has ended.
const WORDS: [(FinishReason, &[&str]); 5] = [
    (FinishReason::Stop, &["end_turn", "stop_sequence"]),
    (FinishReason::Length, &["max_tokens", "model_context_window_exceeded"]),
    (FinishReason::ToolCalls, &["tool_use"]),
    (FinishReason::Refusal, &["refusal"]),
    // After a compaction that the request asked to pause at, the answer continues in the next request, too.
    (FinishReason::Paused, &["pause_turn", "compaction"]),
];

/// One answer of the Messages API.
pub(crate) struct Messages {
    /// The format name of the server's data.
    format: Text,
    counts: TokenCounts,
    blocks: OpenBlocks,
    /// The number of the last block that has begun.
    last: Option<i64>,
    /// The container that the beginning of the message named.
    container: Option<Value>,
    /// Whether the last event was a piece of a block. Others come once for a block.
    is_piece: bool,
}

/// The fields of an event.
#[derive(Default)]
struct Event<'a> {
    kind: Str<'a>,
    index: Option<i64>,
    delta: &'a str,
    content_block: &'a str,
    message: &'a str,
    usage: &'a str,
}

/// The fields of a message, or those that change at its end.
#[derive(Default)]
struct WireMessage<'a> {
    id: Str<'a>,
    model: Str<'a>,
    content: Option<Vec<&'a str>>,
    usage: &'a str,
    container: Value,
    stop_details: Value,
    stop_reason: Str<'a>,
}

/// A block of content, or a piece of one.
#[derive(Default)]
struct Piece<'a> {
    kind: Str<'a>,
    text: Str<'a>,
    thinking: Str<'a>,
    partial_json: Str<'a>,
    signature: Str<'a>,
    citations: Vec<Value>,
}

impl Messages {
    /// Creates the format of an answer. `format` is the format name of the server's data.
    pub(crate) fn new(format: Text) -> Self {
        Self {
            format,
            counts: TokenCounts::default(),
            blocks: OpenBlocks::default(),
            last: None,
            container: None,
            is_piece: false,
        }
    }

    /// Converts the beginning of a message, or one that was not streamed.
    fn message(&mut self, message: &WireMessage<'_>, deltas: &mut VecDeque<Delta>) {
        let word = |word: Str<'_>| word.text().as_deref().map(Text::from);
        let (id, model) = (word(message.id), word(message.model));
        if id.is_some() || model.is_some() {
            deltas.push_back(Delta::origin(id, model));
        }
        self.container = Some(message.container.clone()).filter(Value::is_object);
        self.usage(message.usage, deltas);
        // The blocks of a streamed message follow it.
        for (position, block) in message.content.iter().flatten().enumerate() {
            let number = i64::try_from(position).ok();
            self.begin_block(number, block, 0, deltas);
            self.end_block(number, deltas);
        }
    }

    /// Converts the beginning of a block. `bytes` are those of its event.
    fn begin_block(&mut self, number: Option<i64>, block: &str, bytes: usize, deltas: &mut VecDeque<Delta>) {
        let (number, replaced) = self.blocks.begin(number);
        self.last = Some(number);
        if let Some(block) = replaced {
            self.pass_rest(block, deltas);
        }
        let piece = Piece::read(block);
        let content = if piece.kind.is("text") || piece.kind.is("thinking") {
            self.content(number, piece, deltas);
            Content::Streamed
        } else if piece.kind.is("tool_use") {
            let (start, input) = self.call_start(number, block);
            deltas.push_back(Delta::tool_call(start));
            Content::Call { input }
        } else {
            Content::Kept { fields: fields_of(block), input: String::new() }
        };
        self.blocks.push(OpenBlock { number, content }, bytes);
    }

    /// Converts a piece of a block.
    fn block_delta(&mut self, event: &Event<'_>, bytes: usize, deltas: &mut VecDeque<Delta>) {
        let Some(block) = self.blocks.find(event.index) else {
            // Its beginning is missing. The content is kept nevertheless.
            return self.content(event.index.unwrap_or_default(), Piece::read(event.delta), deltas);
        };
        let number = block.number;
        if let Content::Kept { .. } = block.content {
            block.content.extend(fields_of(event.delta));
            return self.blocks.note_kept(bytes);
        }
        let piece = Piece::read(event.delta);
        if let Content::Call { input } = &mut block.content
            && !piece.partial_json.is_empty()
        {
            *input = None;
        }
        self.content(number, piece, deltas);
    }

    fn end_block(&mut self, number: Option<i64>, deltas: &mut VecDeque<Delta>) {
        let Some(block) = self.blocks.end(number) else { return };
        let (number, is_whole) = (block.number, matches!(block.content, Content::Kept { .. }));
        self.pass_rest(block, deltas);
        if !is_whole {
            deltas.push_back(Delta::from(DeltaKind::BlockEnd).with_block(number));
        }
    }

    /// Converts the end of a message: its reports and its finish reason.
    ///
    /// The reports are attached to the last block: the container of code that ran, and the reason for a refusal. A message
    /// without a block keeps only the latter, on an empty text.
    fn message_end(&self, message: &WireMessage<'_>, deltas: &mut VecDeque<Delta>) {
        let container =
            Some(&message.container).filter(|value| value.is_object()).or(self.container.as_ref());
        let details = Some(&message.stop_details).filter(|value| value.is_object());
        if details.is_some() || (container.is_some() && self.last.is_some()) {
            let reports = [(CONTAINER, container), (STOP_DETAILS, details)].into_iter();
            let reports: Map<_, _> =
                reports.filter_map(|(key, report)| Some((key.to_owned(), report?.clone()))).collect();
            self.push_data(self.last.unwrap_or_default(), Value::Object(reports), deltas);
        }
        if let Some(written) = message.stop_reason.text() {
            let known = WORDS.into_iter().find(|(_, words)| words.contains(&&*written));
            let reason = known.map_or_else(|| FinishReason::Other((&*written).into()), |(reason, _)| reason);
            deltas.push_back(Delta::finish(Finish::written(reason, &*written)));
        }
    }

    fn usage(&mut self, usage: &str, deltas: &mut VecDeque<Delta>) {
        if self.counts.update(&json::value(usage).unwrap_or_default()) {
            deltas.push_back(Delta::usage(self.counts.to_usage()));
        }
    }

    /// Pushes the content of a piece of a block, or of the beginning of a text.
    fn content(&self, number: i64, piece: Piece<'_>, deltas: &mut VecDeque<Delta>) {
        let mut push = |kind: DeltaKind| deltas.push_back(Delta::from(kind).with_block(number));
        if let Some(text) = piece.text.text() {
            push(DeltaKind::Text((&*text).into()));
        }
        if let Some(thinking) = piece.thinking.text() {
            push(DeltaKind::Reasoning((&*thinking).into()));
        }
        if let Some(signature) = piece.signature.text() {
            let data = ProviderData::new(self.format.clone(), json!({ SIGNATURE: signature }));
            push(DeltaKind::ReasoningData(Box::new(data)));
        }
        if let Some(piece) = piece.partial_json.text() {
            deltas.push_back(Delta::tool_call(ToolCallDelta::arguments(number, &*piece)));
        }
        for cited in piece.citations {
            let keys: [&[&str]; 3] =
                [&["url", "source"], &["title", "document_title"], &["cited_text", "quote"]];
            let citation = citation_of(&cited, keys).unwrap_or_default();
            // One is for the user, and one goes back to the server with the text of its block.
            self.push_data(number, json!({ CITATION: cited }), deltas);
            deltas.push_back(DeltaKind::Citation(Box::new(citation)).into());
        }
    }

    /// Returns the beginning of a call, and its input if there is one. Nearly every server sends an empty object there.
    /// Fields that this crate does not know go back with the call.
    fn call_start(&self, number: i64, block: &str) -> (ToolCallDelta, Option<String>) {
        let (mut id, mut name, mut input) = (Str::default(), Str::default(), "");
        let mut others = Map::new();
        read_fields(block, |key| {
            let (key, value) = key.split()?;
            match key.spelling() {
                "type" => value.skip(),
                "id" => value.text(&mut id),
                "name" => value.text(&mut name),
                "input" => value.raw(&mut input),
                other => value.value(others.entry(other).or_insert(Value::Null)),
            }
        });
        others.retain(|_, value| !value.is_null());
        let word = |word: Str<'_>| word.text().unwrap_or_default().into_owned();
        let mut start = ToolCallDelta::start(number, word(id), word(name));
        start.provider_data =
            (!others.is_empty()).then(|| ProviderData::new(self.format.clone(), Value::Object(others)));
        (start, (!is_nothing(input)).then(|| input.to_owned()))
    }

    /// Pushes the kept content of a block.
    fn pass_rest(&self, block: OpenBlock, deltas: &mut VecDeque<Delta>) {
        match block.content {
            Content::Streamed | Content::Call { input: None } => {}
            Content::Call { input: Some(input) } => {
                deltas.push_back(Delta::tool_call(ToolCallDelta::arguments(block.number, input)));
            }
            Content::Kept { fields, input } => {
                let opaque = open_blocks::opaque(fields, input, &self.format);
                let opaque = DeltaKind::Opaque(Box::new(opaque));
                deltas.push_back(Delta::from(opaque).with_block(block.number));
            }
        }
    }

    fn push_data(&self, number: i64, value: Value, deltas: &mut VecDeque<Delta>) {
        let data = DeltaKind::BlockData(Box::new(ProviderData::new(self.format.clone(), value)));
        deltas.push_back(Delta::from(data).with_block(number));
    }
}

impl WireFormat for Messages {
    const FRAMING: Framing = Framing::Sse;
    // Anthropic ends an answer with `message_stop`. Gateways send this marker in addition, or in its place.
    const END_MARKER: Option<&'static str> = Some("[DONE]");

    fn repeat(&mut self, _spelling: &str) -> bool {
        self.is_piece
    }

    fn read(&mut self, event: AnswerEvent<'_>, deltas: &mut VecDeque<Delta>) -> serde_json::Result<Meaning> {
        let wire = Event::read(event.data)?;
        let bytes = event.data.len();
        let kind = wire.kind.text();
        let kind = kind.as_deref().or(event.name).unwrap_or_default();
        self.is_piece = kind == "content_block_delta";
        match kind {
            "content_block_delta" => self.block_delta(&wire, bytes, deltas),
            "message_start" => self.message(&WireMessage::read(wire.message), deltas),
            "content_block_start" => self.begin_block(wire.index, wire.content_block, bytes, deltas),
            "content_block_stop" => self.end_block(wire.index, deltas),
            "message_delta" => {
                self.usage(wire.usage, deltas);
                self.message_end(&WireMessage::read(wire.delta), deltas);
            }
            "message_stop" => deltas.push_back(Delta::done()),
            "ping" => return Ok(Meaning::KeepAlive),
            "error" => {
                let error = json::value(event.data)?;
                let report = Report::find(&error).unwrap_or_else(|| Report::read(&error));
                return Ok(Meaning::Failure(Box::new(report)));
            }
            kind => {
                let message = WireMessage::read(event.data);
                if kind != "message" || message.content.is_none() {
                    return Ok(Meaning::from_json(&json::value(event.data)?));
                }
                self.message(&message, deltas);
                self.message_end(&message, deltas);
                return Ok(Meaning::Whole);
            }
        }
        Ok(Meaning::Piece)
    }

    fn kept(&self) -> usize {
        self.blocks.kept()
    }

    /// Passes on the rest of blocks without an end.
    fn finish(&mut self, deltas: &mut VecDeque<Delta>) {
        self.blocks.end_all().into_iter().for_each(|block| self.pass_rest(block, deltas));
    }
}

/// Shows no content of the answer.
impl fmt::Debug for Messages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Messages").field("counts", &self.counts).finish_non_exhaustive()
    }
}

impl<'a> Event<'a> {
    fn read(data: &'a str) -> serde_json::Result<Self> {
        let mut event = Self::default();
        let field = |key: Key<'a>| {
            let (key, value) = key.split()?;
            match key.spelling() {
                "type" => value.text(&mut event.kind),
                "index" => value.number(&mut event.index),
                "delta" => value.raw(&mut event.delta),
                "content_block" => value.raw(&mut event.content_block),
                "message" => value.raw(&mut event.message),
                "usage" => value.raw(&mut event.usage),
                _ => value.skip(),
            }
        };
        json::read(data, |json| json.object(field))?;
        Ok(event)
    }
}

impl<'a> WireMessage<'a> {
    fn read(raw: &'a str) -> Self {
        let mut message = Self::default();
        read_fields(raw, |key| {
            let (key, value) = key.split()?;
            match key.spelling() {
                "id" => value.text(&mut message.id),
                "model" => value.text(&mut message.model),
                "content" if value.is_list() => {
                    let content = message.content.insert(Vec::new());
                    value.list(|block| block.raw(content.push_mut("")))
                }
                "usage" => value.raw(&mut message.usage),
                CONTAINER => value.value(&mut message.container),
                STOP_DETAILS => value.value(&mut message.stop_details),
                "stop_reason" => value.text(&mut message.stop_reason),
                _ => value.skip(),
            }
        });
        message
    }
}

impl<'a> Piece<'a> {
    fn read(raw: &'a str) -> Self {
        let mut piece = Self::default();
        read_fields(raw, |key| {
            let (key, value) = key.split()?;
            match key.spelling() {
                "type" => value.text(&mut piece.kind),
                "text" => value.text(&mut piece.text),
                "thinking" => value.text(&mut piece.thinking),
                "partial_json" => value.text(&mut piece.partial_json),
                "signature" => value.text(&mut piece.signature),
                "citation" => value.value(piece.citations.push_mut(Value::Null)),
                "citations" => value.list(|cited| cited.value(piece.citations.push_mut(Value::Null))),
                _ => value.skip(),
            }
        });
        piece
    }
}

/// Reads the fields of an object in an event that was checked; those of anything else are none.
fn read_fields<'a>(raw: &'a str, field: impl FnMut(Key<'a>) -> Option<Json<'a>>) {
    let _checked = json::read(raw, |json| json.object(field));
}

/// Returns the fields of an object in an event that was checked; those of anything else are none.
fn fields_of(raw: &str) -> Map<String, Value> {
    match json::value(raw) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}
