use std::sync::{Arc, Once};

use advisor_core::{Effect, Error, ErrorKind, Result, Text, Tool as _, ToolDefinition, ToolSet};
use rmcp::model::{
    ClientRequest, ListToolsRequest, PaginatedRequestParams, ServerResult, Tool, ToolAnnotations,
};
use serde_json::{Map, Value, json};
use tokio::time::error::Elapsed;

use super::connection::Connection;
use super::failure;
use super::link::Link;
use super::names::provider_name;
use super::schema::is_bounded;
use super::server::{Annotations, McpServer};
use super::tool::McpTool;

/// The number of pages that a list may have.
const MOST_PAGES: usize = 100;

/// The bytes that the definitions of a server may have.
const MOST_BYTES: usize = 4 << 20;

/// Two tools have one name. It is the source of an error of kind
/// [`Configuration`](advisor_core::ErrorKind::Configuration).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{first}` and `{second}` are both called `{name}`")]
#[non_exhaustive]
pub struct DuplicateTool {
    /// The name that both have in requests.
    pub name: Text,
    /// The tool that has the name already: the server's name of it, or the name itself if it is another tool.
    pub first: Text,
    /// The server's name of the tool that came second.
    pub second: Text,
}

impl DuplicateTool {
    /// Returns the error with its remedy.
    pub(super) fn into_error(self, server: &McpServer) -> Error {
        let name = self.name.escape_debug();
        let server = &server.settings.name;
        let text = format!(
            "two tools are called `{name}`, one of them of the MCP server `{server}`: give the server a prefix, or leave one out by a filter"
        );
        Error::configuration(text).with_source(self)
    }
}

/// The tools of a server at one time.
pub(super) struct Catalog {
    pub(super) tools: Vec<Listed>,
    pub(super) set: ToolSet,
}

/// A tool of a list.
pub(super) struct Listed {
    pub(super) tool: Arc<McpTool>,
    /// The set of this tool alone, with which its check is cached.
    pub(super) alone: ToolSet,
    /// Warns once per list.
    pub(super) warning: Once,
}

impl Listed {
    fn new(tool: McpTool) -> Self {
        let tool = Arc::new(tool);
        let alone = [Arc::clone(&tool) as Arc<dyn advisor_core::Tool>].into_iter().collect();
        Self { tool, alone, warning: Once::new() }
    }
}

impl Catalog {
    /// Asks the server for its tools. The cache of the protocol's library is not used.
    pub(super) async fn read(link: &Arc<Link>, connection: &Connection) -> Result<Arc<Self>> {
        let server = &link.server;
        let timeout = server.settings.timeout;
        let listed = tokio::time::timeout(timeout, list(server, connection)).await;
        let listed = listed.map_err(|elapsed: Elapsed| {
            let name = &server.settings.name;
            let text =
                format!("the MCP server `{name}` did not list its tools within {} s", timeout.as_secs_f64());
            Error::new(ErrorKind::Timeout, text).with_source(elapsed)
        })??;
        let mut tools: Vec<Listed> = Vec::new();
        let kept = listed.into_iter().filter(|tool| (server.settings.filter)(&tool.name));
        for tool in kept.map(|tool| mcp_tool(tool, link)) {
            if !is_bounded(&tool.definition.parameters) {
                let (server, tool) = (server.settings.name.as_str(), failure::logged(&tool.name));
                tracing::warn!(server, tool, "a tool of an MCP server is left out: its schema has no bound");
                continue;
            }
            let name = &tool.definition.name;
            if let Some(first) = tools.iter().find(|known| known.tool.definition.name == *name) {
                let (first, second) = (first.tool.name.clone(), tool.name);
                return Err(DuplicateTool { name: tool.definition.name, first, second }.into_error(server));
            }
            tools.push(Listed::new(tool));
        }
        let set = tools.iter().map(|known| Arc::clone(&known.tool) as Arc<dyn advisor_core::Tool>).collect();
        Ok(Arc::new(Self { tools, set }))
    }

    /// Returns `base` with those tools of this catalog that `keep` returns true for.
    ///
    /// # Errors
    /// [`DuplicateTool`] if `base` has a tool of the same name.
    pub(super) fn added_to(
        &self,
        base: &ToolSet,
        server: &McpServer,
        keep: impl Fn(&Listed) -> bool,
    ) -> Result<ToolSet> {
        let mut all = base.clone();
        for Listed { tool, .. } in self.tools.iter().filter(|listed| keep(listed)) {
            let name = &tool.definition().name;
            if base.find(name).is_some() {
                let (first, second) = (name.clone(), tool.name.clone());
                return Err(DuplicateTool { name: name.clone(), first, second }.into_error(server));
            }
            all.insert(Arc::clone(tool) as Arc<dyn advisor_core::Tool>);
        }
        Ok(all)
    }
}

async fn list(server: &McpServer, connection: &Connection) -> Result<Vec<Tool>> {
    let (mut tools, mut bytes, mut cursor) = (Vec::new(), 0_usize, None);
    if !connection.has_tools() {
        return Ok(tools);
    }
    for _ in 0..MOST_PAGES {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
        let answer = async { connection.send(request).await?.answer().await }.await;
        let answer = answer.inspect_err(|error| connection.note(error));
        let ServerResult::ListToolsResult(page) =
            answer.map_err(|error| failure::not_listed(server, &error))?
        else {
            return Err(failure::not_listed(server, &rmcp::service::ServiceError::UnexpectedResponse));
        };
        for tool in page.tools {
            bytes = bytes.saturating_add(serde_json::to_string(&tool).map_or(MOST_BYTES, |json| json.len()));
            tools.push(tool);
        }
        if tools.len() > server.settings.max_tools || bytes > MOST_BYTES {
            return Err(too_long(server));
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(tools);
        }
    }
    Err(too_long(server))
}

fn too_long(server: &McpServer) -> Error {
    let (name, most) = (&server.settings.name, server.settings.max_tools);
    let text = format!(
        "the MCP server `{name}` lists more than {most} tools, {MOST_PAGES} pages or {MOST_BYTES} bytes of definitions"
    );
    Error::new(ErrorKind::TooLarge, text)
}

fn mcp_tool(tool: Tool, link: &Arc<Link>) -> McpTool {
    let settings = &link.server.settings;
    let name = provider_name(&settings.prefix, &tool.name);
    let description = tool.description.or(tool.title.map(Into::into)).unwrap_or_default();
    let mut definition = ToolDefinition::new(name, &*description, schema(&tool.input_schema));
    definition.effect = match settings.annotations {
        Annotations::Ignored => None,
        Annotations::Trusted => tool.annotations.as_ref().and_then(effect),
    };
    McpTool { definition, name: (&*tool.name).into(), link: Arc::clone(link) }
}

/// Returns the schema of the arguments. Some servers leave out that they are an object.
fn schema(schema: &Map<String, Value>) -> Value {
    let mut schema = schema.clone();
    schema.entry("type").or_insert_with(|| json!("object"));
    Value::Object(schema)
}

fn effect(annotations: &ToolAnnotations) -> Option<Effect> {
    match (annotations.read_only_hint, annotations.idempotent_hint) {
        (Some(true), _) => Some(Effect::Pure),
        (_, Some(true)) => Some(Effect::Idempotent),
        _ => None,
    }
}
