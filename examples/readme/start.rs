//! README's start.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::io::Write;

use advisor_chain::{ChatMemoryAdvisor, InMemoryStore, OpenAiModel, Result, tool};
use futures::TryStreamExt;

/// Tells the time.
#[tool]
fn time() -> &'static str {
    "12:00"
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let client = advisor_chain::client(OpenAiModel::from_env()?)
        .advisor(ChatMemoryAdvisor::new(InMemoryStore::new()))
        .tool(time_tool())
        .build()?;
    let mut text = client.prompt().user("How late is it?").conversation("c1").stream().text();
    while let Some(piece) = text.try_next().await? {
        print!("{piece}");
        std::io::stdout().flush().ok(); // a terminal shows a line when it ends
    }
    Ok(())
}
