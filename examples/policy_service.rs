//! Policies behind a server: clients of OpenAI and Anthropic read a denial and a replaced name as text.
//!
//! Without an argument it asks itself once, and ends. With an address, such as `127.0.0.1:8080`, it serves until ctrl-c.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::error::Error;
use std::time::Duration;

use advisor_chain::server::ChatServer;
use advisor_chain::stream_policy::{BlockPolicy, PendingBlock, ReplaceText, Verdict};
use advisor_chain::{
    ChatMemoryAdvisor, FinishReason, FnTool, InMemoryStore, Role, ToolCallAdvisor, ToolDefinition, client,
};
use advisor_testkit::{Answer, ScriptedModel};
use serde_json::{Value, json};
use tokio::net::TcpListener;

type Failed = Box<dyn Error>;

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let address = std::env::args().nth(1);
    let listener = TcpListener::bind(address.as_deref().unwrap_or("127.0.0.1:0")).await?;
    let url = format!("http://{}/v1", listener.local_addr()?);
    println!("{url} answers clients of OpenAI and Anthropic.");
    let server = server()?;
    let serving = axum::serve(listener, server.router());
    if address.is_some() {
        let signal = async move {
            let _ = tokio::signal::ctrl_c().await;
            // Running turns end first, since their connections are waited for.
            let _ = server.stop(Duration::from_secs(10)).await;
        };
        return Ok(serving.with_graceful_shutdown(signal).await?);
    }
    tokio::select! {
        ended = serving => Ok(ended?),
        answer = ask(&url) => {
            println!("It answers: {}", answer?);
            Ok(())
        }
    }
}

fn server() -> Result<ChatServer, Failed> {
    let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
    let look_up = ToolDefinition::new("look_up", "Looks up an order.", json!({"type": "object"}));
    let delete = ToolDefinition::new("delete_account", "Deletes an account.", json!({"type": "object"}));
    let client = client(answering_model())
        .advisor(ToolCallAdvisor::new())
        .advisor(memory.clone())
        .advisor(ReplaceText::new([("Mallory", "[name]")]))
        .advisor(BlockPolicy::new(no_deletes))
        .tool(FnTool::new(look_up, |_: Value| async { Ok("on its way") }))
        .tool(FnTool::new(delete, |_: Value| async { Ok("this never runs") }))
        .build()?;
    Ok(ChatServer::new(client, memory))
}

/// A model that looks up an order and deletes an account, and ends with the result.
fn answering_model() -> ScriptedModel {
    ScriptedModel::from_fn(|prompt| {
        let last = prompt.messages.iter().next_back().map(|message| message.role());
        if last == Some(Role::Tool) {
            return Answer::from_text("The order is on its way.");
        }
        // The name arrives in pieces.
        Answer::new()
            .text("I look up the order of Mal")
            .text("lory and delete the account. ")
            .call("c1", "look_up", "{}")
            .call("c2", "delete_account", "{}")
            .finish(FinishReason::ToolCalls)
    })
}

async fn no_deletes(pending: PendingBlock) -> advisor_chain::Result<Verdict> {
    let deletes = pending.call().is_some_and(|call| call.name.starts_with("delete"));
    Ok(if deletes { Verdict::deny("Ask an administrator.") } else { Verdict::Allow })
}

/// Asks as a client of OpenAI does, and returns the text of the answer.
async fn ask(url: &str) -> Result<String, Failed> {
    // The client library requires a choice of TLS, also for connections without TLS.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let question =
        json!({"model": "chain", "messages": [{"role": "user", "content": "Where is the order?"}]});
    let request = reqwest::Client::new().post(format!("{url}/chat/completions"));
    let request = request.header("content-type", "application/json").body(question.to_string());
    let answer = request.send().await?.error_for_status()?.text().await?;
    let answer: Value = serde_json::from_str(&answer)?;
    let text = answer.pointer("/choices/0/message/content").and_then(Value::as_str);
    Ok(text.unwrap_or_default().to_owned())
}
