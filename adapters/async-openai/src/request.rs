//! The request: its messages, tools and options.

mod message;
mod parts;

use std::sync::Arc;

use advisor_core::{ChatRequest, Error, ResponseFormat, Result, ToolChoice};
use async_openai::types::chat::{
    ChatCompletionNamedToolChoice, ChatCompletionStreamOptions, ChatCompletionTool,
    ChatCompletionToolChoiceOption, ChatCompletionTools, CreateChatCompletionRequest, FunctionName,
    FunctionObject, ResponseFormat as WireFormat, ResponseFormatJsonSchema, StopConfiguration,
    ToolChoiceOptions,
};
use provider_http::names::{IdRule, NameRule, WireNames};
use provider_http::written::parameters_of;

/// The call ids that OpenAI accepts.
const IDS: IdRule = IdRule::UpTo(40);

/// A request, and the facts needed to read the answer to it.
#[derive(Debug)]
pub(crate) struct Body {
    #[cfg(not(feature = "byot"))]
    pub(crate) request: CreateChatCompletionRequest,
    #[cfg(feature = "byot")]
    pub(crate) json: serde_json::Value,
    /// The names of its tools on the wire.
    pub(crate) names: Arc<WireNames>,
}

/// Returns the request to `model`, unless the options name another one.
///
/// # Errors
/// Of kind `Configuration` if the client has no field for an option.
pub(crate) fn body(request: &ChatRequest, model: &str) -> Result<Body> {
    let messages = request.messages.iter();
    let wire = WireNames::new(request, IDS, NameRule::Word, &[]);
    let mut body = CreateChatCompletionRequest {
        model: request.options.model.as_deref().unwrap_or(model).to_owned(),
        messages: messages.map(|message| message::on_the_wire(message, &wire)).collect(),
        stream: Some(true),
        stream_options: Some(ChatCompletionStreamOptions {
            include_usage: Some(true),
            ..ChatCompletionStreamOptions::default()
        }),
        ..CreateChatCompletionRequest::default()
    };
    set_options(&mut body, request)?;
    set_tools(&mut body, request, &wire);
    complete(body, request, Arc::new(wire))
}

#[cfg(not(feature = "byot"))]
fn complete(body: CreateChatCompletionRequest, request: &ChatRequest, names: Arc<WireNames>) -> Result<Body> {
    if let Some(field) = request.options.extra.keys().next() {
        return Err(Error::configuration(format!(
            "the extra field `{field}` needs the feature `byot` of model-async-openai; turn it on, or leave the field out"
        )));
    }
    Ok(Body { request: body, names })
}

/// Returns the request as JSON. The extra fields come last and override others.
#[cfg(feature = "byot")]
fn complete(body: CreateChatCompletionRequest, request: &ChatRequest, names: Arc<WireNames>) -> Result<Body> {
    use serde_json::Value;

    let mut json = serde_json::to_value(body)
        .map_err(|error| Error::configuration("the request cannot be written as JSON").with_source(error))?;
    if let Value::Object(fields) = &mut json {
        fields.extend(request.options.extra.clone());
    }
    if json.get("n").is_some_and(|n| !n.is_null() && *n != 1) {
        return Err(Error::configuration(
            "an answer is one: leave `n` out of the extra fields, or ask several times",
        ));
    }
    Ok(Body { json, names })
}

#[allow(deprecated, clippy::cast_possible_truncation, reason = "the client has these fields, with 32 bits")]
fn set_options(body: &mut CreateChatCompletionRequest, request: &ChatRequest) -> Result<()> {
    let options = &request.options;
    body.temperature = options.temperature.map(|number| number as f32);
    body.top_p = options.top_p.map(|number| number as f32);
    body.max_completion_tokens = options.max_tokens;
    body.seed = options.seed;
    let stop: Vec<String> = options.stop.iter().map(ToString::to_string).collect();
    body.stop = (!stop.is_empty()).then_some(StopConfiguration::StringArray(stop));
    body.response_format = options.response_format.as_ref().map(response_format).transpose()?;
    Ok(())
}

fn set_tools(body: &mut CreateChatCompletionRequest, request: &ChatRequest, names: &WireNames) {
    let described = request.api_tools();
    // Servers refuse fields about tools if no tool is offered.
    if described.is_empty() {
        return;
    }
    let tools = described.definitions().map(|tool| {
        ChatCompletionTools::Function(ChatCompletionTool {
            function: FunctionObject {
                name: names.tool(&tool.name).into_owned(),
                description: Some(tool.description.to_string()),
                parameters: Some(parameters_of(tool).into_owned()),
                strict: None,
            },
        })
    });
    body.tools = Some(tools.collect());
    body.tool_choice = request.api_tool_choice().map(|choice| tool_choice(choice, names));
    body.parallel_tool_calls = request.options.parallel_tool_calls;
}

fn tool_choice(choice: &ToolChoice, names: &WireNames) -> ChatCompletionToolChoiceOption {
    let mode = match choice {
        ToolChoice::None => ToolChoiceOptions::None,
        ToolChoice::Required => ToolChoiceOptions::Required,
        ToolChoice::Tool(name) => {
            let function = FunctionName { name: names.tool(name).into_owned() };
            return ChatCompletionToolChoiceOption::Function(ChatCompletionNamedToolChoice { function });
        }
        _ => ToolChoiceOptions::Auto,
    };
    ChatCompletionToolChoiceOption::Mode(mode)
}

fn response_format(format: &ResponseFormat) -> Result<WireFormat> {
    match format {
        ResponseFormat::Text => Ok(WireFormat::Text),
        ResponseFormat::JsonObject => Ok(WireFormat::JsonObject),
        ResponseFormat::JsonSchema { name, schema, strict } => {
            let (name, schema, strict) = (name.to_string(), schema.clone(), Some(*strict));
            let json_schema = ResponseFormatJsonSchema { description: None, name, schema, strict };
            Ok(WireFormat::JsonSchema { json_schema })
        }
        _ => Err(Error::configuration("async-openai does not know this response format; use a JSON schema")),
    }
}
