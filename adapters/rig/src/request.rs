//! The request: its messages, tools and options.

mod message;
mod parts;

use std::sync::Arc;

use advisor_core::{ChatOptions, ChatRequest, Error, ResponseFormat, Result, ToolChoice};
use provider_http::names::{IdRule, NameRule, WireNames};
use provider_http::written::parameters_of;
use rig_core::completion::{CompletionRequest, ToolDefinition};
use rig_core::message::{ToolChoice as WireChoice, ToolName};
use rig_core::schemars::Schema;
use serde_json::Value;

use message::Form;

/// The call ids and tool names that all servers behind rig accept.
const IDS: IdRule = IdRule::Word(40);
const NAMES: NameRule = NameRule::LetterFirst;

/// A request for the model, and the names in it.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) request: CompletionRequest,
    pub(crate) names: Arc<WireNames>,
}

/// Prepares a request. Data of `format` goes back in it.
///
/// # Errors
/// Of kind `Configuration` if rig has no field for an option.
pub(crate) fn prepared(request: &ChatRequest, format: &str) -> Result<Prepared> {
    let wire = WireNames::new(request, IDS, NAMES, &[]);
    let mut prompt = CompletionRequest::new("");
    prompt.chat_history = Form::new(&wire, format, &request.messages).messages(&request.messages)?;
    prompt.model = request.options.model.as_ref().map(ToString::to_string);
    prompt.tools = tools(request, &wire)?;
    if !prompt.tools.is_empty() {
        let choice = request.api_tool_choice().map(|choice| tool_choice(choice, &wire));
        prompt.tool_choice = choice.transpose()?;
        prompt.options.parallel_tool_calls = request.options.parallel_tool_calls;
    }
    set_options(&mut prompt, &request.options)?;
    Ok(Prepared { request: prompt, names: Arc::new(wire) })
}

fn set_options(prompt: &mut CompletionRequest, options: &ChatOptions) -> Result<()> {
    if options.extra.get("n").is_some_and(|n| !n.is_null() && *n != 1) {
        return Err(Error::configuration("an answer is one: leave `n` out of the extra fields"));
    }
    let seed = options.seed.map(u64::try_from).transpose();
    prompt.options.seed =
        seed.map_err(|_| Error::configuration("rig has no negative seeds; set a positive one"))?;
    prompt.options.top_p = options.top_p;
    prompt.options.stop = options.stop.iter().map(ToString::to_string).collect();
    prompt.temperature = options.temperature;
    prompt.max_tokens = options.max_tokens.map(u64::from);
    prompt.output_schema =
        options.response_format.as_ref().and_then(|format| schema(format).transpose()).transpose()?;
    prompt.additional_params = (!options.extra.is_empty()).then(|| Value::Object(options.extra.clone()));
    Ok(())
}

/// Returns the schema with its name as title, which is how rig names it.
fn schema(format: &ResponseFormat) -> Result<Option<Schema>> {
    match format {
        ResponseFormat::Text => Ok(None),
        ResponseFormat::JsonSchema { name, schema, .. } => {
            let mut schema = Schema::try_from(schema.clone()).map_err(|error| {
                Error::configuration("the schema of the answer is no schema").with_source(error)
            })?;
            schema.insert("title".to_owned(), name.as_str().into());
            Ok(Some(schema))
        }
        _ => Err(Error::configuration("rig has no field for JSON without a schema; use a JSON schema")),
    }
}

fn tools(request: &ChatRequest, names: &WireNames) -> Result<Vec<ToolDefinition>> {
    let described = request.api_tools().definitions();
    let tool = |tool: &advisor_core::ToolDefinition| {
        let name = tool_name(&names.tool(&tool.name))?;
        Ok(ToolDefinition::new(name, tool.description.to_string(), parameters_of(tool).into_owned()))
    };
    described.map(tool).collect()
}

fn tool_choice(choice: &ToolChoice, names: &WireNames) -> Result<WireChoice> {
    Ok(match choice {
        ToolChoice::None => WireChoice::None,
        ToolChoice::Required => WireChoice::Required,
        ToolChoice::Tool(name) => {
            WireChoice::Specific { function_names: vec![tool_name(&names.tool(name))?] }
        }
        _ => WireChoice::Auto,
    })
}

fn tool_name(name: &str) -> Result<ToolName> {
    ToolName::new(name).map_err(|error| Error::configuration("a tool needs a name").with_source(error))
}
