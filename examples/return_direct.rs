//! Tools whose results go straight to the user: the model is not asked again.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::collections::BTreeMap;

use advisor_chain::{FnTool, Result, ToolDefinition, client};
use advisor_testkit::{Answer, ScriptedModel};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<()> {
    let model = ScriptedModel::new([Answer::from_calls([
        ("c1", "invoice", r#"{"number":7}"#),
        ("c2", "invoice", r#"{"number":8}"#),
    ])]);
    let schema =
        json!({"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]});
    let invoice = FnTool::new(
        ToolDefinition { return_direct: true, ..ToolDefinition::new("invoice", "Shows an invoice.", schema) },
        // Arguments deserialise into any type that fits the schema.
        |arguments: BTreeMap<String, u32>| async move {
            Ok(format!("Invoice {}: paid.", arguments.get("number").copied().unwrap_or_default()))
        },
    );
    let client = client(model.clone()).tool(invoice).build()?;
    let response = client.prompt().user("Show me invoices 7 and 8.").call().await?;
    // One block per result, the later ones begin with a blank line.
    println!("{}", response.text());
    println!("{:?} after {} model call", response.finish.reason, model.calls());
    Ok(())
}
