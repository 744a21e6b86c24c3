//! A server whose users approve calls. A client of the AI SDK asks, is asked for an approval, and reads the result.
//!
//! The model is scripted, the policy is data, and conversations are in SQLite. The program asks itself, and ends.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::error::Error;

use advisor_chain::server::ChatServer;
use advisor_chain::sqlite::SqliteStore;
use advisor_chain::sse::Frame;
use advisor_chain::tools::ToolPolicy;
use advisor_chain::{ChatMemoryAdvisor, FnTool, ToolCallAdvisor, ToolDefinition, client};
use advisor_testkit::{Answer, ScriptedModel};
use serde_json::{Value, json};
use tokio::net::TcpListener;

type Failed = Box<dyn Error>;

/// Tools that read run at once, and so do small payments. Larger ones wait for the user. All else is refused.
const POLICY: &str = r#"{
    "rules": [
        {"tools": ["read_*"], "then": "allow"},
        {"tools": ["pay"], "when": [{"at_most": {"pointer": "/cents", "number": 1000}}], "then": "allow"},
        {"tools": ["pay"], "then": "ask"}
    ],
    "otherwise": {"deny": "this tool is switched off"}
}"#;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failed> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/api/ui", listener.local_addr()?);
    let router = server()?.router();
    tokio::select! {
        ended = axum::serve(listener, router) => Ok(ended?),
        talked = talk(&url) => talked,
    }
}

fn server() -> Result<ChatServer, Failed> {
    let tool = |name: &str, text: &str| {
        let schema = json!({"type": "object", "properties": {"cents": {"type": "integer"}}});
        ToolDefinition::new(name, text, schema)
    };
    let policy: ToolPolicy = serde_json::from_str(POLICY)?;
    // Without further settings, the tools that run at once are not shown to the client: only calls that wait are.
    let tool_loop = ToolCallAdvisor::builder().policy(policy).build()?;
    let memory = ChatMemoryAdvisor::new(SqliteStore::in_memory()?);
    let client = client(scripted_model())
        .advisor(tool_loop)
        .advisor(memory.clone())
        .tool(FnTool::new(tool("read_bill", "Reads the bill."), |_: Value| async { Ok("42.00 euros") }))
        .tool(FnTool::new(tool("pay", "Pays a sum."), |it: Value| async move {
            Ok(format!("paid {} cents", it.get("cents").and_then(Value::as_u64).unwrap_or_default()))
        }))
        .build()?;
    Ok(ChatServer::new(client, memory).with_approvals())
}

/// A model that reads the bill, pays it, and says so.
fn scripted_model() -> ScriptedModel {
    ScriptedModel::new([
        Answer::from_calls([("c1", "read_bill", "{}")]),
        Answer::from_calls([("c2", "pay", r#"{"cents":4200}"#)]),
        Answer::from_text("The bill is paid."),
    ])
}

/// Asks as `useChat` does, approves the call, and reads its result.
async fn talk(url: &str) -> Result<(), Failed> {
    let question = json!({"id": "u1", "role": "user", "parts": [{"type": "text", "text": "Pay the bill."}]});
    let events = send(url, &question).await?;
    let asked = find(&events, "tool-approval-request")?;
    let call = find(&events, "tool-input-available")?;
    assert_eq!((&call["toolName"], &call["input"]), (&json!("pay"), &json!({"cents": 4200})));
    let shown = |events: &[Value], text: &str| events.iter().any(|event| event.to_string().contains(text));
    assert!(!shown(&events, "read_bill"), "a tool that runs at once is not shown");

    // What `addToolApprovalResponse` makes of the message, which is then sent again.
    let part = json!({
        "type": "dynamic-tool", "toolName": "pay", "toolCallId": call["toolCallId"], "input": call["input"],
        "state": "approval-responded", "approval": {"id": asked["approvalId"], "approved": true},
    });
    let message = json!({"id": find(&events, "start")?["messageId"], "role": "assistant", "parts": [part]});
    let events = send(url, &message).await?;
    assert_eq!(find(&events, "tool-output-available")?["output"], "paid 4200 cents");
    assert!(shown(&events, "The bill is paid."));
    // Sent again, it is the same turn: nothing is paid twice.
    assert_eq!(send(url, &message).await?, events);
    Ok(())
}

/// Sends the last message of the chat `c1`, prints the events of the answer, and returns them.
async fn send(url: &str, message: &Value) -> Result<Vec<Value>, Failed> {
    // The client library requires a choice of TLS, also for connections without TLS.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let body = json!({"id": "c1", "messages": [message], "trigger": "submit-message"}).to_string();
    let request = reqwest::Client::new().post(url).header("content-type", "application/json");
    let answer = request.body(body).send().await?.error_for_status()?;
    let events: Vec<_> = Frame::read_all(&answer.text().await?).iter().filter_map(Frame::json).collect();
    println!(
        "the client sends a message of the {}, and reads:",
        message["role"].as_str().unwrap_or_default()
    );
    events.iter().for_each(|event| println!("  {event}"));
    Ok(events)
}

/// Returns the first event of a type.
fn find<'a>(events: &'a [Value], kind: &str) -> Result<&'a Value, Failed> {
    let found = events.iter().find(|event| event["type"] == kind);
    found.ok_or_else(|| format!("there is no event `{kind}`").into())
}
