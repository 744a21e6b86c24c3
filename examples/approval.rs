//! A call that a person approves, and that runs at most once, whichever process runs it.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use advisor_chain::tools::{CallRun, CallStart, Effect, ToolSet};
use advisor_chain::{
    ChatMemoryAdvisor, ConversationKey, FnTool, InMemoryStore, Message, Result, ToolCallAdvisor,
    ToolDefinition, client,
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
    // The turn ends with calls of this tool. The program that approves them runs them.
    let charge = ToolDefinition::new("charge", "Charges the customer's card.", schema)
        .with_effect(Effect::AtMostOnce)
        .client_side();
    let tools = ToolSet::new().with(FnTool::new(charge, |_: Value| async { Ok("charged") }));
    let (advisor, memory) = (ToolCallAdvisor::new(), ChatMemoryAdvisor::new(InMemoryStore::new()));
    let client = client(model).advisor(memory.clone()).advisor(advisor.clone()).tools(&tools).build()?;
    let conversation = ConversationKey::new("c1")?;
    client.prompt().user("Charge 42 euros.").conversation(conversation.clone()).call().await?;

    // Later, in any process: a person has approved the calls that the conversation waits for.
    let mut results = Vec::new();
    for open in memory.client_side_calls(&conversation).await? {
        let Some(key) = open.key else { continue };
        // Of all that try, one gets past this line. It is stored before the card is charged.
        let start = CallStart::new(key.clone(), open.call.id.clone());
        memory.record_call_start(&conversation, &start).await?;
        println!("running {} under the key {key}", open.call.name);
        results.push(Message::tool(advisor.run_call(&tools, CallRun::new(open.call, key)).await?));
    }
    let answer = client.prompt().messages(results).conversation(conversation).call().await?;
    println!("{}", answer.text());
    Ok(())
}
