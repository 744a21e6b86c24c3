//! Tests of the three ways to run a call: by the loop's own tools, by a replaced execution, or by the caller.

use advisor_chain::tools::{LoopEnd, ToolBatch, ToolExecution};
use advisor_tests::prelude::*;

use crate::tool_loop::support::*;

fn two_calls() -> ScriptedModel {
    ScriptedModel::new([
        Answer::from_calls([("c1", "look", "{\"a\":1}"), ("c2", "look", "{}")]),
        Answer::from_text("Done."),
    ])
}

type Results = fn(&ToolBatch) -> Result<Vec<ToolResult>>;

/// Answers the batch by a function and keeps its input.
#[derive(Clone)]
struct Elsewhere {
    results: Results,
    batches: Arc<Mutex<Vec<String>>>,
}

impl Elsewhere {
    fn new(results: Results) -> Self {
        Self { results, batches: Arc::default() }
    }
}

#[async_trait]
impl ToolExecution for Elsewhere {
    async fn execute(&self, batch: ToolBatch) -> Result<Vec<ToolResult>> {
        for call in &batch.calls {
            let given = format!("{} {}", call.tool.definition().name, call.arguments);
            self.batches.lock().unwrap().push(given);
            batch.events.started(call).await;
            batch.events.progress(call, "elsewhere".into()).await;
        }
        (self.results)(&batch)
    }
}

fn answered(batch: &ToolBatch) -> Result<Vec<ToolResult>> {
    Ok(batch.calls.iter().map(|call| ToolResult::new(&call.call, vec!["ran elsewhere".into()])).collect())
}

/// The configured execution is used. Law T2 holds for it, too: it receives only the calls that may run,
/// with their tools and arguments.
#[tokio::test]
async fn law_t2_the_execution_can_be_replaced() {
    let elsewhere = Elsewhere::new(answered);
    let (look, given) = invoked("look");
    let advisor = ToolCallAdvisor::builder()
        .execution(elsewhere.clone())
        .streaming(ToolCallStreaming::All)
        .build()
        .unwrap();
    let model = ScriptedModel::new([
        Answer::from_calls([
            ("c1", "look", "{\"a\":1}"),
            ("c2", "nonesuch", "{}"),
            ("c3", "look", "{\"a\""),
            ("c4", "look", "[]"),
            ("c5", "look", ""),
        ]),
        Answer::from_calls([("c6", "nonesuch", "{}")]),
        Answer::from_text("Done."),
    ]);
    let run = go(client(&model, advisor).tool(look)).await;
    assert_eq!(run.response().text(), "Done.");
    assert!(given.lock().unwrap().is_empty(), "the tool itself did not run");
    let lines = transcript_lines(&run.response().transcript);
    assert_eq!([&lines[6], &lines[10]], ["result c1: ran elsewhere", "result c5: ran elsewhere"]);
    assert!(lines[7..10].iter().all(|line| line.starts_with("error c")), "{lines:?}");
    assert_eq!(
        *elsewhere.batches.lock().unwrap(),
        ["look {\"a\":1}", "look {}"],
        "what it was given, in one batch"
    );
    let events: Vec<_> = run.lines().into_iter().filter(|line| line.starts_with("tool c1")).collect();
    assert_eq!(
        events,
        ["tool c1 started {\"a\":1}", "tool c1 progress elsewhere", "tool c1 finished: ran elsewhere"],
        "its events come out, and the end that it does not report"
    );
}

/// Other results than one per call, in call order, are an error of the machinery; the calls are answered.
#[tokio::test]
async fn execution_with_wrong_results_ends_turn_with_error() {
    let wrong: [Results; 5] = [
        |_| Ok(Vec::new()),
        |batch| answered(batch).map(|mut results| results.drain(..1).collect()),
        |batch| {
            answered(batch).map(|mut results| {
                results.reverse();
                results
            })
        },
        |batch| answered(batch).map(|results| [results.clone(), results].concat()),
        |_| Err(Error::new(ErrorKind::Tool, "the engine is down")),
    ];
    for results in wrong {
        let stages = Stages::default();
        let ledger = Ledger::default();
        let advisor = ToolCallAdvisor::builder()
            .execution(Elsewhere::new(results))
            .hooks(Watch(stages.clone()))
            .build();
        let model = two_calls();
        let run =
            go(client(&model, advisor.unwrap()).advisor(ledger.clone()).tool(tool("look", "sunny"))).await;
        assert_eq!(run.error().kind(), ErrorKind::Tool);
        assert_eq!((model.calls(), stages.ends()), (1, vec![LoopEnd::Failed(ErrorKind::Tool)]));
        let unknown = "stopped: the machinery that runs tools failed; the outcome is unknown";
        assert_eq!(
            transcript_lines(run.error().history().unwrap())[3..],
            [format!("error c1: {unknown}"), format!("error c2: {unknown}")]
        );
        assert_valid(run.error().history().unwrap());
        assert_valid(&ledger.transcript());
    }
}
