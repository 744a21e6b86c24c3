//! README's start.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::io::Write;

use advisor_chain::{ChatMemoryAdvisor, FnTool, InMemoryStore, OpenAiModel, Result, ToolDefinition};
use futures::TryStreamExt;
use serde_json::{Value, json};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let time = ToolDefinition::new("time", "Tells the time.", json!({"type": "object"}));
    let client = advisor_chain::client(OpenAiModel::from_env()?)
        .advisor(ChatMemoryAdvisor::new(InMemoryStore::new()))
        .tool(FnTool::new(time, |_: Value| async { Ok("12:00") }))
        .build()?;
    let mut text = client.prompt().user("How late is it?").conversation("c1").stream().text();
    while let Some(piece) = text.try_next().await? {
        print!("{piece}");
        std::io::stdout().flush().ok(); // a terminal shows a line when it ends
    }
    Ok(())
}
