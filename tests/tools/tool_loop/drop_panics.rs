//! Tests of tools that panic when they are dropped, or whose panic payload panics when it is dropped.

use advisor_chain::tools::{LoopEnd, ParallelTools};
use advisor_tests::prelude::*;

use crate::tool_loop::support::*;

/// Counts its drops and panics in each.
struct PanicsInDrop(Arc<AtomicUsize>);

impl Drop for PanicsInDrop {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
        panic!("the tool does not like to be dropped");
    }
}

/// A panic that panics when it is dropped, with a panic that does so, too.
struct Payload(u32);

impl Drop for Payload {
    fn drop(&mut self) {
        if let Some(left) = self.0.checked_sub(1) {
            std::panic::panic_any(Self(left));
        }
    }
}

/// A tool that hangs, and panics when it is dropped.
fn hanging(name: &str, drops: &Arc<AtomicUsize>) -> FnTool {
    let drops = Arc::clone(drops);
    FnTool::new(definition(name), move |_: Value| {
        let held = PanicsInDrop(Arc::clone(&drops));
        async move {
            std::future::pending::<()>().await;
            drop(held);
            Ok("never")
        }
    })
}

fn three_calls() -> ScriptedModel {
    ScriptedModel::new([
        Answer::from_calls([("c1", "hangs", "{}"), ("c2", "look", "{}"), ("c3", "hangs", "{}")]),
        Answer::from_text("I see."),
    ])
}

/// After their timeout, the tools are dropped and answered; the others and the turn continue.
#[tokio::test(start_paused = true)]
async fn tool_drop_panics_at_timeout_are_error_results() {
    let drops = Arc::default();
    let tools = ParallelTools { timeout: Some(Duration::from_secs(5)), ..ParallelTools::default() };
    let advisor = ToolCallAdvisor::builder().execution(tools).build().unwrap();
    let client = client(&three_calls(), advisor)
        .tool(hanging("hangs", &drops))
        .tool(tool("look", "sunny"))
        .build()
        .unwrap();
    let turn = client.prompt().user("go").stream();
    let handle = turn.handle();
    let run = read(turn).await;
    let stopped = |call: &str| format!("error {call}: stopped: no answer within 5 s; the outcome is unknown");
    assert_eq!(
        transcript_lines(&run.response().transcript)[4..],
        [stopped("c1"), "result c2: sunny".into(), stopped("c3"), "assistant: I see.".into()]
    );
    assert_eq!(drops.load(Ordering::Relaxed), 2);
    assert!(handle.settled().now_or_never().is_some());
}

/// A turn that is stopped drops them; it ends, says so, and settles.
#[tokio::test]
async fn turn_with_tool_drop_panics_ends_and_settles() {
    for cancelled in [true, false] {
        let (drops, stages, ledger) = (Arc::default(), Stages::default(), Ledger::default());
        let advisor = ToolCallAdvisor::builder().hooks(Watch(stages.clone())).build().unwrap();
        let client = client(&three_calls(), advisor)
            .advisor(ledger.clone())
            .tool(hanging("hangs", &drops))
            .tool(tool("look", "sunny"))
            .build()
            .unwrap();
        let turn = client.prompt().user("go").stream();
        let handle = turn.handle();
        let mut turn = Reader::new(turn);
        turn.so_far().await;
        if cancelled {
            handle.cancel(OnDrop::KeepPartial);
            assert_eq!(turn.finish().await.error().kind(), ErrorKind::Cancelled);
            assert_eq!(ledger.steps(), ["answer", "end"]);
        } else {
            drop(turn);
        }
        assert!(handle.settled().now_or_never().is_some(), "cancelled: {cancelled}");
        assert_eq!(drops.load(Ordering::Relaxed), 2);
        assert_eq!(stages.ends(), [LoopEnd::Dropped]);
    }
}

/// The model reads any panic as an error, and the tool's limiter is free for the next call.
#[tokio::test]
async fn panic_payload_drop_panic_is_an_error_result() {
    for depth in 0..3 {
        let panicking = FnTool::new(definition("panics"), move |_: Value| async move {
            std::panic::panic_any(Payload(depth));
            #[allow(unreachable_code, reason = "it gives the closure its type")]
            Ok("never")
        });
        let blocking = FnTool::blocking(definition("blocks"), 1, move |_: ToolInvocation| {
            std::panic::panic_any(Payload(depth));
            #[allow(unreachable_code, reason = "it gives the closure its type")]
            Ok("never")
        });
        let model = ScriptedModel::new([
            Answer::from_calls([("c1", "panics", "{}"), ("c2", "blocks", "{}"), ("c3", "blocks", "{}")]),
            Answer::from_text("I see."),
        ]);
        let client = client(&model, ToolCallAdvisor::new()).tool(panicking).tool(blocking).build().unwrap();
        let turn = client.prompt().user("go").stream();
        let handle = turn.handle();
        let run = read(turn).await;
        let panicked = |call: &str| format!("error {call}: the tool panicked: without a text");
        assert_eq!(
            transcript_lines(&run.response().transcript)[4..],
            [panicked("c1"), panicked("c2"), panicked("c3"), "assistant: I see.".into()]
        );
        assert!(handle.settled().now_or_never().is_some());
    }
}
