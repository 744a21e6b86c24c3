//! Tests of the logs of a turn. The test has its own program, since tracing is configured per process.

use advisor_chain::stream_policy::OnFailure;
use advisor_tests::log::Log;
use advisor_tests::prelude::*;
use tracing_subscriber::fmt::format::FmtSpan;

/// A word in every text of a user, a model or a tool.
const CONTENT: &str = "canary";
/// A line in the form of the log, and control sequences of a terminal.
const FORGED: &str = "\n2026-01-01T00:00:00Z ERROR forged: all is lost\r\u{1b}[2J\u{9b}31m";

fn said(by: &str) -> String {
    format!("{CONTENT} of {by}{FORGED}")
}

fn tool(name: &str, says: Result<String, String>) -> FnTool {
    let definition = ToolDefinition::new(name, said("a description"), json!({"type": "object"}));
    FnTool::new(definition, move |_: Value| {
        let says = says.clone();
        async move { says.map_err(ToolError::new) }
    })
}

/// Runs a turn with all external content, and one that fails.
async fn turns() {
    let arguments = json!({"query": said("the model")}).to_string();
    let id = format!("call{FORGED}");
    let calls = [
        (id.as_str(), "look", arguments.as_str()),
        ("c2", "fails", "{}"),
        ("c3", "panics", "{}"),
        ("c4", &format!("unknown{FORGED}"), "{}"),
        ("c5", "look", &said("no arguments")),
    ];
    let model = ScriptedModel::new([
        Answer::new().text(said("the model")).reasoning(said("its reasoning")).done(),
        Answer::from_calls(calls),
        Answer::from_text(said("the answer")),
        Answer::new().text(said("a broken answer")).error(Error::new(ErrorKind::Connection, "reset")),
    ]);
    let panicking = ToolDefinition::new("panics", "Panics.", json!({"type": "object"}));
    let client = ChatClient::builder(model.clone())
        .system(said("the system"))
        .advisor(ToolCallAdvisor::new())
        .advisor(ChatMemoryAdvisor::new(InMemoryStore::new()))
        .tool(tool("look", Ok(said("a tool"))))
        .tool(tool("fails", Err(said("a failing tool"))))
        .tool(FnTool::new(panicking, |_: Value| async { panic!("{}", said("a panic")) as Result<&str, _> }))
        .build()
        .unwrap();
    for _ in 0..3 {
        let _ = client.prompt().user(said("the user")).conversation("c").call().await;
    }
    assert_eq!(model.calls(), 4);
}

/// Runs an answer through a policy that fails open, and whose judge fails in one way for each call.
async fn unjudged() {
    let judge = |pending: PendingBlock| async move {
        match pending.call().unwrap().id.as_str() {
            "c1" => Err(Error::new(ErrorKind::Connection, said("the judge"))),
            "c2" => panic!("{}", said("a panic of the judge")),
            _ => std::future::pending().await,
        }
    };
    let name = "no-deletes".into();
    let policy = BlockPolicy { name, on_failure: OnFailure::Allow, ..BlockPolicy::new(judge) };
    let arguments = json!({"query": said("the model")}).to_string();
    let calls = ["c1", "c2", "c3"].map(|id| (id, "delete", arguments.as_str()));
    let client = ChatClient::builder(ScriptedModel::new([Answer::from_calls(calls)])).advisor(policy);
    let response = client.build().unwrap().prompt().user(said("the user")).call().await.unwrap();
    assert_eq!(response.tool_calls().count(), 3);
}

#[tokio::test(start_paused = true)]
async fn logs_hold_no_content_and_no_forged_lines() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_span_events(FmtSpan::NEW | FmtSpan::CLOSE)
        .with_ansi(false)
        .with_writer(log.clone())
        .finish();
    let installed = tracing::subscriber::set_default(subscriber);
    turns().await;
    unjudged().await;
    drop(installed);
    let written = log.take();
    assert!(written.contains("tool_run") && written.contains("look"), "{written}");
    // One warning for each block that passed unjudged.
    let warnings: Vec<_> = written.lines().filter(|line| line.contains("a judge gave no verdict")).collect();
    for (warning, error) in warnings.iter().zip(["connection", "advisor", "timeout"]) {
        let is_whole = ["WARN", "policy=\"no-deletes\"", &format!("error=\"{error}\"")];
        assert!(is_whole.iter().all(|part| warning.contains(part)), "{warning}");
    }
    assert_eq!(warnings.len(), 3, "{written}");
    assert!(!written.contains(CONTENT), "{written}");
    for line in written.lines() {
        assert!(line.starts_with("20") && !line.starts_with("2026-01-01"), "{line:?}");
        assert!(!line.chars().any(char::is_control), "{line:?}");
    }
}
