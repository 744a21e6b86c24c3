//! Compares a result with an expectation.

use serde_json::{Map, Number, Value};

/// The words of the APIs that mean the same finish reason.
const FINISH_WORDS: [(&str, &[&str]); 4] = [
    ("stop", &["stop", "endturn", "stopsequence", "eos", "complete", "completed"]),
    ("length", &["length", "maxtokens", "maxoutputtokens"]),
    ("tool_calls", &["toolcalls", "toolcall", "tooluse", "functioncall"]),
    ("content_filter", &["contentfilter", "safety", "refusal"]),
];

/// Recordings on which readers disagree for good reason, and the fields in which any answer is right.
const UNDECIDED: [(&str, &[&str]); 1] = [(
    // The provider runs these calls itself: some readers list them, some do not.
    "xai-responses-grok-4-fast-reasoning-x-search-custom-tool-01",
    &["tool_calls", "finish_reason"],
)];

/// Returns the differences between `got` and `expected`, one phrase for each field; empty if they agree.
///
/// `expected` is the content of a `NAME.expected.json`. `got` is an object with `text`, `reasoning`, `refusal`,
/// `tool_calls` (a list of `{id, name, arguments}`), `finish_reason`, `usage` (`{input_tokens, output_tokens}`
/// or null) and `error` (or null).
///
/// The rules beyond equality:
///
/// - Ids are not compared. Arguments are compared as JSON if they are JSON; `""`, `null` and `{}` all mean no
///   arguments.
/// - If an error is expected, `error` must not be null. Only the text before the error, if the expectation has
///   some, is compared beside it.
/// - Otherwise `error` must be null, unless the stream ends without any finish reason.
/// - `finish_reason`: the provider's word, or another API's word for the same reason. Gemini, Responses and
///   Ollama have no separate word for calls, so `tool_calls` is right there if there are calls.
/// - `usage`: compared only if both sides have a number. If the provider counts cached, tool-use or thinking
///   tokens separately, the sum is right, too.
/// - `reasoning`: compared only if some is expected, without whitespace at its ends.
pub fn differences(expected: &Value, got: &Value) -> Vec<String> {
    if !got.is_object() {
        return vec!["the result is no JSON object".to_owned()];
    }
    let comparison = Comparison { expected, got };
    let error = is_present(expected.get("error"));
    let finish = !text_of(expected, "finish_reason").is_empty();
    let mut found = Vec::new();
    if error || finish {
        comparison.error(&mut found);
    }
    if !error || !text_of(expected, "text").is_empty() {
        comparison.text("text", &mut found);
    }
    if error {
        return found;
    }
    if !text_of(expected, "reasoning").trim().is_empty() {
        comparison.text("reasoning", &mut found);
    }
    comparison.text("refusal", &mut found);
    if !comparison.is_undecided("tool_calls") {
        comparison.tool_calls(&mut found);
    }
    if finish && !comparison.is_undecided("finish_reason") {
        comparison.finish_reason(&mut found);
    }
    comparison.usage(&mut found);
    found
}

/// Returns the differences between the calls of `got` and those observed in a stream. Compares their number,
/// and the id, name and arguments of each as text.
pub fn observed_differences(observed: &[Value], got: &Value) -> Vec<String> {
    let calls = list(got, "tool_calls");
    let mut found = Vec::new();
    if calls.len() != observed.len() {
        found.push(format!("observed calls ({}, not {})", calls.len(), observed.len()));
    }
    for (i, (right, call)) in observed.iter().zip(calls).enumerate() {
        for key in ["id", "name", "arguments"] {
            if right.get(key) != call.get(key) {
                found.push(format!("observed call {i}: {key}"));
            }
        }
    }
    found
}

struct Comparison<'a> {
    expected: &'a Value,
    got: &'a Value,
}

impl Comparison<'_> {
    fn error(&self, found: &mut Vec<String>) {
        let expected = is_present(self.expected.get("error"));
        let failed = match self.got.get("error") {
            None | Some(Value::Null | Value::Bool(false)) => false,
            Some(error) => error != "",
        };
        match (expected, failed) {
            (true, false) => found.push("error (null)".to_owned()),
            (false, true) => found.push("error (not null)".to_owned()),
            _ => {}
        }
    }

    fn text(&self, key: &str, found: &mut Vec<String>) {
        let (mut right, mut got) = (text_of(self.expected, key), text_of(self.got, key));
        if key == "reasoning" {
            (right, got) = (right.trim(), got.trim());
        }
        let is_text = matches!(self.got.get(key), None | Some(Value::Null | Value::String(_)));
        if !is_text {
            found.push(format!("{key} (neither text nor null)"));
        } else if right != got {
            found.push(key.to_owned());
        }
    }

    fn tool_calls(&self, found: &mut Vec<String>) {
        let Some(right) = self.expected.get("tool_calls").and_then(Value::as_array) else {
            return;
        };
        let calls = list(self.got, "tool_calls");
        if calls.len() != right.len() {
            found.push(format!("tool_calls ({}, not {})", calls.len(), right.len()));
        }
        for (i, (right, call)) in right.iter().zip(calls).enumerate() {
            if text_of(right, "name") != text_of(call, "name") {
                found.push(format!("tool_calls[{i}].name"));
            }
            let arguments = match right.get("arguments_json") {
                None | Some(Value::Null) => Arguments::from_value(right.get("arguments")),
                Some(json) => Arguments::Json(json.clone()),
            };
            if arguments != Arguments::from_value(call.get("arguments")) {
                found.push(format!("tool_calls[{i}].arguments"));
            }
        }
    }

    fn finish_reason(&self, found: &mut Vec<String>) {
        let right = text_of(self.expected, "finish_reason");
        let got = self.got.get("finish_reason").unwrap_or(&Value::Null);
        let kind = finish_kind(got.as_str().unwrap_or("none"));
        if got != right && !self.finish_kinds(right).contains(&kind) {
            found.push(format!("finish_reason ({got}, not {right})"));
        }
    }

    /// Returns the finish reasons that are right beside the provider's own word.
    fn finish_kinds(&self, right: &str) -> Vec<String> {
        let mut kinds = vec![finish_kind(right)];
        let says_stop_with_calls = ["gemini", "openai-responses"].contains(&text_of(self.expected, "api"))
            || text_of(self.expected, "provider") == "ollama";
        let calls = !list(self.expected, "tool_calls").is_empty();
        if calls && says_stop_with_calls && kinds == ["stop"] {
            kinds.push("tool_calls".to_owned());
        }
        if let Some(details) = self.expected.get("incomplete_details") {
            kinds.extend(details.get("reason").and_then(Value::as_str).map(finish_kind));
        }
        kinds
    }

    fn usage(&self, found: &mut Vec<String>) {
        let Some(usage) = self.expected.get("usage").and_then(Value::as_object) else {
            return;
        };
        let (apart, thinking) = counted_apart(usage);
        for (key, more) in [("input_tokens", apart), ("output_tokens", thinking)] {
            let right = usage.get(key).and_then(Value::as_u64);
            let got = self.got.get("usage").and_then(|usage| usage.get(key));
            let (Some(right), Some(got)) = (right, got.filter(|got| !got.is_null())) else {
                continue;
            };
            let sums = [right, right + more];
            let is_sum_of_steps = got.as_u64().is_some_and(|got| Some(got) == in_all_steps(usage, key));
            if !is_sum_of_steps && !sums.iter().any(|&sum| *got == Value::Number(Number::from(sum))) {
                let [alone, sum] = sums;
                let or = if more > 0 { format!(" or {sum}") } else { String::new() };
                found.push(format!("usage.{key} ({got}, not {alone}{or})"));
            }
        }
    }

    fn is_undecided(&self, field: &str) -> bool {
        let file = text_of(self.expected, "file");
        let name = file.rsplit_once('.').map_or(file, |(name, _)| name);
        UNDECIDED.iter().any(|(other, fields)| *other == name && fields.contains(&field))
    }
}

/// Returns the sum of a count over the steps of an answer. Libraries report the counts of the answer, which leave out
/// compactions.
fn in_all_steps(usage: &Map<String, Value>, key: &str) -> Option<u64> {
    let steps = usage.get("raw")?.get("iterations")?.as_array()?;
    let cached: &[&str] = match key {
        "input_tokens" => &["cache_read_input_tokens", "cache_creation_input_tokens"],
        _ => &[],
    };
    let counts = steps.iter().flat_map(|step| {
        [key].iter().chain(cached).filter_map(|key| step.get(key)?.as_u64()).collect::<Vec<_>>()
    });
    Some(counts.sum())
}

/// Arguments in the form in which they are compared: as JSON if they are JSON, with all spellings of "none"
/// equal.
#[derive(PartialEq)]
enum Arguments {
    Json(Value),
    Text(String),
}

impl Arguments {
    fn from_value(value: Option<&Value>) -> Self {
        let json = match value {
            Some(Value::String(text)) if text.trim().is_empty() => Value::Null,
            Some(Value::String(text)) => match serde_json::from_str(text) {
                Ok(json) => json,
                Err(_) => return Self::Text(text.clone()),
            },
            Some(json) => json.clone(),
            None => Value::Null,
        };
        match json {
            Value::Null => Self::Json(Value::Object(Map::new())),
            json => Self::Json(json),
        }
    }
}

/// Returns the tokens that some providers count with the input and some separately, and the same for the
/// output.
fn counted_apart(usage: &Map<String, Value>) -> (u64, u64) {
    let number = |key: &str| usage.get(key).and_then(Value::as_u64).unwrap_or(0);
    let raw = usage.get("raw");
    let tools = raw.and_then(|raw| raw.get("tool_use_prompt_token_count"));
    let tools = tools.and_then(Value::as_u64).unwrap_or(0);
    let apart = number("cache_read_input_tokens") + number("cache_creation_input_tokens") + tools;
    let thinking = number("reasoning_tokens");
    let all = number("input_tokens") + tools + number("output_tokens") + thinking;
    if number("total_tokens") == all {
        (apart, thinking)
    } else {
        (apart, 0) // the thinking is in the output already
    }
}

fn finish_kind(finish: &str) -> String {
    let word: String = finish.to_lowercase().chars().filter(char::is_ascii_alphanumeric).collect();
    let kind = FINISH_WORDS.iter().find(|(_, words)| words.contains(&word.as_str()));
    kind.map_or(word, |(kind, _)| (*kind).to_owned())
}

fn text_of<'a>(object: &'a Value, key: &str) -> &'a str {
    object.get(key).and_then(Value::as_str).unwrap_or("")
}

fn list<'a>(object: &'a Value, key: &str) -> &'a [Value] {
    let list = object.get(key).and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

/// Checks whether a value is present and neither null nor empty.
fn is_present(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(list)) => !list.is_empty(),
        Some(Value::Object(object)) => !object.is_empty(),
        Some(_) => true,
    }
}

#[cfg(test)]
mod tests;
