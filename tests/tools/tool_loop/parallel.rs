//! Several calls of one answer: at the same time, bounded, some alone, their results in call order.

use advisor_chain::tools::ParallelTools;
use advisor_tests::prelude::*;

use crate::tool_loop::support::*;

/// A tool that waits at the gate of its call's place in the answer, then answers with the call's id. It
/// journals `start c1` and `end c1`.
fn gated(definition: ToolDefinition, gates: &[Gate], journal: &Journal) -> FnTool {
    let (gates, journal) = (gates.to_vec(), journal.clone());
    FnTool::with_invocation(definition, move |invocation: ToolInvocation| {
        let gate = gates[invocation.key.position as usize].clone();
        let journal = journal.clone();
        async move {
            journal.record(format!("start {}", invocation.call.id));
            gate.pass().await;
            journal.record(format!("end {}", invocation.call.id));
            Ok(ToolOutput::from(invocation.call.id.as_str()))
        }
    })
}

fn calls(names: &[&'static str]) -> ScriptedModel {
    let ids: Vec<_> = (1..=names.len()).map(|number| format!("c{number}")).collect();
    let calls = ids.iter().zip(names).map(|(id, name)| (id.as_str(), *name, "{}"));
    ScriptedModel::new([Answer::from_calls(calls), Answer::from_text("Done.")])
}

fn gates(count: usize) -> Vec<Gate> {
    (0..count).map(|_| Gate::new()).collect()
}

/// One and four calls; results are in call order though the tools finish in the other.
#[tokio::test(start_paused = true)]
async fn results_keep_call_order() {
    for count in [1, 4] {
        let (gates, journal) = (gates(count), Journal::new());
        let model = calls(&vec!["work"; count]);
        let client = client(&model, ToolCallAdvisor::new());
        let client = client.tool(gated(definition("work"), &gates, &journal)).build().unwrap();
        let turn = Reader::new(client.prompt().user("go").stream());
        let test = async {
            for gate in &gates {
                gate.reached().await; // all of them run at the same time
            }
            for (place, gate) in gates.iter().enumerate().rev() {
                gate.release();
                journal.recorded(&format!("end c{}", place + 1)).await;
            }
        };
        let (run, ()) = in_time(async { tokio::join!(turn.finish(), test) }).await;
        let expected: Vec<_> = (1..=count).map(|number| format!("result c{number}: c{number}")).collect();
        let lines = transcript_lines(&run.response().transcript);
        assert_eq!(lines[1 + count..1 + 2 * count], expected);
        assert_valid(&run.response().transcript);
        let ends: Vec<_> = journal.labels().into_iter().filter(|label| label.starts_with("end")).collect();
        let reversed: Vec<_> = (1..=count).rev().map(|number| format!("end c{number}")).collect();
        assert_eq!(ends, reversed, "they did finish in the other order");
    }
}

/// Calls start in call order, and never more of them than the bound.
#[tokio::test]
async fn law_t3_concurrency_is_bounded() {
    for bound in [1, 2, 5] {
        let (gates, journal) = (gates(5), Journal::new());
        let advisor = ToolCallAdvisor::builder()
            .execution(ParallelTools { concurrency: bound, ..ParallelTools::default() })
            .build();
        let client = client(&calls(&["work"; 5]), advisor.unwrap());
        let client = client.tool(gated(definition("work"), &gates, &journal)).build().unwrap();
        let mut turn = Reader::new(client.prompt().user("go").stream());
        for (ended, gate) in gates.iter().enumerate() {
            turn.so_far().await;
            let running = (5 - ended).min(bound);
            assert_eq!(journal.count("start*") - journal.count("end*"), running, "bound {bound}\n{journal}");
            gate.release();
        }
        turn.finish().await;
        let starts: Vec<_> =
            journal.labels().into_iter().filter(|label| label.starts_with("start")).collect();
        assert_eq!(starts, ["start c1", "start c2", "start c3", "start c4", "start c5"]);
    }
}

/// The default bound is 8.
#[tokio::test]
async fn eight_tools_run_at_a_time_by_default() {
    let (gates, journal) = (gates(10), Journal::new());
    let client = client(&calls(&["work"; 10]), ToolCallAdvisor::new());
    let client = client.tool(gated(definition("work"), &gates, &journal)).build().unwrap();
    let mut turn = Reader::new(client.prompt().user("go").stream());
    turn.so_far().await;
    assert_eq!(journal.count("start*"), 8);
    gates.iter().for_each(Gate::release);
    turn.finish().await;
}

/// An exclusive tool runs alone; those before it end first, those after it wait.
#[tokio::test]
async fn an_exclusive_tool_runs_alone() {
    let (gates, journal) = (gates(6), Journal::new());
    let client = client(&calls(&["work", "work", "alone", "alone", "work", "work"]), ToolCallAdvisor::new())
        .tool(gated(definition("work"), &gates, &journal))
        .tool(gated(ToolDefinition { exclusive: true, ..definition("alone") }, &gates, &journal))
        .build()
        .unwrap();
    let mut turn = Reader::new(client.prompt().user("go").stream());
    let running = async |turn: &mut Reader<_>| {
        turn.so_far().await;
        let is_running = |number: &usize| {
            journal.count(&format!("start c{number}")) > journal.count(&format!("end c{number}"))
        };
        (1..=6).filter(is_running).collect::<Vec<_>>()
    };
    for (released, then_running) in [
        (None, vec![1, 2]),
        (Some(1), vec![2]),
        (Some(2), vec![3]),
        (Some(3), vec![4]),
        (Some(4), vec![5, 6]),
    ] {
        if let Some(number) = released {
            gates[number - 1].release();
        }
        assert_eq!(running(&mut turn).await, then_running, "{released:?}");
    }
    gates.iter().for_each(Gate::release);
    assert_eq!(turn.finish().await.response().text(), "Done.");
}

/// Events are live: the reader sees them while the tool still runs.
#[tokio::test]
async fn tool_events_come_out_while_tools_run() {
    let gate = Gate::new();
    let in_tool = gate.clone();
    let reporting = FnTool::with_invocation(definition("work"), move |invocation: ToolInvocation| {
        let gate = in_tool.clone();
        async move {
            invocation.progress.report("half").await;
            gate.pass().await;
            Ok(ToolOutput::from("ok"))
        }
    });
    let advisor = ToolCallAdvisor::builder().tool_events(true).build().unwrap();
    let client = client(&calls(&["work"]), advisor).tool(reporting).build().unwrap();
    let mut turn = Reader::new(client.prompt().user("go").stream());
    assert_eq!(turn.so_far().await, ["round 1 completed", "tool c1 started {}", "tool c1 progress half"]);
    gate.release();
    turn.finish().await;
}

/// A reader that does not read holds everything up; nothing piles up behind it.
#[tokio::test]
async fn law_r1_a_slow_reader_bounds_what_waits_for_it() {
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&sent);
    let reporting = FnTool::with_invocation(definition("work"), move |invocation: ToolInvocation| {
        let counted = Arc::clone(&counted);
        async move {
            for _ in 0..1000 {
                counted.fetch_add(1, Ordering::Relaxed);
                invocation.progress.report("more").await;
            }
            Ok(ToolOutput::from("ok"))
        }
    });
    let said = Arc::new(AtomicUsize::new(0));
    let mut answer = Answer::new();
    for _ in 0..1000 {
        let said = Arc::clone(&said);
        answer = answer
            .wait(async move {
                said.fetch_add(1, Ordering::Relaxed);
            })
            .text("x");
    }
    let model =
        ScriptedModel::new([Answer::from_calls([("c1", "work", "{}")]), answer.finish(FinishReason::Stop)]);
    let client = client(&model, streaming(ToolCallStreaming::All)).tool(reporting).build().unwrap();
    let mut turn = client.prompt().user("go").stream();
    let mut read = [0, 0];
    while let Some(chunk) = StreamExt::next(&mut turn).await {
        match chunk.unwrap() {
            Chunk::Tool(_) => read[0] += 1,
            chunk if chunk.text().is_some() => read[1] += 1,
            _ => {}
        }
        tokio::task::yield_now().await;
        let (sent, said) = (sent.load(Ordering::Relaxed), said.load(Ordering::Relaxed));
        assert!(sent <= read[0] + 32, "{sent} reports while {} were read", read[0]);
        assert!(said <= read[1] + 1, "{said} pieces while {} were read", read[1]);
    }
    assert_eq!(read, [1002, 1000]);
}
