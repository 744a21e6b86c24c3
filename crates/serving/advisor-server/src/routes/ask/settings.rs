//! Settings of a request in the APIs of OpenAI and Anthropic: those that the chain honours, and those that it cannot have
//! and refuses by name. All others are ignored, since the settings of the model belong to the chain.

use advisor_core::{ChatOptions, ResponseFormat, SchemaSupport, ToolChoice};
use serde_json::{Map, Value, json};

use crate::ChatServer;
use crate::refusal::Refusal;

/// The fields of a body that the route does not read itself.
pub(in crate::routes) type Fields = Map<String, Value>;

/// The API of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::routes) enum Api {
    ChatCompletions,
    Responses,
    Messages,
}

/// Checks whether a value has no effect.
type Check = fn(&Value) -> bool;

/// The settings that the chain cannot have, each with the check for a value without an effect, and what to do. They are
/// refused by name, by the routes of all APIs.
const REFUSED: [(&str, Check, &str); 13] = [
    ("n", |value| *value == 1, "an answer is one: leave it out, or send 1"),
    ("logprobs", is_false, "the chain has no probabilities: leave it out"),
    ("top_logprobs", |value| *value == 0, "the chain has no probabilities: leave it out"),
    ("functions", is_empty, OWN_TOOLS),
    ("function_call", |value| *value == "auto" || *value == "none", OWN_TOOLS),
    ("web_search_options", never, OWN_TOOLS),
    ("mcp_servers", is_empty, OWN_TOOLS),
    ("container", never, OWN_TOOLS),
    ("modalities", |value| *value == json!(["text"]), "an answer is text: leave it out"),
    ("audio", never, "an answer is text: leave it out"),
    ("background", is_false, "an answer comes with its request: leave it out"),
    ("prompt", never, "the chain has its own instructions: leave it out, and send `input`"),
    ("max_tool_calls", never, "the chain has its own limits: leave it out"),
];

const OWN_TOOLS: &str = "the chain has its own tools: leave it out";

fn never(_: &Value) -> bool {
    false
}

fn is_false(value: &Value) -> bool {
    *value == false
}

fn is_empty(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty)
}

impl Api {
    /// Returns the options of the turn that the settings ask for. `tools` are those of the request. `null` counts as
    /// absent.
    ///
    /// # Errors
    /// For a setting that the chain cannot have, or that has another form than in the API. The text names it.
    pub(in crate::routes) fn options(
        self,
        server: &ChatServer,
        fields: &Fields,
        tools: &[Value],
    ) -> Result<ChatOptions, Refusal> {
        for (field, has_no_effect, remedy) in REFUSED {
            if present(fields, field).is_some_and(|value| !has_no_effect(value)) {
                return Err(Refusal::bad_request(format!("`{field}` is not supported: {remedy}")));
            }
        }
        let options = ChatOptions {
            max_tokens: self.max_tokens(server, fields)?,
            stop: self.stop(fields)?.into_iter().map(Into::into).collect(),
            parallel_tool_calls: self.parallel_calls(fields)?,
            tool_choice: match present(fields, "tool_choice") {
                Some(choice) => tool_choice(choice, tools)?,
                None => None,
            },
            response_format: self.format(fields)?,
            ..ChatOptions::default()
        };
        enforceable(server, self.format_field(), options.response_format.as_ref())?;
        Ok(options)
    }

    /// Returns the limit of tokens; the one of the chain if that is smaller.
    fn max_tokens(self, server: &ChatServer, fields: &Fields) -> Result<Option<u32>, Refusal> {
        let names: &[&str] = match self {
            Self::ChatCompletions => &["max_completion_tokens", "max_tokens"],
            Self::Responses => &["max_output_tokens"],
            Self::Messages => &["max_tokens"],
        };
        let Some((name, value)) = names.iter().find_map(|name| Some((name, present(fields, name)?))) else {
            return Ok(None);
        };
        let limit = value.as_u64().and_then(|limit| u32::try_from(limit).ok()).filter(|limit| *limit > 0);
        let limit = limit.ok_or_else(|| wrong(name, "a whole number from 1"))?;
        Ok(Some(server.client.options().max_tokens.map_or(limit, |own| own.min(limit))))
    }

    fn stop(self, fields: &Fields) -> Result<Vec<String>, Refusal> {
        let name = match self {
            Self::ChatCompletions => "stop",
            Self::Messages => "stop_sequences",
            Self::Responses => return Ok(Vec::new()),
        };
        match present(fields, name) {
            None => Ok(Vec::new()),
            Some(Value::String(text)) if self == Self::ChatCompletions => Ok(vec![text.clone()]),
            Some(Value::Array(texts)) => {
                let texts: Option<_> = texts.iter().map(|text| text.as_str().map(str::to_owned)).collect();
                texts.ok_or_else(|| wrong(name, "a list of texts"))
            }
            Some(_) => Err(wrong(name, "a list of texts")),
        }
    }

    fn parallel_calls(self, fields: &Fields) -> Result<Option<bool>, Refusal> {
        let (value, forbidden) = match self {
            Self::Messages => {
                let choice = present(fields, "tool_choice");
                (choice.and_then(|choice| choice.get("disable_parallel_tool_use")), true)
            }
            _ => (present(fields, "parallel_tool_calls"), false),
        };
        match value.filter(|value| !value.is_null()) {
            None => Ok(None),
            Some(Value::Bool(value)) if *value == forbidden => Ok(Some(false)),
            Some(Value::Bool(_)) => Ok(None),
            Some(_) if self == Self::Messages => {
                Err(wrong("tool_choice.disable_parallel_tool_use", "true or false"))
            }
            Some(_) => Err(wrong("parallel_tool_calls", "true or false")),
        }
    }

    fn format_field(self) -> &'static str {
        match self {
            Self::ChatCompletions => "response_format",
            Self::Responses => "text.format",
            Self::Messages => "output_config.format",
        }
    }

    fn format(self, fields: &Fields) -> Result<Option<ResponseFormat>, Refusal> {
        let within = |object: &str| present(fields, object).and_then(|object| object.get("format"));
        let format = match self {
            Self::ChatCompletions => present(fields, "response_format"),
            Self::Responses => within("text"),
            Self::Messages => within("output_config").or_else(|| present(fields, "output_format")),
        };
        let Some(format) = format.filter(|format| !format.is_null()) else { return Ok(None) };
        let unknown =
            || wrong(self.format_field(), "an object of the type `text`, `json_object` or `json_schema`");
        // Chat Completions has the schema in an object of its own.
        let described = if self == Self::ChatCompletions { format.get("json_schema") } else { Some(format) };
        match format.get("type").and_then(Value::as_str) {
            Some("text") => Ok(None),
            Some("json_object") => Ok(Some(ResponseFormat::JsonObject)),
            Some("json_schema") => {
                let described = described.ok_or_else(unknown)?;
                let name = described.get("name").and_then(Value::as_str).unwrap_or("answer").into();
                let schema = described.get("schema").filter(|schema| schema.is_object());
                let schema = schema.ok_or_else(|| wrong(self.format_field(), "one with a `schema`"))?.clone();
                // Anthropic enforces each schema.
                let strict =
                    described.get("strict").and_then(Value::as_bool).unwrap_or(self == Self::Messages);
                Ok(Some(ResponseFormat::JsonSchema { name, schema, strict }))
            }
            _ => Err(unknown()),
        }
    }
}

/// Returns a field that is not `null`.
fn present<'a>(fields: &'a Fields, name: &str) -> Option<&'a Value> {
    fields.get(name).filter(|value| !value.is_null())
}

fn wrong(field: &str, expected: &str) -> Refusal {
    Refusal::bad_request(format!("`{field}` is {expected}"))
}

/// Returns the choice among tools. Without tools of the client, `auto` and `none` say nothing: the chain has its own.
fn tool_choice(choice: &Value, tools: &[Value]) -> Result<Option<ToolChoice>, Refusal> {
    let text = |place: &str| choice.pointer(place).and_then(Value::as_str);
    let kind = choice.as_str().or_else(|| text("/type"));
    let choice = match kind {
        Some("auto") => return Ok(None),
        Some("none") if tools.is_empty() => return Ok(None),
        Some("none") => ToolChoice::None,
        Some("required" | "any") => ToolChoice::Required,
        Some("function" | "tool") => {
            let name = text("/function/name").or_else(|| text("/name")).unwrap_or_default();
            let of_tool =
                |tool: &Value| tool.pointer("/function/name").or(tool.get("name")) == Some(&name.into());
            if !tools.iter().any(of_tool) {
                return Err(wrong("tool_choice", "one of the tools in `tools`"));
            }
            ToolChoice::Tool(name.into())
        }
        _ => {
            return Err(Refusal::bad_request(
                "this `tool_choice` is not supported: choose all tools or one function",
            ));
        }
    };
    match tools.is_empty() {
        true => Err(Refusal::bad_request("`tool_choice` is about `tools`, and the request has none")),
        false => Ok(Some(choice)),
    }
}

/// Refuses a form of the answer that the model of the chain does not enforce.
fn enforceable(server: &ChatServer, field: &str, format: Option<&ResponseFormat>) -> Result<(), Refusal> {
    let support = server.client.chain().schema_support();
    let is_enforced = match format {
        Some(ResponseFormat::JsonObject) => support >= SchemaSupport::JsonObject,
        Some(ResponseFormat::JsonSchema { .. }) => match server.client.tools().is_empty() {
            true => support >= SchemaSupport::JsonSchemaWithoutTools,
            false => support >= SchemaSupport::JsonSchema,
        },
        _ => true,
    };
    match is_enforced {
        true => Ok(()),
        false => {
            let message = format!(
                "`{field}` is not supported: the model of the chain does not enforce this form of an answer; leave it out"
            );
            Err(Refusal::bad_request(message))
        }
    }
}
