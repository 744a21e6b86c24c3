//! Tools for a model without an interface for tools: a prompt describes them, and calls are read from the text.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use advisor_chain::messages::BlockDelta;
use advisor_chain::text_tool_calls::{TextFormat, TextToolCalls};
use advisor_chain::{
    ChatMemoryAdvisor, Chunk, FnTool, InMemoryStore, Result, ToolCallAdvisor, ToolDefinition, client,
};
use advisor_testkit::{Answer, ScriptedModel};
use futures::StreamExt;
use serde_json::{Value, json};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    // The model writes its call as XML, in pieces that end anywhere.
    let model = ScriptedModel::new([
        Answer::new()
            .text("I will look. <to")
            .text("ol name=\"weather\"><arguments><arg name=\"city\">Os")
            .text("lo</arg></arguments></tool>")
            .done(),
        Answer::from_text("It is sunny in Oslo."),
    ]);
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let weather = ToolDefinition::new("weather", "Tells the weather of a city.", schema);
    let client = client(model.clone())
        .advisor(ToolCallAdvisor::builder().stream_tool_call_responses(true).build()?)
        .advisor(ChatMemoryAdvisor::new(InMemoryStore::new()))
        // The last advisor, so that it sees the tools of all others.
        .advisor(TextToolCalls::new(TextFormat::Xml))
        .tool(FnTool::new(weather, |arguments: Value| async move {
            let city = arguments.get("city").and_then(Value::as_str).unwrap_or("no city");
            Ok(format!("sunny in {city}"))
        }))
        .build()?;

    let mut turn = client.prompt().user("How is the weather in Oslo?").conversation("c1").stream();
    while let Some(chunk) = turn.next().await {
        match chunk? {
            Chunk::Delta { delta: BlockDelta::Text(text), .. } => println!("text: {text}"),
            Chunk::Delta { delta: BlockDelta::Arguments(json), .. } => println!("arguments: {json}"),
            Chunk::Tool(event) => println!("tool {}: {:?}", event.name, event.kind),
            _ => {}
        }
    }

    println!("\nThe last request:");
    for message in model.prompts().iter().skip(1).flat_map(|prompt| &prompt.messages) {
        println!("--- {:?}\n{}", message.role(), message.text());
    }
    Ok(())
}
