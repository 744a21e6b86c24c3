//! A tool that must not run twice: its turn is dropped while it runs, and the next turn knows.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use advisor_chain::tools::{Effect, ToolInvocation};
use advisor_chain::{ChatMemoryAdvisor, FnTool, InMemoryStore, Result, ToolDefinition, client};
use advisor_testkit::{Answer, Gate, ScriptedModel};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<()> {
    let model = ScriptedModel::new([
        Answer::from_calls([("c1", "charge", r#"{"cents":4200}"#)]),
        Answer::from_text("I was interrupted and will look first whether the card was charged."),
    ]);
    let schema =
        json!({"type": "object", "properties": {"cents": {"type": "integer"}}, "required": ["cents"]});
    let charging = Gate::new();
    let charge = {
        let charging = charging.clone();
        FnTool::with_invocation(
            ToolDefinition {
                effect: Some(Effect::AtMostOnce),
                ..ToolDefinition::new("charge", "Charges the customer's card.", schema)
            },
            move |invocation: ToolInvocation| {
                let charging = charging.clone();
                async move {
                    // A payment service takes the text of the key as its idempotency key.
                    println!("charging, under the key {}", invocation.key);
                    charging.pass().await;
                    Ok("charged".into())
                }
            },
        )
    };
    let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
    let client = client(model.clone()).advisor(memory).tool(charge).build()?;

    let turn = client.prompt().user("Charge 42 euros.").conversation("c1").call();
    tokio::select! {
        answered = turn => println!("{}", answered?.text()),
        () = charging.reached() => println!("the user closes the window"),
    }
    let answer = client.prompt().user("Did it work?").conversation("c1").call().await?;
    let sent = model.prompts().last().map(|prompt| prompt.messages.clone()).unwrap_or_default();
    let told = sent.iter().find_map(|message| message.tool_result().map(|result| result.text()));
    println!("the model reads: {}", told.unwrap_or_default());
    println!("{}", answer.text());
    Ok(())
}
