//! `Catalog`: the bounded list of a server as definitions and tools, whose names all providers accept.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Once};

use advisor_core::{Effect, Error, ErrorKind, Result, ToolDefinition, ToolSet};
use rmcp::model::{
    ClientRequest, ListToolsRequest, PaginatedRequestParams, ServerResult, Tool, ToolAnnotations,
};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use tokio::time::error::Elapsed;

use super::connection::Connection;
use super::failure;
use super::link::Link;
use super::server::{Annotations, McpServer};
use super::tool::McpTool;

/// The number of pages that a list may have.
const MOST_PAGES: usize = 100;

/// The tools that a list may have.
const MOST_TOOLS: usize = 1_000;

/// The bytes that the definitions of a server may have.
const MOST_BYTES: usize = 4 << 20;

/// The bytes that one schema may have.
const MOST_SCHEMA_BYTES: usize = 256 << 10;

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
    /// The order in which the servers of this process announced their names. A name that stays in the list keeps it.
    pub(super) since: u64,
    /// Warns once per list.
    pub(super) warning: Once,
}

impl Listed {
    fn new(tool: McpTool, before: Option<&Catalog>) -> Self {
        static ANNOUNCED: AtomicU64 = AtomicU64::new(0);
        let known = before.and_then(|before| before.find(&tool.definition.name));
        let since = known.map_or_else(|| ANNOUNCED.fetch_add(1, Ordering::Relaxed), |known| known.since);
        let tool = Arc::new(tool);
        let alone = [Arc::clone(&tool) as Arc<dyn advisor_core::Tool>].into_iter().collect();
        Self { tool, alone, since, warning: Once::new() }
    }
}

impl Catalog {
    /// Asks the server for its tools. `before` is the list before this one. The cache of the protocol's library is not
    /// used.
    pub(super) async fn read(
        link: &Arc<Link>,
        connection: &Connection,
        before: Option<&Self>,
    ) -> Result<Arc<Self>> {
        let server = &link.server;
        let timeout = server.settings.timeout;
        let listed = tokio::time::timeout(timeout, list(server, connection)).await;
        let listed = listed.map_err(|elapsed: Elapsed| {
            let name = &server.settings.name;
            let text =
                format!("the MCP server `{name}` did not list its tools within {} s", timeout.as_secs_f64());
            Error::new(ErrorKind::Timeout, text).with_source(elapsed)
        })??;
        let mut tools = Vec::<Listed>::new();
        let kept = listed.into_iter().filter(|tool| (server.settings.filter)(&tool.name));
        for tool in kept.map(|tool| mcp_tool(tool, link)) {
            if tool.definition.parameters.to_string().len() > MOST_SCHEMA_BYTES {
                let (server, tool) = (server.settings.name.as_str(), failure::logged(&tool.name));
                tracing::warn!(server, tool, "a tool of an MCP server is left out: its schema is too long");
                continue;
            }
            if tools.iter().any(|known| known.tool.definition.name == tool.definition.name) {
                let (server, name) = (server.settings.name.as_str(), failure::logged(&tool.name));
                tracing::warn!(
                    server,
                    tool = name,
                    "an MCP server has two tools of one name; the second is left out"
                );
                continue;
            }
            tools.push(Listed::new(tool, before));
        }
        let set = tools.iter().map(|known| Arc::clone(&known.tool) as Arc<dyn advisor_core::Tool>).collect();
        Ok(Arc::new(Self { tools, set }))
    }

    /// Returns the tool of this name in requests.
    fn find(&self, name: &str) -> Option<&Listed> {
        self.tools.iter().find(|known| known.tool.definition.name == *name)
    }

    /// Returns the entry of a tool of this catalog.
    pub(super) fn entry(&self, tool: &Arc<dyn advisor_core::Tool>) -> Option<&Listed> {
        let of = |known: &&Listed| std::ptr::addr_eq(Arc::as_ptr(&known.tool), Arc::as_ptr(tool));
        self.tools.iter().find(of)
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
        if tools.len() > MOST_TOOLS || bytes > MOST_BYTES {
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
    let name = &server.settings.name;
    let text = format!(
        "the MCP server `{name}` lists more than {MOST_TOOLS} tools, {MOST_PAGES} pages or {MOST_BYTES} bytes of definitions"
    );
    Error::new(ErrorKind::TooLarge, text)
}

fn mcp_tool(tool: Tool, link: &Arc<Link>) -> McpTool {
    let settings = &link.server.settings;
    let name = provider_name(&settings.prefix, &tool.name);
    let description = tool.description.or(tool.title.map(Into::into)).unwrap_or_default();
    let mut definition = ToolDefinition::new(name, &*description, schema(&tool.input_schema));
    definition.origin = Some(link.origin.clone());
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

/// The longest name that all providers accept.
const LONGEST: usize = 64;

/// Bytes of the hash in a changed name, two letters each.
const HASH: usize = 4;

/// Returns the name of a tool for providers: the prefix and the server's name, if all providers accept them.
///
/// Otherwise other characters become `_`, the name is cut, and a hash of it follows. Of names that still become equal,
/// the first stays.
pub(super) fn provider_name(prefix: &str, name: &str) -> String {
    let whole = format!("{prefix}{name}");
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if !name.is_empty() && whole.len() <= LONGEST && whole.chars().all(fits) {
        return whole;
    }
    let hash: String = Sha256::digest(&whole).iter().take(HASH).map(|byte| format!("{byte:02x}")).collect();
    let kept = LONGEST - 2 * HASH - 1;
    let fitting: String = whole.chars().map(|c| if fits(c) { c } else { '_' }).take(kept).collect();
    format!("{fitting}_{hash}")
}

#[cfg(test)]
mod tests {
    use advisor_core::ToolDefinition;

    use super::*;

    #[test]
    fn fitting_names_stay() {
        assert_eq!(provider_name("", "read_file"), "read_file");
        assert_eq!(provider_name("fs.", "read-file"), "fs.read-file");
        assert_eq!(provider_name("", &"a".repeat(64)), "a".repeat(64));
    }

    #[test]
    fn other_names_become_stable_valid_and_different() {
        let long = ["a".repeat(65), format!("{}b", "a".repeat(64))];
        let names =
            ["", "search docs", "search_docs ", "search/docs", "naïve", "\u{1b}[2J", &long[0], &long[1]];
        let changed: Vec<_> = names.iter().map(|name| provider_name("", name)).collect();
        assert_eq!(changed, names.map(|name| provider_name("", name)));
        for (at, name) in changed.iter().enumerate() {
            ToolDefinition::new(name.as_str(), "", Value::Null).validate().unwrap();
            assert!(!changed[..at].contains(name), "{name}");
        }
        assert_eq!(changed[1], "search_docs_0017ff16");
    }
}
