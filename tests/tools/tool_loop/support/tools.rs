//! Tools for the tests.

use advisor_tests::prelude::*;

use super::client;

/// A tool that takes any object.
pub(crate) fn definition(name: &str) -> ToolDefinition {
    ToolDefinition::new(name, "A tool of a test.", json!({"type": "object"}))
}

/// A tool that always answers this.
pub(crate) fn tool(name: &str, answer: impl Into<ToolOutput>) -> FnTool {
    let answer = answer.into();
    FnTool::new(definition(name), move |_: Value| {
        let answer = answer.clone();
        async move { Ok(answer) }
    })
}

/// Returns a tool that answers "ok", and its inputs in order.
pub(crate) fn invoked(name: &str) -> (FnTool, Arc<Mutex<Vec<Value>>>) {
    let given = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&given);
    let tool = FnTool::new(definition(name), move |arguments: Value| {
        kept.lock().unwrap().push(arguments);
        async { Ok("ok") }
    });
    (tool, given)
}

/// Returns the result of one call of the only tool, which the model asks for with these arguments.
pub(crate) async fn result_of(tool: FnTool, arguments: &str) -> ToolResult {
    let name = tool.definition().name.to_string();
    let model =
        ScriptedModel::new([Answer::from_calls([("c1", &*name, arguments)]), Answer::from_text("Done.")]);
    let client = client(&model, ToolCallAdvisor::new()).tool(tool).build().unwrap();
    let response = client.prompt().user("go").call().await.unwrap();
    response.transcript().iter().find_map(Message::tool_result).unwrap().clone()
}
