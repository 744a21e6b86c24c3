//! Memory inside and outside the tool loop: the same transcript, stored at the same points.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use advisor_chain::{
    ChatMemoryAdvisor, ConversationKey, FnTool, InMemoryStore, Phase, Result, ToolDefinition, client,
};
use advisor_testkit::{Answer, ScriptedModel};
use serde_json::{Value, json};

async fn run(memory_in: Phase) -> Result<Vec<String>> {
    let model = ScriptedModel::new([
        Answer::from_calls([
            ("c1", "weather", r#"{"city":"Oslo"}"#),
            ("c2", "weather", r#"{"city":"Rome"}"#),
        ]),
        Answer::from_text("Rome is warmer."),
    ]);
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let weather = FnTool::new(
        ToolDefinition::new("weather", "Tells the temperature in a city.", schema),
        |arguments: Value| async move {
            Ok(if arguments.get("city") == Some(&json!("Rome")) { "21 °C" } else { "4 °C" })
        },
    );
    let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
    let client = client(model).advisor_in(memory_in, memory.clone()).tool(weather).build()?;
    println!("{}", client.explain());
    client.prompt().user("Where is it warmer?").conversation("trip").call().await?;
    let transcript = memory.transcript(&ConversationKey::new("trip")?).await?;
    Ok(transcript.iter().map(|message| format!("{:?}: {}", message.role(), message.text())).collect())
}

#[tokio::main]
async fn main() -> Result<()> {
    let inside = run(Phase::Round).await?;
    let outside = run(Phase::Turn).await?;
    println!("{}", inside.join("\n"));
    println!("equal: {}", inside == outside);
    Ok(())
}
