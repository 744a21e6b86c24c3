//! The tools of a request, as the API describes them to the model.

use advisor_core::{ChatRequest, Result, ToolChoice, ToolDefinition};
use provider_http::names::WireNames;
use provider_http::written::{entries, parameters_of, unwritable, written_tools};
use serde_json::{Map, Value, json};

use super::Blocks;
use crate::caching::PromptCaching;
use crate::wire::text;

/// The tools of a request, and definitions that the caller wrote in the form of the API. One of those describes the
/// tool of the request with its name, or else a tool that the server runs.
pub(super) struct Offered<'a> {
    request: &'a ChatRequest,
    definitions: &'a [Value],
}

impl<'a> Offered<'a> {
    pub(super) fn new(request: &'a ChatRequest, definitions: &'a [Value]) -> Self {
        Self { request, definitions }
    }

    /// Returns the tool choice on the wire; `None` if it is left to the server. The API refuses one if it knows no
    /// tool.
    pub(super) fn tool_choice(&self, names: &WireNames) -> Option<Value> {
        let (choice, parallel) = (self.choice(), self.request.options.parallel_tool_calls);
        let is_empty = self.request.api_tools().is_empty() && self.verbatim().next().is_none();
        if is_empty || (choice.is_none() && parallel.is_none()) {
            return None;
        }
        let mut fields = Map::new();
        let kind = match choice {
            Some(ToolChoice::None) => "none",
            Some(ToolChoice::Required) => "any",
            Some(ToolChoice::Tool(name)) => {
                fields.insert("name".to_owned(), names.tool(name).into());
                "tool"
            }
            _ => "auto",
        };
        fields.insert("type".to_owned(), kind.into());
        if let Some(parallel) = parallel.filter(|_| kind != "none") {
            fields.insert("disable_parallel_tool_use".to_owned(), (!parallel).into());
        }
        Some(Value::Object(fields))
    }

    /// Returns the tool choice, unless it is about tools that only an advisor describes.
    fn choice(&self) -> Option<&'a ToolChoice> {
        let choice = self.request.options.tool_choice.as_ref();
        let is_sent = match choice {
            Some(ToolChoice::Tool(name)) => self.verbatim().any(|described| described == name.as_str()),
            _ => self.verbatim().next().is_some(),
        };
        if is_sent { choice } else { self.request.api_tool_choice() }
    }

    /// Returns the names of the tools that the caller wrote for the API.
    pub(super) fn verbatim(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let own = self.request.options.extra.get("tools").and_then(Value::as_array);
        own.into_iter().flatten().chain(self.definitions).filter_map(|tool| text(tool, "name"))
    }

    /// Returns the tools in JSON, separated by commas; the last one is marked for the cache. The tools of a set are
    /// written once, unless one is described by the caller.
    pub(super) fn written(&self, names: &WireNames, caching: PromptCaching) -> Result<Vec<u8>> {
        let set = self.request.api_tools();
        let is_described = |tool: &ToolDefinition| {
            self.definitions.iter().any(|definition| text(definition, "name") == Some(&tool.name))
        };
        let write = || {
            let undescribed = set.definitions().filter(|tool| !is_described(tool));
            entries(undescribed.map(|tool| described(tool, names)))
        };
        let own = match set.definitions().any(is_described) {
            true => write(),
            false => written_tools(set, names, &ToolsForm, write),
        }?;
        let mut all = Blocks(own.into());
        self.definitions.iter().try_for_each(|definition| all.push(definition)).map_err(unwritable)?;
        caching.mark(&mut all.0);
        Ok(all.0)
    }
}

/// The form of a list of tools, which depends on the tools alone.
#[derive(Clone, PartialEq)]
struct ToolsForm;

/// Describes a tool to the model.
fn described(tool: &ToolDefinition, names: &WireNames) -> Value {
    let mut described = json!({ "name": names.tool(&tool.name), "input_schema": parameters_of(tool) });
    if let Some(fields) = described.as_object_mut().filter(|_| !tool.description.is_empty()) {
        fields.insert("description".to_owned(), tool.description.as_str().into());
    }
    described
}
