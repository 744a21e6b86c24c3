//! The inspector, a client of another SDK, against a chain as a server.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::Stdio;

use advisor_chain::mcp::ChainServer;
use advisor_tests::prelude::*;
use tokio::net::TcpListener;
use tokio::time::timeout;

use super::{LIMIT, command, packages};

/// Runs the inspector, and returns its output and whether it succeeded.
async fn inspect(packages: &std::path::Path, target: &[&str], method: &[&str]) -> (bool, String) {
    let mut inspector = command("node");
    // It looks for its own version from the current folder.
    inspector.current_dir(packages.join("inspector-cli/build")).arg("index.js").args(target);
    inspector.arg("--method").args(method).stdin(Stdio::null());
    let output = timeout(LIMIT, inspector.output()).await.expect("the inspector ends").unwrap();
    (output.status.success(), String::from_utf8(output.stdout).unwrap())
}

async fn lists_and_calls(packages: &std::path::Path, target: &[&str], answer: &str) {
    let (succeeded, listed) = inspect(packages, target, &["tools/list"]).await;
    assert!(succeeded, "{listed}");
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed["tools"][0]["name"], "ask");
    assert_eq!(listed["tools"][0]["inputSchema"]["required"][0], "message");

    let call = ["tools/call", "--tool-name", "ask", "--tool-arg", "message=When?", "conversation=c1"];
    let (succeeded, called) = inspect(packages, target, &call).await;
    assert!(succeeded, "{called}");
    let called: Value = serde_json::from_str(&called).unwrap();
    assert_eq!((&called["content"][0]["text"], &called["isError"]), (&answer.into(), &false.into()));

    let (succeeded, _) = inspect(packages, target, &["tools/call", "--tool-name", "ask"]).await;
    assert!(!succeeded, "a call without a message is refused");
}

#[tokio::test(flavor = "multi_thread")]
async fn inspector_calls_a_chain_over_stdio() {
    let Some(packages) = packages() else { return };
    let tests = std::env::current_exe().unwrap();
    // `cargo test --workspace` builds the examples, too.
    let example: PathBuf = tests.parent().unwrap().with_file_name("examples").join("mcp_tools");
    if !example.exists() {
        assert!(std::env::var_os("ADVISOR_REQUIRE_MCP").is_none(), "the example `mcp_tools` is not built");
        let _ = writeln!(std::io::stderr(), "left out: the example `mcp_tools` is not built");
        return;
    }
    let target = [example.to_str().unwrap(), "serve"];
    lists_and_calls(&packages, &target, "Question 1: we open at nine.").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn inspector_calls_a_chain_over_http() {
    let Some(packages) = packages() else { return };
    let model = ScriptedModel::new([Answer::from_text("At nine.")]);
    let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
    let client = advisor_chain::client(model).advisor(memory).build().unwrap();
    let server = ChainServer::new(client, ToolDefinition::new("ask", "Answers.", Value::Null)).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let router = axum::Router::new().nest("/mcp", server.router());
    tokio::spawn(async move { axum::serve(listener, router).await });
    lists_and_calls(&packages, &[&url], "At nine.").await;
}
