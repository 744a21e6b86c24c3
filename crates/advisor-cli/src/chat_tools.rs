//! The built-in tools of `advisor chat`.

use std::path::Path;
use std::time::SystemTime;

use advisor_chain::{FnTool, ToolDefinition, ToolError, ToolInvocation, ToolSet};
use serde_json::{Value, json};

/// The most that is read of a file, in bytes.
const MOST: u64 = 256 << 10;

pub(crate) fn tools() -> ToolSet {
    ToolSet::new().with(current_time()).with(read_file())
}

fn current_time() -> FnTool {
    let definition = ToolDefinition::new(
        "current_time",
        "Tells the current date and time in UTC.",
        json!({"type": "object", "properties": {}}),
    );
    FnTool::new(definition, |_: Value| async { Ok(httpdate::fmt_http_date(SystemTime::now())) })
}

fn read_file() -> FnTool {
    let definition = ToolDefinition::new(
        "read_file",
        "Reads a text file in the folder in which the chat was started, or in a folder inside it.",
        json!({
            "type": "object",
            "properties": {"path": {"type": "string", "description": "The path, relative to that folder."}},
            "required": ["path"],
        }),
    );
    FnTool::blocking(definition, 2, |invocation: ToolInvocation| {
        let path = invocation.arguments.get("path").and_then(Value::as_str).unwrap_or_default();
        read_inside(&std::env::current_dir()?, path)
    })
}

/// Reads a file that lies inside `folder`, links followed.
fn read_inside(folder: &Path, path: &str) -> Result<String, ToolError> {
    let folder = folder.canonicalize()?;
    let file = folder.join(path).canonicalize()?;
    if !file.starts_with(&folder) {
        return Err(ToolError::new("only files inside the folder of this chat can be read"));
    }
    let size = file.metadata()?.len();
    if size > MOST {
        return Err(ToolError::new(format!("the file has {size} bytes; at most {MOST} can be read")));
    }
    Ok(std::fs::read_to_string(file)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_inside_the_folder_are_read() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert!(read_inside(folder, "Cargo.toml").unwrap().contains("advisor-cli"));
        assert!(read_inside(folder, "src/../Cargo.toml").is_ok());
        let outside = read_inside(folder, "../../Cargo.toml").unwrap_err();
        assert!(outside.text().contains("inside the folder"), "{outside:?}");
        assert!(read_inside(folder, "/etc/passwd").is_err());
        assert!(read_inside(folder, "no-such-file").is_err());
    }
}
