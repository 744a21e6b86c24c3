//! MCP in both directions: a chain calls the tool of a server, and that tool is another chain.
//!
//! Without an argument the program starts itself as the server. `mcp_tools serve` is the server over standard input and
//! output, for any client of MCP; `mcp_tools http` serves it at an address that it prints.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::error::Error;

use advisor_chain::mcp::{ChainServer, McpServer};
use advisor_chain::messages::{Part, ToolEventKind};
use advisor_chain::tools::ToolCallStreaming;
use advisor_chain::{
    ChatClient, ChatMemoryAdvisor, Chunk, InMemoryStore, Result, ToolCallAdvisor, ToolDefinition, client,
};
use advisor_testkit::{Answer, ScriptedModel};
use futures::StreamExt;
use serde_json::Value;
use tokio::process::Command;

/// The chain behind the server: an assistant of a shop.
fn shop() -> Result<ChainServer> {
    // A scripted model replaces a real one.
    let model = ScriptedModel::from_fn(|prompt| {
        let asked = prompt.messages.iter().filter(|message| message.text().ends_with('?')).count();
        Answer::new().text(format!("Question {asked}: ")).text("we open ").text("at nine.").done()
    });
    let client = client(model).advisor(ChatMemoryAdvisor::new(InMemoryStore::new())).build()?;
    let tool = ToolDefinition::new("ask", "Answers questions about the shop.", Value::Null);
    ChainServer::new(client, tool)
}

/// A chain that asks the shop's assistant twice, in one conversation.
fn visitor() -> ScriptedModel {
    let ask = |id| (id, "shop_ask", r#"{"message": "When do you open?", "conversation": "visitor"}"#);
    ScriptedModel::new([
        Answer::from_calls([ask("c1")]),
        Answer::from_calls([ask("c2")]),
        Answer::from_text("They open at nine, I asked twice."),
    ])
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    match std::env::args().nth(1).as_deref() {
        None => ask_the_shop().await,
        Some("serve") => Ok(shop()?.serve_stdio().await?),
        Some("http") => {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
            println!("http://{}/mcp", listener.local_addr()?);
            Ok(axum::serve(listener, axum::Router::new().nest("/mcp", shop()?.router())).await?)
        }
        Some(_) => Err("usage: mcp_tools [serve|http]".into()),
    }
}

async fn ask_the_shop() -> Result<(), Box<dyn Error>> {
    let program = std::env::current_exe()?;
    let server = McpServer::from_command(move || {
        let mut command = Command::new(&program);
        command.arg("serve");
        command
    });
    let shop = server.with_name("shop").with_prefix("shop_").connect().await?;
    println!("Tools: {:?}", shop.tools().await?);

    let tools = ToolCallAdvisor::builder().streaming(ToolCallStreaming::All).build()?;
    let client = ChatClient::builder(visitor()).advisor(tools).advisor(shop.clone()).build()?;
    let mut turn = client.prompt().user("When does the shop open?").stream();
    while let Some(chunk) = turn.next().await {
        match chunk? {
            Chunk::Tool(event) => match event.kind {
                ToolEventKind::Progress { part: Part::Text(text) } => println!("  … {text}"),
                ToolEventKind::Finished { result } => println!("  {}: {:?}", result.name, result.parts),
                _ => {}
            },
            Chunk::Completed(response) => println!("{}", response.text()),
            _ => {}
        }
    }
    shop.close().await;
    Ok(())
}
