//! Converts one wire event to deltas.
//!
//! Text, thinking and the arguments of calls are passed on as they arrive, under the server's number of their block.
//! A block of any other kind is passed on at its end, as an opaque one. Only the server understands it, and gets it
//! back unchanged. Tools that the server runs are such blocks. They are no tool calls.

mod finish;
mod open_block;
mod open_blocks;

use std::collections::VecDeque;
use std::fmt;

use advisor_core::{Citation, Delta, DeltaKind, ProviderData, Text, ToolCallDelta};
use serde_json::{Map, Value, json};

use crate::wire::{
    CITATION, CONTAINER, REPORTS, SIGNATURE, STOP_DETAILS, TokenCounts, block_number, list, object, text,
};
use finish::finish_of;
use open_block::{KeptBlock, OpenBlock, OpenContent};
use open_blocks::OpenBlocks;

/// Turns wire events into deltas.
pub(crate) struct Converter {
    /// The format name of the server's data.
    format: Text,
    counts: TokenCounts,
    blocks: OpenBlocks,
    /// The number of the last block that has begun.
    last: Option<i64>,
    /// The container that the beginning of the message named.
    container: Option<Value>,
}

impl Converter {
    /// Creates a converter. `format` is the format name of the server's data.
    pub(crate) fn new(format: Text) -> Self {
        Self {
            format,
            counts: TokenCounts::default(),
            blocks: OpenBlocks::default(),
            last: None,
            container: None,
        }
    }

    /// Returns the bytes of the events of which something is kept, at most.
    pub(crate) fn kept(&self) -> usize {
        self.blocks.kept()
    }

    /// Converts the beginning of a message.
    pub(crate) fn message_start(&mut self, event: &Value, deltas: &mut VecDeque<Delta>) {
        let message = event.get("message").unwrap_or(&Value::Null);
        self.head(message, deltas);
        self.content(message, deltas);
    }

    /// Converts a message that was not streamed.
    pub(crate) fn whole_message(&mut self, message: &Value, deltas: &mut VecDeque<Delta>) {
        self.head(message, deltas);
        self.content(message, deltas);
        self.reports(message, deltas);
        finish(message, deltas);
    }

    fn head(&mut self, message: &Value, deltas: &mut VecDeque<Delta>) {
        let word = |key: &str| text(message, key).map(Text::from);
        let (id, model) = (word("id"), word("model"));
        if id.is_some() || model.is_some() {
            deltas.push_back(Delta::origin(id, model));
        }
        self.container = message.get(CONTAINER).filter(|container| container.is_object()).cloned();
        self.usage(message, deltas);
    }

    /// Converts the blocks that a message holds. Those of a streamed message follow it.
    fn content(&mut self, message: &Value, deltas: &mut VecDeque<Delta>) {
        for (position, block) in list(message, "content").iter().enumerate() {
            let number = i64::try_from(position).ok();
            self.begin_block(number, block, 0, deltas);
            self.end_block(number, deltas);
        }
    }

    /// Converts the beginning of a block. `bytes` are those of the event.
    pub(crate) fn block_start(&mut self, event: &Value, bytes: usize, deltas: &mut VecDeque<Delta>) {
        let block = event.get("content_block").unwrap_or(&Value::Null);
        self.begin_block(block_number(event), block, bytes, deltas);
    }

    fn begin_block(
        &mut self,
        number: Option<i64>,
        block: &Value,
        bytes: usize,
        deltas: &mut VecDeque<Delta>,
    ) {
        let (number, replaced) = self.blocks.begin(number);
        self.last = Some(number);
        replaced.into_iter().for_each(|block| pass_rest(&self.format, block, deltas));
        let content = match text(block, "type") {
            Some("text" | "thinking") => {
                content_delta(&self.format, number, block, deltas);
                list(block, "citations")
                    .iter()
                    .for_each(|cited| citation(&self.format, number, cited, deltas));
                OpenContent::Streamed
            }
            Some("tool_use") => {
                deltas.push_back(Delta::tool_call(call_start(&self.format, number, block)));
                OpenContent::Call { input: block.get("input").filter(|input| has_content(input)).cloned() }
            }
            _ => OpenContent::Kept(KeptBlock::new(block.as_object().cloned().unwrap_or_default())),
        };
        let block = OpenBlock { number, content };
        if block.keeps() {
            self.blocks.note_kept(bytes);
        }
        self.blocks.push(block);
    }

    /// Converts a piece of a block.
    pub(crate) fn block_delta(&mut self, event: &Value, bytes: usize, deltas: &mut VecDeque<Delta>) {
        let number = block_number(event);
        let delta = event.get("delta").unwrap_or(&Value::Null);
        let Some(block) = self.blocks.find(number) else {
            // Its beginning is missing. The content is kept nevertheless.
            return content_delta(&self.format, number.unwrap_or_default(), delta, deltas);
        };
        match &mut block.content {
            OpenContent::Kept(kept) => {
                kept.extend(object(event, "delta"));
                return self.blocks.note_kept(bytes);
            }
            OpenContent::Call { input } if text(delta, "partial_json").is_some() => *input = None,
            OpenContent::Call { .. } | OpenContent::Streamed => {}
        }
        content_delta(&self.format, block.number, delta, deltas);
    }

    /// Converts the end of a block.
    pub(crate) fn block_stop(&mut self, event: &Value, deltas: &mut VecDeque<Delta>) {
        self.end_block(block_number(event), deltas);
    }

    fn end_block(&mut self, number: Option<i64>, deltas: &mut VecDeque<Delta>) {
        let Some(block) = self.blocks.end(number) else { return };
        let (number, is_whole) = (block.number, block.is_whole());
        pass_rest(&self.format, block, deltas);
        if !is_whole {
            deltas.push_back(Delta::from(DeltaKind::BlockEnd).with_block(number));
        }
    }

    /// Converts the changes of a message: its finish reason and its token counts.
    pub(crate) fn message_delta(&mut self, event: &Value, deltas: &mut VecDeque<Delta>) {
        let delta = event.get("delta").unwrap_or(&Value::Null);
        self.usage(event, deltas);
        self.reports(delta, deltas);
        finish(delta, deltas);
    }

    /// Attaches the reports about the whole message to its last block: the container of code that ran, and the reason
    /// for a refusal. A message without a block keeps only the latter, on an empty text.
    fn reports(&self, holder: &Value, deltas: &mut VecDeque<Delta>) {
        let report =
            |key: &str| Some((key.to_owned(), holder.get(key).filter(|value| value.is_object())?.clone()));
        let mut reports: Map<String, Value> = REPORTS.into_iter().filter_map(report).collect();
        if let Some(container) = &self.container {
            reports.entry(CONTAINER).or_insert_with(|| container.clone());
        }
        if reports.is_empty() || (self.last.is_none() && !reports.contains_key(STOP_DETAILS)) {
            return;
        }
        let data = ProviderData::new(self.format.clone(), Value::Object(reports));
        let number = self.last.unwrap_or_default();
        deltas.push_back(Delta::from(DeltaKind::BlockData(Box::new(data))).with_block(number));
    }

    /// Passes on the rest of blocks without an end.
    pub(crate) fn end(&mut self, deltas: &mut VecDeque<Delta>) {
        self.blocks.end_all().into_iter().for_each(|block| pass_rest(&self.format, block, deltas));
    }

    fn usage(&mut self, holder: &Value, deltas: &mut VecDeque<Delta>) {
        if holder.get("usage").is_some_and(|usage| self.counts.update(usage)) {
            deltas.push_back(Delta::usage(self.counts.to_usage()));
        }
    }
}

/// Shows no content of the answer.
impl fmt::Debug for Converter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Converter").field("counts", &self.counts).finish_non_exhaustive()
    }
}

/// Pushes the content of a piece of a block, or of the beginning of a text.
fn content_delta(format: &Text, number: i64, delta: &Value, deltas: &mut VecDeque<Delta>) {
    let mut push = |kind: DeltaKind| deltas.push_back(Delta::from(kind).with_block(number));
    if let Some(text) = text(delta, "text") {
        push(DeltaKind::Text(text.into()));
    }
    if let Some(thinking) = text(delta, "thinking") {
        push(DeltaKind::Reasoning(thinking.into()));
    }
    if let Some(signature) = text(delta, "signature") {
        let data = ProviderData::new(format.clone(), json!({ SIGNATURE: signature }));
        push(DeltaKind::ReasoningData(Box::new(data)));
    }
    if let Some(piece) = text(delta, "partial_json") {
        deltas.push_back(Delta::tool_call(ToolCallDelta::arguments(number, piece)));
    }
    if let Some(cited) = delta.get("citation") {
        citation(format, number, cited, deltas);
    }
}

/// Returns the beginning of a call. Fields that this crate does not know go back with the call.
fn call_start(format: &Text, number: i64, block: &Value) -> ToolCallDelta {
    let word = |key: &str| text(block, key).unwrap_or_default();
    let mut start = ToolCallDelta::start(number, word("id"), word("name"));
    let fields = block.as_object().into_iter().flatten();
    let others: Map<String, Value> = fields
        .filter(|(key, value)| !matches!(key.as_str(), "type" | "id" | "name" | "input") && !value.is_null())
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    start.provider_data =
        (!others.is_empty()).then(|| ProviderData::new(format.clone(), Value::Object(others)));
    start
}

/// Pushes the kept content of a block.
fn pass_rest(format: &Text, block: OpenBlock, deltas: &mut VecDeque<Delta>) {
    match block.content {
        OpenContent::Streamed | OpenContent::Call { input: None } => {}
        OpenContent::Call { input: Some(input) } => {
            let arguments = ToolCallDelta::arguments(block.number, input.to_string());
            deltas.push_back(Delta::tool_call(arguments));
        }
        OpenContent::Kept(kept) => {
            let opaque = DeltaKind::Opaque(Box::new(kept.into_opaque(format)));
            deltas.push_back(Delta::from(opaque).with_block(block.number));
        }
    }
}

/// Pushes a citation for the user, and the one that goes back to the server with the text of its block.
fn citation(format: &Text, number: i64, cited: &Value, deltas: &mut VecDeque<Delta>) {
    let data = ProviderData::new(format.clone(), json!({ CITATION: cited }));
    deltas.push_back(Delta::from(DeltaKind::BlockData(Box::new(data))).with_block(number));
    let word = |keys: [&str; 2]| keys.into_iter().find_map(|key| text(cited, key)).map(Text::from);
    let mut citation = Citation::default();
    citation.url = word(["url", "source"]);
    citation.title = word(["title", "document_title"]);
    citation.quote = word(["cited_text", "quote"]);
    deltas.push_back(DeltaKind::Citation(Box::new(citation)).into());
}

fn finish(holder: &Value, deltas: &mut VecDeque<Delta>) {
    deltas.extend(text(holder, "stop_reason").map(|written| Delta::finish(finish_of(written))));
}

/// Checks whether the input in the beginning of a call is one. Nearly every server sends an empty object there.
fn has_content(input: &Value) -> bool {
    match input {
        Value::Null => false,
        Value::Object(fields) => !fields.is_empty(),
        Value::String(text) => !text.is_empty(),
        _ => true,
    }
}
