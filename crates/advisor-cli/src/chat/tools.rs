//! The tools of `advisor chat`.

use std::time::SystemTime;

use advisor_chain::tools::{ToolInvocation, ToolSet};
use advisor_chain::{FnTool, ToolDefinition};
use serde_json::{Value, json};

use super::folder::SharedFolder;

/// Returns the harmless tools, and one that reads files if a folder is shared.
pub(super) fn tools(files: Option<SharedFolder>) -> ToolSet {
    let tools = ToolSet::new().with(current_time());
    match files {
        Some(folder) => tools.with(read_file(folder)),
        None => tools,
    }
}

fn current_time() -> FnTool {
    let definition = ToolDefinition::new(
        "current_time",
        "Tells the current date and time in UTC.",
        json!({"type": "object", "properties": {}}),
    );
    FnTool::new(definition, |_: Value| async { Ok(httpdate::fmt_http_date(SystemTime::now())) })
}

fn read_file(folder: SharedFolder) -> FnTool {
    let definition = ToolDefinition::new(
        "read_file",
        "Reads a text file in the folder that the user shares, or in a folder inside it.",
        json!({
            "type": "object",
            "properties": {"path": {"type": "string", "description": "The path, relative to that folder."}},
            "required": ["path"],
        }),
    );
    FnTool::blocking(definition, 2, move |invocation: ToolInvocation| {
        folder.read(invocation.arguments.get("path").and_then(Value::as_str).unwrap_or_default())
    })
}
