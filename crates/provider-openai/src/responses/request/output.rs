//! An assistant's message as the items that the server had sent, or as equivalent items.
//!
//! Texts have the form that OpenAI, llama.cpp and others accept: a message of the type `message`, completed, with
//! parts of the type `output_text`. A refusal is text here, because llama.cpp takes no other part.

use advisor_core::{Block, BlockContent, Media, MediaSource, ProviderData, ToolCall};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use provider_http::json::arguments::{self, fields_that_go_back};
use provider_http::media::stand_in;
use provider_http::names::WireNames;
use serde_json::{Map, Value, json};

use super::InputForm;
use crate::responses::wire::OUTPUT_INDEX;

/// The field of a call and of its result that names the program which made it.
pub(super) const CALLER: &str = "caller";

/// Returns the items of a message, in the order of the answer that they are from. That is the order of the blocks, unless
/// the data of a block have another place.
///
/// Reasoning and server-side work go back only to the server that sent them: no other one can read them. Reasoning
/// belongs to the item behind it, without which OpenAI refuses it.
pub(super) fn output_items(blocks: &[Block], form: &InputForm, wire: &WireNames) -> Vec<Value> {
    let mut last = i64::MIN;
    let place = |mut item: Value| {
        let own = item.as_object_mut().and_then(|fields| fields.remove(OUTPUT_INDEX));
        let place = own.and_then(|index| index.as_i64()).unwrap_or(last);
        last = last.max(place);
        (place, item)
    };
    // A window may have left out the call, and the API refuses an output without it.
    let is_unknown = |id: &&str| !form.server_calls.contains(*id);
    let unknown: Vec<&str> = earlier_server_calls(blocks, form).filter(is_unknown).collect();
    let is_lonely = |item: &Value| {
        let (name, id) = (item.get("type"), item.get("call_id").and_then(Value::as_str));
        id.is_some_and(|id| unknown.contains(&id)) && name.and_then(Value::as_str).is_some_and(is_output)
    };
    let items = blocks.iter().filter_map(|block| output_item(block, form, wire));
    let mut placed: Vec<(i64, Value)> = items.filter(|item| !is_lonely(item)).map(place).collect();
    placed.sort_by_key(|(place, _)| *place);
    let mut items: Vec<Value> = placed.into_iter().map(|(_, item)| item).collect();
    let is_reasoning = |item: &Value| item.get("type").is_some_and(|kind| kind == "reasoning");
    while items.last().is_some_and(is_reasoning) {
        items.pop();
    }
    // The model must see that it answered.
    if items.is_empty() && blocks.iter().any(|block| matches!(block.content(), BlockContent::Opaque(_))) {
        items.push(message("[content that cannot be shown here]", Map::new()));
    }
    items
}

fn output_item(block: &Block, form: &InputForm, wire: &WireNames) -> Option<Value> {
    match block.content() {
        BlockContent::Text(text) | BlockContent::Refusal(text) => {
            (!text.is_empty()).then(|| message(text, extras_of(block, form)))
        }
        BlockContent::Reasoning(_) => data_of(block, form).find(|item| is_readable(item)).cloned(),
        BlockContent::ToolCall(call) => Some(function_call(call, extras_of(block, form), wire)),
        BlockContent::Media(media) => {
            let image = data_of(block, form).find_map(|data| image(media, data));
            Some(image.unwrap_or_else(|| message(stand_in(media), Map::new())))
        }
        BlockContent::Opaque(opaque) => (opaque.format == form.format).then(|| opaque.value.clone()),
        _ => None,
    }
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
    item.insert("call_id".to_owned(), wire.call_id(&call.id).into());
    item.insert("name".to_owned(), wire.tool(&call.name).into());
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

/// Checks whether the server can read reasoning that it sent: encrypted or plain content, and not an id alone.
fn is_readable(item: &Value) -> bool {
    item.get("encrypted_content").and_then(Value::as_str).is_some_and(|content| !content.is_empty())
        || item.get("content").and_then(Value::as_array).is_some_and(|content| !content.is_empty())
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

/// Returns the ids of the calls in an answer that the server ran by itself.
pub(super) fn server_calls<'a>(blocks: &'a [Block], form: &InputForm) -> impl Iterator<Item = &'a str> {
    work(blocks, form).filter(|(name, _)| !is_output(name)).filter_map(|(_, id)| id)
}

/// Returns the ids of the calls that the server ran, of which only the output is in an answer.
pub(super) fn earlier_server_calls<'a>(
    blocks: &'a [Block],
    form: &InputForm,
) -> impl Iterator<Item = &'a str> {
    let own: Vec<&str> = server_calls(blocks, form).collect();
    let outputs = work(blocks, form).filter(|(name, _)| is_output(name)).filter_map(|(_, id)| id);
    outputs.filter(move |id| !own.contains(id))
}

/// Returns the name and the call of each item that the server made by itself.
fn work<'a>(blocks: &'a [Block], form: &InputForm) -> impl Iterator<Item = (&'a str, Option<&'a str>)> {
    let format = form.format.clone();
    blocks.iter().filter_map(move |block| match block.content() {
        BlockContent::Opaque(opaque) if opaque.format == format => {
            Some((opaque.name.as_str(), opaque.value.get("call_id").and_then(Value::as_str)))
        }
        _ => None,
    })
}

fn is_output(name: &str) -> bool {
    name.ends_with("_output")
}

/// Returns the program of the server that made a call.
pub(super) fn caller(block: &Block, form: &InputForm) -> Option<Value> {
    block.as_tool_call()?;
    let callers = data_of(block, form).filter_map(|data| data.get(CALLER));
    callers.last().filter(|caller| !caller.is_null()).cloned()
}
