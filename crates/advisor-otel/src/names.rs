//! All names of the conventions, in one table per kind. No other file has one, and the names of a chain's own spans stay the
//! same in every version.
//!
//! 1.36 and 1.41 are from `docs/gen-ai/` of the semantic conventions in these releases. 0.1 is from the
//! repository `semantic-conventions-genai` at commit `024a4f94`, and from the Python package
//! `opentelemetry-util-genai` 1.3b0.

use opentelemetry::{Array, KeyValue, StringValue, Value};

use crate::Conventions;
use crate::providers::provider_name;

/// The name of an attribute in a version of the conventions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Name {
    /// The same name as in the spans of a chain.
    Same,
    /// Another name.
    As(&'static str),
    /// The version has no such attribute.
    Absent,
}

use Name::{Absent, As, Same};

/// The form of a value. Spans of `tracing` carry unsigned numbers and lists as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// As it is.
    Plain,
    /// A whole number.
    Int,
    /// A list of texts.
    Texts,
    /// The name of a provider.
    Provider,
}

use Form::{Int, Plain, Provider, Texts};

/// An attribute of a span.
struct Attribute {
    /// The name in the spans of a chain.
    own: &'static str,
    form: Form,
    v1_36: Name,
    v1_41: Name,
    gen_ai_0_1: Name,
}

impl Attribute {
    fn name(&self, conventions: Conventions) -> Option<&'static str> {
        let name = match conventions {
            Conventions::V1_36 => self.v1_36,
            Conventions::V1_41 => self.v1_41,
            Conventions::GenAi0_1 => self.gen_ai_0_1,
        };
        match name {
            Same => Some(self.own),
            As(name) => Some(name),
            Absent => None,
        }
    }
}

const fn row(own: &'static str, form: Form, v1_36: Name, v1_41: Name, gen_ai_0_1: Name) -> Attribute {
    Attribute { own, form, v1_36, v1_41, gen_ai_0_1 }
}

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

#[rustfmt::skip]
const ATTRIBUTES: &[Attribute] = &[
    //  own name                           form      1.36                  1.41    0.1
    row(OPERATION,                         Plain,    Same,                 Same,   Same),
    row(PROVIDER,                          Provider, As("gen_ai.system"),  Same,   Same),
    row("gen_ai.conversation.id",          Plain,    Same,                 Same,   Same),
    row("gen_ai.output.type",              Plain,    Same,                 Same,   Same),
    row(REQUEST_MODEL,                     Plain,    Same,                 Same,   Same),
    row("gen_ai.request.stream",           Plain,    Absent,               Same,   Same),
    row("gen_ai.request.max_tokens",       Int,      Same,                 Same,   Same),
    row("gen_ai.request.temperature",      Plain,    Same,                 Same,   Same),
    row("gen_ai.request.top_p",            Plain,    Same,                 Same,   Same),
    row("gen_ai.request.seed",             Int,      Same,                 Same,   Same),
    row("gen_ai.request.stop_sequences",   Texts,    Same,                 Same,   Same),
    row("gen_ai.response.id",              Plain,    Same,                 Same,   Same),
    row(RESPONSE_MODEL,                    Plain,    Same,                 Same,   Same),
    row("gen_ai.response.finish_reasons",  Texts,    Same,                 Same,   Same),
    row(FIRST_CHUNK,                       Plain,    Absent,               Same,   Same),
    row(INPUT,                             Int,      Same,                 Same,   Same),
    row(OUTPUT,                            Int,      Same,                 Same,   Same),
    row(CACHE_READ,                        Int,      Absent,               Same,   Same),
    row(CACHE_WRITE,                       Int,      Absent,               As("gen_ai.usage.cache_creation.input_tokens"), Same),
    row(REASONING,                         Int,      Absent,               Same,   Same),
    row(TOOL_NAME,                         Plain,    Same,                 Same,   Same),
    row("gen_ai.tool.call.id",             Plain,    Same,                 Same,   Same),
    row(TOOL_TYPE,                         Plain,    Same,                 Same,   Same),
    row(ERROR,                             Plain,    Same,                 Same,   Same),
    row(INPUT_MESSAGES,                    Plain,    Absent,               Same,   Same),
    row(OUTPUT_MESSAGES,                   Plain,    Absent,               Same,   Same),
    // Names of this project, outside the conventions.
    row("round",                           Int,      As("advisor.round"),  As("advisor.round"), As("advisor.round")),
    row("model_call",                      Int,      As("advisor.model_call"), As("advisor.model_call"), As("advisor.model_call")),
    row("turn.id",                         Plain,    As("advisor.turn.id"), As("advisor.turn.id"), As("advisor.turn.id")),
];

/// Returns an attribute of a chain's span as `conventions` have it; `None` if they have no such attribute.
/// Attributes that the table does not know stay as they are.
pub(crate) fn translate(attribute: KeyValue, conventions: Conventions) -> Option<KeyValue> {
    let Some(row) = ATTRIBUTES.iter().find(|row| row.own == attribute.key.as_str()) else {
        return Some(attribute);
    };
    let name = row.name(conventions)?;
    let value = match row.form {
        Plain => attribute.value,
        Int => whole(attribute.value),
        Texts => texts(attribute.value),
        Provider => Value::from(provider_name(attribute.value.as_str().as_ref(), conventions).to_owned()),
    };
    Some(KeyValue::new(name, value))
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

/// The names of the metrics in a version of the conventions; `None` if it has none.
#[derive(Debug)]
pub(crate) struct MetricNames {
    /// The duration of a model call.
    pub call: &'static str,
    pub first_chunk: Option<&'static str>,
    pub tokens: TokenMetrics,
    pub tool: Option<&'static str>,
    pub agent: Option<&'static str>,
}

/// The way in which a version counts tokens.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TokenMetrics {
    /// One histogram; an attribute of this name says `input` or `output`.
    ByType { metric: &'static str, attribute: &'static str },
    /// One counter for each kind of tokens; each point has the modality.
    Counters { counters: &'static [(&'static str, &'static str)], modality: &'static str },
}

const BY_TYPE: TokenMetrics =
    TokenMetrics::ByType { metric: "gen_ai.client.token.usage", attribute: "gen_ai.token.type" };

const COUNTERS: TokenMetrics = TokenMetrics::Counters {
    counters: &[
        (INPUT, "gen_ai.client.inference.usage.input_tokens"),
        (OUTPUT, "gen_ai.client.inference.usage.output_tokens"),
        (CACHE_READ, "gen_ai.client.inference.usage.cache_read.input_tokens"),
        (CACHE_WRITE, "gen_ai.client.inference.usage.cache_write.input_tokens"),
        (REASONING, "gen_ai.client.inference.usage.reasoning.output_tokens"),
    ],
    modality: "gen_ai.token.modality",
};

impl MetricNames {
    pub(crate) const fn of(conventions: Conventions) -> Self {
        match conventions {
            Conventions::V1_36 => Self {
                call: "gen_ai.client.operation.duration",
                first_chunk: None,
                tokens: BY_TYPE,
                tool: None,
                agent: None,
            },
            Conventions::V1_41 => Self {
                call: "gen_ai.client.operation.duration",
                first_chunk: Some("gen_ai.client.operation.time_to_first_chunk"),
                tokens: BY_TYPE,
                tool: None,
                agent: None,
            },
            Conventions::GenAi0_1 => Self {
                call: "gen_ai.client.inference.duration",
                first_chunk: Some("gen_ai.client.inference.time_to_first_chunk"),
                tokens: COUNTERS,
                tool: Some("gen_ai.execute_tool.duration"),
                agent: Some("gen_ai.invoke_agent.duration"),
            },
        }
    }
}
