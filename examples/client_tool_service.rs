//! A tool that runs at the client, behind a server: the client sends the result of a call, and the answer goes on.
//!
//! Without an argument it asks itself once, and ends. With an address, such as `127.0.0.1:8080`, it serves until ctrl-c.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::error::Error;
use std::time::Duration;

use advisor_chain::server::ChatServer;
use advisor_chain::tools::{ClientSideTool, ToolCallStreaming};
use advisor_chain::{ChatMemoryAdvisor, InMemoryStore, Role, ToolCallAdvisor, ToolDefinition, client};
use advisor_testkit::{Answer, ScriptedModel};
use serde_json::{Value, json};
use tokio::net::TcpListener;

type Failed = Box<dyn Error>;

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let address = std::env::args().nth(1);
    let listener = TcpListener::bind(address.as_deref().unwrap_or("127.0.0.1:0")).await?;
    let url = format!("http://{}/v1", listener.local_addr()?);
    println!("{url} answers clients that run the tool `place`.");
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
    let place = ToolDefinition::new("place", "Returns the place of the user.", json!({"type": "object"}));
    let client = client(answering_model())
        .advisor(ToolCallAdvisor::builder().streaming(ToolCallStreaming::All).build()?)
        .advisor(memory.clone())
        .tool(ClientSideTool::new(place))
        .build()?;
    Ok(ChatServer::new(client, memory))
}

/// A model that asks for the place, and ends with the result.
fn answering_model() -> ScriptedModel {
    ScriptedModel::from_fn(|prompt| match prompt.messages.iter().next_back() {
        Some(last) if last.role() == Role::Tool => Answer::from_text(format!(
            "You are in {}.",
            last.tool_result().map_or_else(String::new, |it| it.text())
        )),
        _ => Answer::new().text("Let me see. ").call("c1", "place", "{}").done(),
    })
}

/// Asks as a client of OpenAI does, runs the call, and returns the text of the answer.
async fn ask(url: &str) -> Result<String, Failed> {
    // The client library requires a choice of TLS, also for connections without TLS.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut messages = vec![json!({"role": "user", "content": "Where am I?"})];
    let first = complete(url, &messages).await?;
    let call = first.pointer("/tool_calls/0/id").cloned().unwrap_or_default();
    messages.extend([first, json!({"role": "tool", "tool_call_id": call, "content": "Oslo"})]);
    let second = complete(url, &messages).await?;
    Ok(second.get("content").and_then(Value::as_str).unwrap_or_default().to_owned())
}

/// Sends the messages of the conversation `c1`, and returns the message of the answer.
async fn complete(url: &str, messages: &[Value]) -> Result<Value, Failed> {
    let body = json!({"model": "chain", "messages": messages}).to_string();
    let request = reqwest::Client::new().post(format!("{url}/chat/completions"));
    let request = request.header("content-type", "application/json").header("x-conversation-id", "c1");
    let answer = request.body(body).send().await?;
    let answer: Value = serde_json::from_str(&answer.error_for_status()?.text().await?)?;
    Ok(answer.pointer("/choices/0/message").cloned().unwrap_or_default())
}
