//! Tests of the events that observers of tools receive.

use advisor_chain::tools::ToolCallStreaming;
use advisor_chain::{FinishReason, FnTool, ToolCallAdvisor};
use advisor_testkit::{Answer, ScriptedModel};

use crate::support::{Denying, Reader, client, definition, read, streaming, tool};

/// Observers learn how every call ended, including calls that never started.
#[tokio::test]
async fn every_call_outcome_has_a_finished_event() {
    let model = ScriptedModel::new([
        Answer::from_calls([
            ("c1", "nonesuch", "{}"),
            ("c2", "look", "{"),
            ("c3", "delete", "{}"),
            ("c4", "look", "{}"),
        ]),
        Answer::from_text("I see."),
    ]);
    let advisor = ToolCallAdvisor::builder().tool_events(true).hooks(Denying).build().unwrap();
    let client =
        client(&model, advisor).tool(tool("look", "sunny")).tool(tool("delete", "gone")).build().unwrap();
    let run = read(client.prompt().user("go").stream()).await;
    let mut events: Vec<_> = run.lines().into_iter().filter(|line| line.starts_with("tool ")).collect();
    events.iter_mut().for_each(|line| *line = line.split(':').next().unwrap().to_string());
    events.sort();
    assert_eq!(
        events,
        ["tool c1 failed", "tool c2 failed", "tool c3 failed", "tool c4 finished", "tool c4 started {}"]
    );
}

/// A call that cannot run is reported before any tool of its round starts, in call order. A hanging tool does
/// not delay this report.
#[tokio::test]
async fn unrunnable_calls_are_reported_before_any_tool_starts() {
    let model = ScriptedModel::new([Answer::from_calls([
        ("c1", "look", "{}"),
        ("c2", "nonesuch", "{}"),
        ("c3", "look", "{"),
    ])]);
    let hanging = FnTool::new(definition("look"), |_: serde_json::Value| async {
        std::future::pending::<()>().await;
        Ok("never")
    });
    let client = client(&model, streaming(ToolCallStreaming::All)).tool(hanging).build().unwrap();
    let lines = Reader::new(client.prompt().user("go").stream()).so_far().await;
    let events: Vec<_> = lines.iter().filter_map(|line| line.strip_prefix("tool ")).collect();
    let [unknown, malformed, started] = events[..] else { panic!("{events:?}") };
    assert!(unknown.starts_with("c2 failed: there is no tool"), "{unknown}");
    assert!(malformed.starts_with("c3 failed: not started"), "{malformed}");
    assert_eq!(started, "c1 started {}");
}

/// The same for calls that no tool of the turn will answer any more: a cut answer, a limit.
#[tokio::test]
async fn calls_that_end_turn_have_finished_event() {
    let model = ScriptedModel::new([Answer::new().call("c1", "look", "{}").finish(FinishReason::Length)]);
    let client =
        client(&model, streaming(ToolCallStreaming::All)).tool(tool("look", "sunny")).build().unwrap();
    let lines = read(client.prompt().user("go").stream()).await.lines();
    let at = |what: &str| {
        lines.iter().position(|line| line.starts_with(what)).unwrap_or_else(|| panic!("{lines:?}"))
    };
    assert!(at("round 1 completed") < at("tool c1 failed: not started"));
    assert!(at("tool c1 failed: not started") < at("2.0 + text"));
}
