//! Tables of the documented parts of an API, as written answers with their outlines.
//!
//! A table test of a provider has three parts:
//! - written answers that contain each documented event, block and field;
//! - the [`outline`] of each answer;
//! - the list of the documented names. [`assert_covered`] fails if one of them is in no answer.
//!
//! ```
//! use advisor_test_support::documented::assert_covered;
//! use serde_json::json;
//!
//! let event = json!({"choices": [{"delta": {"content": "Hi"}, "finish_reason": null}]});
//! assert_covered(&["choices.delta.content", "choices.finish_reason"], [&event]);
//! ```

use advisor_core::{BlockContent, ChatResponse, Citation, MediaSource, Result, ToolCall};
use serde_json::Value;
use std::collections::BTreeSet;

/// Returns one line for each block of an answer, and one for its end. For an error, these are the lines of the partial
/// answer, and the kind of the error.
pub fn outline(result: &Result<ChatResponse>) -> Vec<String> {
    let (response, end) = match result {
        Ok(response) => {
            let finish = response.finish();
            (Some(response), format!("{:?} {}", finish.reason, finish.as_written.as_deref().unwrap_or("-")))
        }
        Err(error) => (error.partial(), format!("error {:?}", error.kind())),
    };
    let blocks = response.into_iter().flat_map(ChatResponse::blocks);
    blocks.map(|(_, block)| line_of(block.content())).chain([end]).collect()
}

fn line_of(content: &BlockContent) -> String {
    match content {
        BlockContent::Text(text) => format!("text {text}"),
        BlockContent::Reasoning(text) => format!("reasoning {text}"),
        BlockContent::Refusal(text) => format!("refusal {text}"),
        BlockContent::Media(media) => match &media.source {
            MediaSource::Url(url) => format!("media {} {url}", media.mime),
            MediaSource::Bytes(bytes) => format!("media {} of {} bytes", media.mime, bytes.len()),
            _ => format!("media {}", media.mime),
        },
        BlockContent::Citation(citation) => line_of_citation(citation),
        BlockContent::ToolCall(call) => line_of_call(call),
        BlockContent::Opaque(opaque) => format!("opaque {}", opaque.name),
        _ => "unknown".to_owned(),
    }
}

fn line_of_citation(citation: &Citation) -> String {
    let fields = [&citation.url, &citation.title, &citation.quote];
    let words: Vec<&str> = fields.into_iter().flatten().map(|word| word.as_str()).collect();
    format!("citation {}", words.join(", "))
}

fn line_of_call(call: &ToolCall) -> String {
    let unfinished = if call.complete { "" } else { ", unfinished" };
    format!("call {}({}){unfinished}", call.name, call.arguments)
}

/// Checks that each documented path occurs in one of the events.
///
/// A path has the keys from the outside to the inside, without the positions in lists: `choices.delta.content`. With
/// `=` it demands a text as the value: `delta.type=text_delta`.
///
/// # Panics
///
/// With the missing paths.
#[track_caller]
#[allow(clippy::panic, reason = "this is a check for tests: what is missing has to be seen")]
pub fn assert_covered<'a>(documented: &[&str], events: impl IntoIterator<Item = &'a Value>) {
    let mut found = BTreeSet::new();
    events.into_iter().for_each(|event| paths(event, "", &mut found));
    let missing: Vec<_> = documented.iter().filter(|path| !found.contains(**path)).collect();
    if !missing.is_empty() {
        panic!("no written answer contains {missing:?}");
    }
}

fn paths(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                found.insert(path.clone());
                paths(value, &path, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| paths(item, path, found)),
        Value::String(text) => {
            found.insert(format!("{path}={text}"));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_lead_through_lists_to_texts() {
        let event = json!({"a": [{"type": "x"}, {"b": 1}]});
        assert_covered(&["a", "a.type=x", "a.b"], [&event]);
    }

    #[test]
    #[should_panic(expected = "a.type=y")]
    fn missing_path_is_named() {
        assert_covered(&["a.type=y"], [&json!({"a": {"type": "x"}})]);
    }
}
