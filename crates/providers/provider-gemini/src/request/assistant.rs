//! An assistant's message on the wire, with each signature on the part that it came with (Q66).

use std::borrow::Cow;

use advisor_core::{Block, BlockContent, BlockKind, Result, Text, ToolCall};
use provider_http::json::arguments;
use provider_http::media::is_empty;
use provider_http::names::WireNames;
use provider_http::written::unwritable;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use super::{Form, parts};
use crate::wire::{SIGNATURE, SIGNED_BYTES, THOUGHT};

/// Google's signature for a call that another model made. Gemini 3 refuses a first call without any.
const PLACEHOLDER: &str = "skip_thought_signature_validator";
/// A note in place of an answer of which nothing can be sent. The model must see that it answered.
const UNSENDABLE: &str = "[content that cannot be shown here]";
/// The opaque blocks that are no parts, but reports about an answer.
const REPORTS: [&str; 2] = ["groundingMetadata", "urlContextMetadata"];

/// A part of the model's content.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum ModelPart<'a> {
    Other(Value),
    Call(CallPart<'a>),
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CallPart<'a> {
    function_call: FunctionCall<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<Cow<'a, str>>,
}

#[derive(Debug, Serialize)]
struct FunctionCall<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Cow<'a, str>>,
    name: Cow<'a, str>,
    args: Box<RawValue>,
}

/// Returns the parts of a message.
///
/// Thoughts are sent only if they are signed: the API needs no others, and those of other models mean nothing to it.
pub(super) fn parts_of<'a>(
    blocks: &'a [Block],
    form: &Form,
    names: &'a WireNames,
) -> Result<Vec<ModelPart<'a>>> {
    let mut parts = Vec::new();
    for block in blocks {
        match block.as_tool_call() {
            Some(call) => parts.push(ModelPart::Call(call_part(block, call, form, names)?)),
            None => parts.extend(own_parts(block, &form.format).into_iter().map(other)),
        }
        let empty = data(block, &form.format).filter(|data| signed_bytes(data) == Some(0));
        parts.extend(empty.map(|data| other(signed_part("", data))));
    }
    if parts.is_empty() && blocks.iter().any(|block| block.kind() == BlockKind::Opaque) {
        parts.push(other(text_part(UNSENDABLE)));
    }
    if !form.is_before_gemini_3 && !blocks.iter().any(|block| is_signed(block, &form.format)) {
        let first = parts.iter_mut().find_map(|part| match part {
            ModelPart::Call(call) => Some(call),
            ModelPart::Other(_) => None,
        });
        if let Some(call) = first {
            call.thought_signature = Some(PLACEHOLDER.into());
        }
    }
    Ok(parts)
}

/// Returns the parts of a block that is no call, without empty ones.
fn own_parts(block: &Block, format: &Text) -> Vec<Map<String, Value>> {
    match block.content() {
        BlockContent::Text(text) | BlockContent::Refusal(text) => {
            let (unsigned, signed) = split(block, text, format);
            let unsigned = Some(text_part(unsigned)).filter(|_| !unsigned.is_empty());
            unsigned.into_iter().chain(signed).collect()
        }
        BlockContent::Reasoning(text) => split(block, text, format).1.into_iter().collect(),
        BlockContent::Media(media) if is_empty(media) => Vec::new(),
        BlockContent::Media(media) => {
            let Value::Object(mut part) = parts::of_answer(media) else { return Vec::new() };
            let signature = data(block, format).find(|data| !data.contains_key(SIGNED_BYTES));
            part.extend(signature.and_then(signature_field).filter(|_| !part.contains_key("text")));
            vec![part]
        }
        BlockContent::Opaque(opaque) if opaque.format == *format && !REPORTS.contains(&&*opaque.name) => {
            opaque.value.as_object().into_iter().cloned().collect()
        }
        _ => Vec::new(),
    }
}

/// Makes a part of fields. Of a server's data, those that are nested too deep are left out.
fn other<'a>(fields: Map<String, Value>) -> ModelPart<'a> {
    ModelPart::Other(Value::Object(arguments::fields_that_go_back(fields)))
}

fn call_part<'a>(
    block: &'a Block,
    call: &'a ToolCall,
    form: &Form,
    names: &'a WireNames,
) -> Result<CallPart<'a>> {
    let written = arguments::as_text(&call.arguments);
    let args = RawValue::from_string(written.into_owned()).or_else(|_| to_raw_value(&Map::new()));
    let signature = data(block, &form.format).find_map(|data| data.get(SIGNATURE)?.as_str());
    Ok(CallPart {
        function_call: FunctionCall {
            id: form.sends_call_ids.then(|| names.call_id(&call.id)),
            name: names.tool(&call.name),
            args: args.map_err(unwritable)?,
        },
        thought_signature: signature.map(Cow::Borrowed),
    })
}

/// Returns the text of a block before its signed part, and that part.
fn split<'a>(block: &Block, text: &'a str, format: &Text) -> (&'a str, Option<Map<String, Value>>) {
    let signed =
        data(block, format).find_map(|data| Some((data, signed_bytes(data).filter(|bytes| *bytes > 0)?)));
    let Some((data, bytes)) = signed else { return (text, None) };
    // Where the text was changed, all of it counts as signed.
    let (unsigned, signed) = text.split_at_checked(text.len().saturating_sub(bytes)).unwrap_or(("", text));
    (unsigned, Some(signed_part(signed, data)))
}

fn text_part(text: &str) -> Map<String, Value> {
    Map::from_iter([("text".to_owned(), text.into())])
}

fn signed_part(text: &str, data: &Map<String, Value>) -> Map<String, Value> {
    let mut part = text_part(text);
    let thought = data.get(THOUGHT).map(|thought| (THOUGHT.to_owned(), thought.clone()));
    part.extend(thought.into_iter().chain(signature_field(data)));
    part
}

fn signature_field(data: &Map<String, Value>) -> Option<(String, Value)> {
    Some((SIGNATURE.to_owned(), data.get(SIGNATURE)?.clone()))
}

fn signed_bytes(data: &Map<String, Value>) -> Option<usize> {
    data.get(SIGNED_BYTES)?.as_u64()?.try_into().ok()
}

/// Returns the server's data that belongs to a block.
fn data<'a>(block: &'a Block, format: &Text) -> impl Iterator<Item = &'a Map<String, Value>> {
    let own = block.provider_data().iter().filter(move |data| data.format == *format);
    own.filter_map(|data| data.value.as_object())
}

/// Checks whether a signature came with a block.
fn is_signed(block: &Block, format: &Text) -> bool {
    let in_part = match block.content() {
        BlockContent::Opaque(opaque) => opaque.format == *format && opaque.value.get(SIGNATURE).is_some(),
        _ => false,
    };
    in_part || data(block, format).any(|data| data.contains_key(SIGNATURE))
}
