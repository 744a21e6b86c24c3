//! Policies over a streamed answer: names are replaced while they stream, and a judge refuses a call. Memory stores the
//! shown text.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use advisor_chain::messages::BlockDelta;
use advisor_chain::stream_policy::{BlockPolicy, ModelJudge, PendingBlock, ReplaceText, Verdict};
use advisor_chain::{
    ChatMemoryAdvisor, Chunk, ConversationKey, FinishReason, FnTool, InMemoryStore, ToolDefinition, client,
};
use advisor_testkit::{Answer, ScriptedModel};
use futures::StreamExt;
use serde_json::{Value, json};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A small model judges the calls that no rule decides.
    let judging =
        ScriptedModel::new([Answer::from_text(r#"{"probability": 0.1, "explanation": "It only reads."}"#)]);
    let look_up = ToolDefinition::new("look_up", "Looks up an order.", json!({"type": "object"}));
    let delete = ToolDefinition::new("delete_account", "Deletes an account.", json!({"type": "object"}));
    let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
    let client = client(answering_model())
        .advisor(memory.clone())
        // The policy that is added last is nearest to the model and acts first.
        .advisor(ReplaceText::new([("Mallory", "[name]")]))
        .advisor(ReplaceText::for_pattern(r"\b\d{3}-\d{4}\b", "[phone]")?)
        .advisor(BlockPolicy { name: "harm".into(), ..BlockPolicy::new(ModelJudge::new(judging)) })
        .advisor(BlockPolicy { name: "no-deletes".into(), ..BlockPolicy::new(no_deletes) })
        .tool(FnTool::new(look_up, |_: Value| async { Ok("on its way") }))
        .tool(FnTool::new(delete, |_: Value| async { Ok("this never runs") }))
        .build()?;
    println!("{}", client.explain());

    let mut turn = client.prompt().user("Where is Mallory's order?").conversation("c1").stream();
    while let Some(chunk) = turn.next().await {
        if let Chunk::Delta { delta: BlockDelta::Text(text), .. } = chunk? {
            println!("text: {text}");
        }
    }

    println!("\nRemembered:");
    for message in &memory.transcript(&ConversationKey::new("c1")?).await? {
        let calls: Vec<_> = message.tool_calls().map(|call| call.name.as_str()).collect();
        println!("{:?}: {} {calls:?}", message.role(), message.text());
    }
    Ok(())
}

/// The names and the number arrive in pieces. Two calls follow.
fn answering_model() -> ScriptedModel {
    ScriptedModel::new([
        Answer::new()
            .text("Mal")
            .text("lory can be reached at 555-0")
            .text("199. I look up the order and delete the account. ")
            .call("c1", "look_up", "{\"order\": 7}")
            .call("c2", "delete_account", "{\"user\": \"mallory\"}")
            .finish(FinishReason::ToolCalls),
        Answer::from_text("The order is on its way. I could not delete the account."),
    ])
}

/// Denies every deletion. It decides at once, so nothing waits for it.
async fn no_deletes(pending: PendingBlock) -> advisor_chain::Result<Verdict> {
    let deletes = pending.call().is_some_and(|call| call.name.starts_with("delete"));
    Ok(if deletes { Verdict::deny("Ask an administrator.") } else { Verdict::Allow })
}
