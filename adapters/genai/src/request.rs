//! The request: its messages, tools and options.

mod message;

use std::sync::Arc;

use advisor_core::{ChatOptions, ChatRequest, Error, ResponseFormat, Result, ToolChoice, ToolDefinition};
use genai::chat::{
    ChatOptions as WireOptions, ChatRequest as WireRequest, ChatResponseFormat, JsonSpec, Tool,
    ToolChoice as WireChoice,
};
use provider_http::names::{IdRule, NameRule, WireNames};
use provider_http::written::parameters_of;
use serde_json::Value;

use message::Form;

/// The call ids and tool names that all servers behind the client accept.
const IDS: IdRule = IdRule::Word(40);
const NAMES: NameRule = NameRule::LetterFirst;

/// A request for the client, and the names in it.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) request: WireRequest,
    pub(crate) options: WireOptions,
    pub(crate) names: Arc<WireNames>,
}

/// Prepares a request. Data of `format` goes back in it.
///
/// # Errors
/// Of kind `Configuration` if the client has no field for an option.
pub(crate) fn prepared(request: &ChatRequest, format: &str, sends_reasoning: bool) -> Result<Prepared> {
    let messages = request.messages.iter();
    let wire = WireNames::new(request, IDS, NAMES, &[]);
    let form = Form { wire: &wire, format, sends_reasoning };
    let prompt = WireRequest::new(messages.map(|message| form.message(message)).collect());
    let tools = tools(request, &wire);
    let mut options = options(&request.options)?;
    if !tools.is_empty() {
        options.tool_choice = request.api_tool_choice().map(|choice| tool_choice(choice, &wire));
    }
    let request = if tools.is_empty() { prompt } else { prompt.with_tools(tools) };
    Ok(Prepared { request, options, names: Arc::new(wire) })
}

fn options(options: &ChatOptions) -> Result<WireOptions> {
    if options.parallel_tool_calls == Some(false) {
        return Err(Error::configuration(
            "genai has no field that forbids parallel calls; send the server's own field as an extra one",
        ));
    }
    if options.extra.get("n").is_some_and(|n| !n.is_null() && *n != 1) {
        return Err(Error::configuration("an answer is one: leave `n` out of the extra fields"));
    }
    let seed = options.seed.map(u64::try_from).transpose();
    let seed = seed.map_err(|_| Error::configuration("genai has no negative seeds; set a positive one"))?;
    // The client passes signatures on only if it captures the reasoning that they sign.
    let mut wire = WireOptions::default()
        .with_capture_usage(true)
        .with_capture_tool_calls(true)
        .with_capture_reasoning_content(true);
    wire.temperature = options.temperature;
    wire.top_p = options.top_p;
    wire.max_tokens = options.max_tokens;
    wire.stop_sequences = options.stop.iter().map(ToString::to_string).collect();
    wire.seed = seed;
    wire.response_format = response_format(options.response_format.as_ref())?;
    wire.extra_body = (!options.extra.is_empty()).then(|| Value::Object(options.extra.clone()));
    Ok(wire)
}

fn response_format(format: Option<&ResponseFormat>) -> Result<Option<ChatResponseFormat>> {
    match format {
        None | Some(ResponseFormat::Text) => Ok(None),
        Some(ResponseFormat::JsonObject) => Ok(Some(ChatResponseFormat::JsonMode)),
        Some(ResponseFormat::JsonSchema { name, schema, .. }) => {
            Ok(Some(ChatResponseFormat::JsonSpec(JsonSpec::new(name.as_str(), schema.clone()))))
        }
        Some(_) => Err(Error::configuration("genai does not know this response format; use a JSON schema")),
    }
}

fn tools(request: &ChatRequest, names: &WireNames) -> Vec<Tool> {
    let described = request.api_tools().definitions();
    let tool = |tool: &ToolDefinition| {
        Tool::new(names.tool(&tool.name).into_owned())
            .with_description(tool.description.to_string())
            .with_schema(parameters_of(tool).into_owned())
    };
    described.map(tool).collect()
}

fn tool_choice(choice: &ToolChoice, names: &WireNames) -> WireChoice {
    match choice {
        ToolChoice::None => WireChoice::None,
        ToolChoice::Required => WireChoice::Required,
        ToolChoice::Tool(name) => WireChoice::tool(names.tool(name).into_owned()),
        _ => WireChoice::Auto,
    }
}
