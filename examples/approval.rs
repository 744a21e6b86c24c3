//! A call that a person approves, and that runs at most once, whichever process runs it.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use advisor_chain::tools::{Effect, PolicyAction, ToolPolicy, ToolRule};
use advisor_chain::{
    ChatMemoryAdvisor, FnTool, InMemoryStore, Result, ToolCallAdvisor, ToolDefinition, client,
};
use advisor_testkit::{Answer, ScriptedModel};
use serde_json::{Value, json};

#[tokio::main]
async fn main() -> Result<()> {
    let model = ScriptedModel::new([
        Answer::from_calls([("c1", "charge", r#"{"cents":4200}"#)]),
        Answer::from_text("Your card was charged."),
    ]);
    let schema =
        json!({"type": "object", "properties": {"cents": {"type": "integer"}}, "required": ["cents"]});
    let charge = ToolDefinition {
        effect: Some(Effect::AtMostOnce),
        ..ToolDefinition::new("charge", "Charges the customer's card.", schema)
    };
    let charge = FnTool::new(charge, |_: Value| async { Ok("charged") });
    // The turn ends with calls of this tool, until a person has decided.
    let policy =
        ToolPolicy { rules: vec![ToolRule::new(["charge"], PolicyAction::Ask)], ..ToolPolicy::default() };
    let tool_loop = ToolCallAdvisor::builder().policy(policy).build()?;
    let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
    let client = client(model).advisor(memory).advisor(tool_loop).tool(charge).build()?;
    client.prompt().user("Charge 42 euros.").conversation("c1").call().await?;

    // Later, in any process with this chain and store: a person sees what waits, and decides.
    let mut decisions = Vec::new();
    for pending in client.pending_calls("c1").await? {
        println!("approving {} {}", pending.call.name, pending.call.arguments);
        decisions.push(pending.approve()?);
    }
    // Of all processes that resume, one gets past this line. The start of the call is stored before it runs.
    let answer = client.prompt().conversation("c1").resume(decisions).call().await?;
    println!("{}", answer.text());
    Ok(())
}
