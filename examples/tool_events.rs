//! Shows the progress of running tools, as a chat page would.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use advisor_chain::messages::ToolEventKind;
use advisor_chain::tools::{ToolCallStreaming, ToolInvocation};
use advisor_chain::{ChatClient, Chunk, FnTool, Result, ToolCallAdvisor, ToolDefinition};
use advisor_testkit::{Answer, ScriptedModel};
use futures::StreamExt;
use serde_json::json;

#[tokio::main]
async fn main() -> Result<()> {
    let model = ScriptedModel::new([
        Answer::from_calls([("c1", "search", r#"{"query":"fjords"}"#)]),
        Answer::from_text("There are more than a thousand."),
    ]);
    let schema =
        json!({"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]});
    let search = FnTool::with_invocation(
        ToolDefinition::new("search", "Searches the web.", schema),
        |invocation: ToolInvocation| async move {
            invocation.progress.report("3 pages found").await;
            invocation.progress.report("3 pages read").await;
            Ok("Norway has 1,190 fjords.".into())
        },
    );
    let tool_loop = ToolCallAdvisor::builder().streaming(ToolCallStreaming::All).build()?;
    let client = ChatClient::builder(model).advisor(tool_loop).tool(search).build()?;
    let mut turn = client.prompt().user("How many fjords are there?").stream();
    while let Some(chunk) = turn.next().await {
        match chunk? {
            Chunk::Tool(event) => match event.kind {
                ToolEventKind::Started { arguments } => println!("calling {} {arguments}", event.name),
                ToolEventKind::Progress { part } => println!("  {}", part.as_text().unwrap_or_default()),
                ToolEventKind::Finished { result } => println!("  {}", result.text()),
                ToolEventKind::NotStarted { reason, .. } => println!("not called: {}", reason.as_str()),
                _ => {}
            },
            Chunk::RoundCompleted(response) => println!("round {} is over", response.round()),
            chunk => print!("{}", chunk.text().unwrap_or_default()),
        }
    }
    println!();
    Ok(())
}
