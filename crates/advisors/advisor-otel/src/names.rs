//! All names of the conventions, version 0.1: of the repository `semantic-conventions-genai` at commit `024a4f94`, and of
//! the Python package `opentelemetry-util-genai` 1.3b0. No other file has one.

use opentelemetry::{Array, KeyValue, StringValue, Value};

/// The operation of a span: `chat`, `execute_tool` or `invoke_agent`.
pub(crate) const OPERATION: &str = "gen_ai.operation.name";
/// The provider of a model.
pub(crate) const PROVIDER: &str = "gen_ai.provider.name";
/// The requested model.
pub(crate) const REQUEST_MODEL: &str = "gen_ai.request.model";
/// The answering model.
pub(crate) const RESPONSE_MODEL: &str = "gen_ai.response.model";
/// The name of a tool.
pub(crate) const TOOL_NAME: &str = "gen_ai.tool.name";
/// The kind of a tool.
pub(crate) const TOOL_TYPE: &str = "gen_ai.tool.type";
/// The kind of an error.
pub(crate) const ERROR: &str = "error.type";
/// The seconds until the first chunk.
pub(crate) const FIRST_CHUNK: &str = "gen_ai.response.time_to_first_chunk";
/// The tokens of the input.
pub(crate) const INPUT: &str = "gen_ai.usage.input_tokens";
/// The tokens of the output.
pub(crate) const OUTPUT: &str = "gen_ai.usage.output_tokens";
/// The tokens that were read from a cache.
pub(crate) const CACHE_READ: &str = "gen_ai.usage.cache_read.input_tokens";
/// The tokens that were written to a cache.
pub(crate) const CACHE_WRITE: &str = "gen_ai.usage.cache_write.input_tokens";
/// The tokens of reasoning.
pub(crate) const REASONING: &str = "gen_ai.usage.reasoning.output_tokens";
/// The messages of a request.
pub(crate) const INPUT_MESSAGES: &str = "gen_ai.input.messages";
/// The messages of an answer.
pub(crate) const OUTPUT_MESSAGES: &str = "gen_ai.output.messages";

/// The attributes that are whole numbers. Spans of `tracing` carry unsigned numbers and lists as text.
const NUMBERS: [&str; 9] = [
    "gen_ai.request.max_tokens", "gen_ai.request.seed", INPUT, OUTPUT, CACHE_READ, CACHE_WRITE, REASONING,
    "round", "model_call",
];
/// The attributes that are lists of texts.
const LISTS: [&str; 2] = ["gen_ai.request.stop_sequences", "gen_ai.response.finish_reasons"];
/// The attributes of this project, outside the conventions. They get a prefix.
const OWN: [&str; 3] = ["round", "model_call", "turn.id"];

/// The seconds of a model call.
pub(crate) const CALL_METRIC: &str = "gen_ai.client.inference.duration";
/// The seconds until the first chunk.
pub(crate) const FIRST_CHUNK_METRIC: &str = "gen_ai.client.inference.time_to_first_chunk";
/// The seconds of a run of a tool.
pub(crate) const TOOL_METRIC: &str = "gen_ai.execute_tool.duration";
/// The seconds of a turn.
pub(crate) const AGENT_METRIC: &str = "gen_ai.invoke_agent.duration";
/// The kind of tokens, such as those of text or of audio.
pub(crate) const MODALITY: &str = "gen_ai.token.modality";
/// The counts of tokens, each with its metric.
pub(crate) const TOKEN_METRICS: [(&str, &str); 5] = [
    (INPUT, "gen_ai.client.inference.usage.input_tokens"),
    (OUTPUT, "gen_ai.client.inference.usage.output_tokens"),
    (CACHE_READ, "gen_ai.client.inference.usage.cache_read.input_tokens"),
    (CACHE_WRITE, "gen_ai.client.inference.usage.cache_write.input_tokens"),
    (REASONING, "gen_ai.client.inference.usage.reasoning.output_tokens"),
];

/// Returns an attribute of a chain's span as the conventions have it. Those that they do not know stay as they are.
pub(crate) fn translate(attribute: KeyValue) -> KeyValue {
    let name = attribute.key.as_str();
    let value = match name {
        PROVIDER => Value::from(provider_name(&attribute.value.as_str()).to_owned()),
        _ if NUMBERS.contains(&name) => whole(attribute.value),
        _ if LISTS.contains(&name) => texts(attribute.value),
        _ => attribute.value,
    };
    match OWN.contains(&name) {
        true => KeyValue::new(format!("advisor.{name}"), value),
        false => KeyValue::new(attribute.key, value),
    }
}

/// Returns the well-known name of a provider, if the conventions have one that differs from ours.
fn provider_name(own: &str) -> &str {
    match own {
        "gemini" => "gcp.gemini",
        "vertex-ai" => "gcp.vertex_ai",
        "mistral" => "mistral_ai",
        "xai" => "x_ai",
        _ => own,
    }
}

/// Returns the number that a text says.
pub(crate) fn whole(value: Value) -> Value {
    match value.as_str().parse() {
        Ok(number) => Value::I64(number),
        Err(_) => value,
    }
}

/// Returns the list of texts that a text in JSON says.
fn texts(value: Value) -> Value {
    match serde_json::from_str::<Vec<String>>(&value.as_str()) {
        Ok(texts) => Value::Array(Array::String(texts.into_iter().map(StringValue::from).collect())),
        Err(_) => value,
    }
}
