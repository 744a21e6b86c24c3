//! The wire format of the Messages API, as servers really send it.
//!
//! Events are read as [`Value`]s, which accept every form. A field of an unexpected form counts as absent, so that
//! one invalid field does not fail the answer. Unknown fields are ignored, except those of content blocks, which
//! are sent back.

mod usage;

use advisor_core::Text;
use provider_http::fast_path::Field;
use serde_json::{Map, Value};

pub(crate) use usage::TokenCounts;

/// The format name of provider data and opaque blocks of the Messages API.
pub(crate) const FORMAT: &str = "anthropic-messages";
/// The hosts that accept the signatures and encrypted content of one another.
const ANTHROPIC_HOSTS: [&str; 2] = ["anthropic.com", "azure.com"];
/// The key of a signature in the provider data of a reasoning block.
pub(crate) const SIGNATURE: &str = "signature";
/// The key of a citation in the provider data of a text block.
pub(crate) const CITATION: &str = "citation";
/// The key of the container in which the server ran code, in the provider data of the last block.
pub(crate) const CONTAINER: &str = "container";
/// The key of the caller of a call: the model, or a program that the server runs.
pub(crate) const CALLER: &str = "caller";
/// The key of the reason for a refusal, in the provider data of the last block.
pub(crate) const STOP_DETAILS: &str = "stop_details";
/// The keys of reports about a whole message.
pub(crate) const REPORTS: [&str; 2] = [CONTAINER, STOP_DETAILS];

/// The fields that are read of an event; all others are ignored.
pub(crate) const EVENT: Field = Field::Object(&[
    ("type", Field::Read),
    ("index", Field::Read),
    (
        "delta",
        Field::Whole(&[("text", Field::Text), ("thinking", Field::Text), ("partial_json", Field::Text)]),
    ),
    ("content_block", Field::Whole(&[("text", Field::Text), ("thinking", Field::Text)])),
    ("message", Field::Read),
    ("usage", Field::Read),
    ("error", Field::Read),
    // Of an answer that is not streamed.
    ("id", Field::Read),
    ("model", Field::Read),
    ("content", Field::Read),
    ("stop_reason", Field::Read),
]);

/// Checks whether Anthropic's own service has this host.
pub(crate) fn is_anthropic(host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    ANTHROPIC_HOSTS.iter().any(|own| host == *own || host.ends_with(&format!(".{own}")))
}

/// Returns the format name of data from this host. A server refuses the signatures of another one, so the name
/// contains the host, except for Anthropic's own service.
pub(crate) fn format_of(host: &str) -> Text {
    if is_anthropic(host) { FORMAT.into() } else { format!("{FORMAT}@{}", host.to_ascii_lowercase()).into() }
}

/// Returns the text under `key`, unless it is empty.
pub(crate) fn text<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.get(key)?.as_str().filter(|text| !text.is_empty())
}

/// Returns the number of a block, also one that is written as a decimal or as text.
pub(crate) fn block_number(event: &Value) -> Option<i64> {
    match event.get("index")? {
        Value::Number(number) => number.as_i64().or_else(|| whole(number.as_f64()?)),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

/// Returns a decimal as a whole number. Beyond 2^53 it identifies no single one.
fn whole(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() < 9e15).then_some(number as i64)
}

/// Returns the object under `key`; an empty one if there is none.
pub(crate) fn object(event: &Value, key: &str) -> Map<String, Value> {
    event.get(key).and_then(Value::as_object).cloned().unwrap_or_default()
}

/// Returns the entries of the list under `key`.
pub(crate) fn list<'a>(object: &'a Value, key: &str) -> &'a [Value] {
    object.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
