//! An assistant's message as the items that the server had sent, or as equivalent items.
//!
//! Texts have the form that OpenAI, llama.cpp and others accept: a message of the type `message`, completed, with
//! parts of the type `output_text`. A refusal is text here, because llama.cpp takes no other part.

use advisor_core::{Block, BlockContent, BlockKind, Media, MediaSource, ProviderData, ToolCall};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use provider_http::json::arguments::{self, fields_that_go_back};
use provider_http::names::WireNames;
use serde_json::{Map, Value, json};

use super::form::InputForm;

/// Returns the items of a message, in the order of its blocks.
///
/// Reasoning and server-side work go back only to the server that sent them: no other one can read them.
pub(super) fn output_items(blocks: &[Block], form: &InputForm, wire: &WireNames) -> Vec<Value> {
    // The parts of reasoning that wait for the other fields of their item.
    let mut parts = Vec::new();
    let item = |block: &Block| match block.kind() {
        BlockKind::Reasoning => reasoning(block, &mut parts, form),
        _ => output_item(block, form, wire),
    };
    let mut items: Vec<Value> = blocks.iter().filter_map(item).collect();
    if items.is_empty()
        && let Some(note) = note(blocks)
    {
        items.push(message(&note, Map::new()));
    }
    items
}

fn output_item(block: &Block, form: &InputForm, wire: &WireNames) -> Option<Value> {
    match block.content() {
        BlockContent::Text(text) | BlockContent::Refusal(text) => {
            (!text.is_empty()).then(|| message(text, extras_of(block, form)))
        }
        BlockContent::ToolCall(call) => Some(function_call(call, extras_of(block, form), wire)),
        BlockContent::Media(media) => image(media, data_of(block, form).next()?),
        BlockContent::Opaque(opaque) => (opaque.format == form.format).then(|| opaque.value.clone()),
        _ => None,
    }
}

/// Returns the item of reasoning at the last of its blocks. The others have only their text, and no type; those whose
/// item is missing stay here.
fn reasoning(block: &Block, waiting: &mut Vec<Value>, form: &InputForm) -> Option<Value> {
    let (items, parts): (Vec<&Value>, Vec<&Value>) =
        data_of(block, form).partition(|data| data.get("type").is_some());
    waiting.extend(parts.into_iter().cloned());
    let mut item = items.into_iter().find(|item| is_readable(item, form))?.clone();
    let id = item.get("id").cloned().unwrap_or_default();
    let own = waiting.extract_if(.., |part| part.get("id").unwrap_or(&Value::Null) == &id);
    for part in own.collect::<Vec<_>>().iter().rev() {
        for name in ["content", "summary"] {
            let texts = part.get(name).and_then(Value::as_array).into_iter().flatten();
            if let Some(list) = item.get_mut(name).and_then(Value::as_array_mut) {
                list.splice(..0, texts.cloned());
            }
        }
    }
    Some(item)
}

fn message(text: &str, extras: Map<String, Value>) -> Value {
    let mut item = extras;
    item.insert("type".to_owned(), "message".into());
    item.insert("role".to_owned(), "assistant".into());
    item.insert("status".to_owned(), "completed".into());
    item.insert("content".to_owned(), json!([{ "type": "output_text", "text": text, "annotations": [] }]));
    Value::Object(item)
}

fn function_call(call: &ToolCall, extras: Map<String, Value>, wire: &WireNames) -> Value {
    let mut item = extras;
    item.insert("type".to_owned(), "function_call".into());
    item.insert("call_id".to_owned(), wire.ids.on_the_wire(&call.id).into());
    item.insert("name".to_owned(), wire.tools.on_the_wire(&call.name).into());
    item.insert("arguments".to_owned(), arguments::as_text(&call.arguments).into());
    Value::Object(item)
}

/// Returns the item of an image that the server generated.
fn image(media: &Media, data: &Value) -> Option<Value> {
    let MediaSource::Bytes(bytes) = &media.source else { return None };
    let mut item = data.as_object()?.clone();
    item.insert("result".to_owned(), STANDARD.encode(bytes).into());
    Some(Value::Object(item))
}

/// Checks whether the server can read reasoning that it sent. It reads encrypted or plain content; an id alone means
/// something only if the server kept the answer.
fn is_readable(item: &Value, form: &InputForm) -> bool {
    let has = |key: &str, is_empty: fn(&Value) -> bool| item.get(key).is_some_and(|value| !is_empty(value));
    form.store
        || has("encrypted_content", |value| value.as_str().is_none_or(str::is_empty))
        || has("content", |value| value.as_array().is_none_or(Vec::is_empty))
}

/// Returns the data that this server attached to a block.
fn data_of<'a>(block: &'a Block, form: &InputForm) -> impl Iterator<Item = &'a Value> {
    let data: Vec<&ProviderData> =
        block.provider_data().iter().filter(|data| data.format == form.format).collect();
    data.into_iter().map(|data| &data.value)
}

/// Returns the fields that this server attached to a text or a call, such as the `phase` of a message.
fn extras_of(block: &Block, form: &InputForm) -> Map<String, Value> {
    fields_that_go_back(data_of(block, form).filter_map(|data| data.as_object().cloned()).flatten().collect())
}

/// Returns a note for an answer without content that can be sent back. The note shows the model that it answered.
///
/// Returns `None` for an answer without media and opaque blocks.
fn note(blocks: &[Block]) -> Option<String> {
    let kinds = blocks.iter().filter_map(|block| match block.content() {
        BlockContent::Media(media) => Some(match media.mime.split('/').next() {
            Some("image") => "[image]",
            Some("audio") => "[audio]",
            Some("video") => "[video]",
            _ => "[file]",
        }),
        BlockContent::Opaque(_) => Some("[content that cannot be shown here]"),
        _ => None,
    });
    let kinds: Vec<&str> = kinds.collect();
    (!kinds.is_empty()).then(|| kinds.join(" "))
}
