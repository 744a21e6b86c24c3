//! Tests of tools that block their thread: they run off the async threads, are bounded, and survive a drop.

use std::sync::mpsc;

use advisor_tests::prelude::*;
use tokio::time::advance;

use crate::tool_loop::support::*;

/// A tool that journals `start c1` and `end c1` and blocks in between until the test sends something.
fn blocking(limit: usize, journal: &Journal) -> (FnTool, mpsc::Sender<()>) {
    let (go, wait) = mpsc::channel();
    let (wait, journal) = (Mutex::new(wait), journal.clone());
    let tool = FnTool::blocking(definition("work"), limit, move |invocation: ToolInvocation| {
        let id = &invocation.call.id;
        journal.record(format!("start {id}"));
        wait.lock().unwrap().recv().map_err(ToolError::from)?;
        journal.record(format!("end {id}"));
        Ok(format!("{:?}", std::thread::current().id()))
    });
    (tool, go)
}

fn model(calls: usize) -> ScriptedModel {
    let ids: Vec<_> = (1..=calls).map(|number| format!("c{number}")).collect();
    let calls: Vec<_> = ids.iter().map(|id| (id.as_str(), "work", "{}")).collect();
    ScriptedModel::new([Answer::from_calls(calls), Answer::from_text("Done.")])
}

/// At most `limit` of its runs block a thread at a time.
#[tokio::test]
async fn law_t3_blocking_tools_are_bounded() {
    let journal = Journal::new();
    let (work, go) = blocking(1, &journal);
    let client = client(&model(3), ToolCallAdvisor::new()).tool(work).build().unwrap();
    let turn = Reader::new(client.prompt().user("go").stream());
    let test = async {
        for ended in 1..=3 {
            journal.recorded(&format!("start c{ended}")).await;
            assert_eq!(journal.count("start*"), ended, "{journal}");
            go.send(()).unwrap();
            journal.recorded(&format!("end c{ended}")).await;
        }
    };
    let (run, ()) = tokio::join!(turn.finish(), test);
    assert_eq!(run.response().text(), "Done.");
}

/// A drop does not stop the thread: the run continues and keeps its place until its end. Its result is
/// discarded. A run that waits for a place never begins.
#[tokio::test]
async fn dropped_blocking_tool_continues_queued_one_never_begins() {
    let journal = Journal::new();
    let (work, go) = blocking(1, &journal);
    let tools: ToolSet = [Arc::new(work) as Arc<dyn Tool>].into_iter().collect();
    let first = client(&model(2), ToolCallAdvisor::new()).tools(&tools).build().unwrap();
    let mut turn = Reader::new(first.prompt().user("go").stream());
    turn.until(journal.recorded("start c1")).await;
    drop(turn);

    // A second turn needs the place that the first one's run still holds.
    let second = client(&model(1), ToolCallAdvisor::new()).tools(&tools).build().unwrap();
    let turn = Reader::new(second.prompt().user("go").stream());
    let test = async {
        tokio::task::yield_now().await;
        journal.assert_count("start*", 1);
        go.send(()).unwrap();
        journal.recorded("end c1").await;
        go.send(()).unwrap();
    };
    let (run, ()) = tokio::join!(turn.finish(), test);
    assert_eq!(run.response().text(), "Done.");
    assert_eq!(journal.labels(), ["start c1", "end c1", "start c1", "end c1"], "c2 never began");
}

/// A run that asks learns that its turn was dropped.
#[tokio::test]
async fn law_k2_blocking_tool_learns_of_a_drop() {
    let journal = Journal::new();
    let (go, wait) = mpsc::channel::<()>();
    let (wait, in_tool) = (Mutex::new(wait), journal.clone());
    let work = FnTool::blocking(definition("work"), 1, move |invocation: ToolInvocation| {
        in_tool.record(format!("cancelled: {}", invocation.is_cancelled()));
        wait.lock().unwrap().recv().map_err(ToolError::from)?;
        in_tool.record(format!("cancelled: {}", invocation.is_cancelled()));
        Ok("late")
    });
    let client = client(&model(1), ToolCallAdvisor::new()).tool(work).build().unwrap();
    let mut turn = Reader::new(client.prompt().user("go").stream());
    turn.until(journal.recorded("cancelled: *")).await;
    drop(turn);
    go.send(()).unwrap();
    journal.recorded("cancelled: true").await;
    assert_eq!(journal.labels(), ["cancelled: false", "cancelled: true"]);
}

/// The loop discards a result that arrives after the timeout, since the call has been answered.
#[tokio::test(start_paused = true)]
async fn late_result_is_discarded() {
    let (journal, gate) = (Journal::new(), Gate::new());
    let (go, wait) = mpsc::channel::<()>();
    let (wait, in_tool) = (Mutex::new(wait), journal.clone());
    let slow = ToolDefinition { timeout: Some(Duration::from_secs(5)), ..definition("work") };
    let work = FnTool::blocking(slow, 1, move |invocation: ToolInvocation| {
        in_tool.record("start");
        wait.lock().unwrap().recv().map_err(ToolError::from)?;
        in_tool.record(if invocation.is_cancelled() { "end" } else { "end in time" });
        Ok("late")
    });
    let calls = || Answer::from_calls([("c1", "work", "{}")]);
    let model = ScriptedModel::new([calls(), Answer::new().gate(&gate).text("Done.").done()]);
    let client = client(&model, ToolCallAdvisor::new()).tool(work).build().unwrap();
    let turn = Reader::new(client.prompt().user("go").stream());
    let test = async {
        journal.recorded("start").await;
        advance(Duration::from_secs(6)).await;
        gate.reached().await; // the model has read that there was no answer
        go.send(()).unwrap();
        journal.recorded("end").await;
        gate.release();
    };
    let (run, ()) = tokio::join!(turn.finish(), test);
    let lines = transcript_lines(&run.response().transcript);
    assert_eq!(
        lines[2..],
        ["error c1: stopped: no answer within 5 s; the outcome is unknown", "assistant: Done."]
    );
}
