//! Repair of valid JSON that the usual reader refuses.
//!
//! Very few events need this, so it is tried only when reading has failed.

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use super::call_index::with_odd_indexes_as_texts;
use provider_http::json::repair::{without_lone_surrogates, without_unrepresentable};

/// Rewrites JSON in a form that any reader accepts; `None` if it is malformed.
///
/// - A lone surrogate becomes U+FFFD, because no character is better than one that the server did not send. Models
///   behind OpenRouter send such (Kohaku-Lab/KohakuTerrarium#48). The halves of a character in two events were joined
///   before.
/// - Of equal keys the last counts. NVIDIA's endpoint repeats `reasoning_content`
///   (tinyhumansai/openhuman#4204).
/// - A number out of range or a value nested too deep becomes `null`.
/// - An odd index of a call becomes a text with its spelling. Law T6 demands that different ones stay different.
pub(crate) fn repair(json: &str) -> Option<String> {
    // This checks only the grammar: it converts nothing, and does not recurse.
    serde_json::from_str::<&RawValue>(json).ok()?;
    let whole = without_lone_surrogates(&with_odd_indexes_as_texts(json));
    let value: Value = serde_json::from_str(&without_unrepresentable(&whole)).ok()?;
    Some(value.to_string())
}

/// Reads JSON of any kind, repaired if necessary; `None` if it is malformed or of another type.
pub(crate) fn read<T: DeserializeOwned>(json: &str) -> Option<T> {
    serde_json::from_str(json).ok().or_else(|| serde_json::from_str(&repair(json)?).ok())
}
