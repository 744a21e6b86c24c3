//! Tools for tests.

use crate::prelude::*;

/// A tool that takes any object.
pub fn definition(name: &str) -> ToolDefinition {
    ToolDefinition::new(name, "A tool of a test.", json!({"type": "object"}))
}

/// A tool that always answers this.
pub fn tool(name: &str, answer: impl Into<ToolOutput>) -> FnTool {
    let answer = answer.into();
    FnTool::new(definition(name), move |_: Value| {
        let answer = answer.clone();
        async move { Ok(answer) }
    })
}

/// Returns a tool that answers "ok", and its inputs in order.
pub fn invoked(name: &str) -> (FnTool, Arc<Mutex<Vec<Value>>>) {
    let given = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&given);
    let tool = FnTool::new(definition(name), move |arguments: Value| {
        kept.lock().unwrap().push(arguments);
        async { Ok("ok") }
    });
    (tool, given)
}
