//! Decisions about calls before they run: a hook, a policy as data, and their order.

use advisor_chain::tools::{CallDecision, PolicyAction, ReadyCall, ToolPolicy, ToolRule};
use advisor_tests::prelude::*;

use crate::tool_loop::support::*;

type Decide = fn(&ReadyCall) -> Result<CallDecision>;

/// Decides with a function, and notes each call.
#[derive(Clone)]
struct Deciding {
    decide: Decide,
    journal: Journal,
}

#[async_trait]
impl LoopHooks for Deciding {
    async fn before_tool(&self, call: &ReadyCall, _request: &ChatRequest) -> Result<CallDecision> {
        self.journal.record(format!("decided {}", call.call.id));
        (self.decide)(call)
    }
}

fn deciding(decide: Decide) -> (ToolCallAdvisor, Journal) {
    let journal = Journal::new();
    let hooks = Deciding { decide, journal: journal.clone() };
    (ToolCallAdvisor::builder().hooks(hooks).streaming(ToolCallStreaming::All).build().unwrap(), journal)
}

fn two_looks() -> ScriptedModel {
    ScriptedModel::new([
        Answer::from_calls([("c1", "look", r#"{"a":1}"#), ("c2", "look", r#"{"a":2}"#)]),
        Answer::from_text("Done."),
    ])
}

/// T4: once per call that could run, in call order, before any of them starts, and before the answer is recorded.
#[tokio::test]
async fn law_t4_before_tool_runs_once_per_call() {
    let model = ScriptedModel::new([
        Answer::from_calls([("c1", "look", "{}"), ("c2", "nonesuch", "{}"), ("c3", "look", "{")]),
        Answer::from_calls([("c4", "look", "{}"), ("c5", "look", r#"{"a":1}"#)]),
        Answer::from_text("Done."),
    ]);
    let (advisor, journal) = deciding(|_| Ok(CallDecision::Run));
    let ran = journal.clone();
    let look = FnTool::new(definition("look"), move |_: Value| {
        ran.record("ran");
        async { Ok("ok") }
    });
    let client = client(&model, advisor).tool(look).build().unwrap();
    assert_eq!(client.prompt().user("go").call().await.unwrap().text(), "Done.");
    assert_eq!(journal.labels(), ["decided c1", "ran", "decided c4", "decided c5", "ran", "ran"]);
}

#[tokio::test]
async fn law_t2_denied_call_has_a_result_with_the_reason() {
    let (advisor, _) = deciding(|call| match call.arguments["a"] == 1 {
        true => Ok(CallDecision::Deny("not on Sundays".into())),
        false => Ok(CallDecision::Run),
    });
    let (model, (look, given)) = (two_looks(), invoked("look"));
    let run = read(client(&model, advisor).tool(look).build().unwrap().prompt().user("go").stream()).await;
    assert_eq!(run.response().text(), "Done.");
    assert_eq!(*given.lock().unwrap(), [json!({"a": 2})]);
    let lines = transcript_lines(&run.response().transcript);
    assert_eq!(lines[3..5], ["error c1: not started: not on Sundays", "result c2: ok"]);
    assert!(
        run.lines().iter().any(|line| line == "tool c1 denied: not started: not on Sundays"),
        "{:?}",
        run.lines()
    );
}

/// The tool gets the new arguments, and the model knows them. The call stays as the model wrote it.
#[tokio::test]
async fn law_t6_call_with_changed_arguments_stays_as_written() {
    let (advisor, _) = deciding(|_| Ok(CallDecision::RunWith(json!({"a": 9}))));
    let (model, ledger, (look, given)) = (two_looks(), Ledger::default(), invoked("look"));
    let run = go(client(&model, advisor).advisor(ledger.clone()).tool(look)).await;
    assert_eq!(*given.lock().unwrap(), [json!({"a": 9}), json!({"a": 9})]);
    let lines = transcript_lines(&run.response().transcript);
    assert_eq!(
        lines[1..4],
        [
            "call c1 look {\"a\":1}",
            "call c2 look {\"a\":2}",
            "result c1: The call ran with changed arguments: {\"a\":9}\nok"
        ]
    );
    assert_eq!(transcript_lines(&ledger.transcript()), lines);
    let shown = run.chunks.iter().find_map(|chunk| match chunk {
        Chunk::Tool(event) => match &event.kind {
            ToolEventKind::Started { arguments } => Some(arguments.to_string()),
            _ => None,
        },
        _ => None,
    });
    assert_eq!(shown.as_deref(), Some(r#"{"a":9}"#));
}

#[tokio::test]
async fn law_t2_changed_arguments_must_fit_the_tool() {
    let (advisor, _) = deciding(|_| Ok(CallDecision::RunWith(json!({"city": 7}))));
    let mut definition = definition("look");
    definition.parameters = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    let look = FnTool::new(definition, |_: Value| async { Ok("never") });
    let model = two_looks();
    let response =
        client(&model, advisor).tool(look).build().unwrap().prompt().user("go").call().await.unwrap();
    let line = transcript_lines(&response.transcript).swap_remove(3);
    let text = "error c1: not started: its arguments were changed and do not fit the tool: ";
    assert!(line.starts_with(text) && line.contains("/city"), "{line}");
}

#[tokio::test]
async fn policy_decides_before_the_hook() {
    let (model, (look, given)) = (two_looks(), invoked("look"));
    let journal = Journal::new();
    let policy: ToolPolicy = serde_json::from_value(json!({"rules": [
        {"tools": ["look"], "when": [{"equals": {"pointer": "/a", "value": 1}}], "then": {"deny": "not this one"}},
        {"tools": ["lo*"], "then": {"edit": {"limit": 5}}},
    ]}))
    .unwrap();
    let hooks = Deciding { decide: |_| Ok(CallDecision::Run), journal: journal.clone() };
    let advisor = ToolCallAdvisor::builder().policy(policy).hooks(hooks).build().unwrap();
    let response =
        client(&model, advisor).tool(look).build().unwrap().prompt().user("go").call().await.unwrap();
    assert_eq!((response.text().as_str(), journal.labels()), ("Done.", vec!["decided c2".to_owned()]));
    assert_eq!(*given.lock().unwrap(), [json!({"a": 2, "limit": 5})]);
}

/// The parsed arguments of all calls are in memory at once.
#[tokio::test]
async fn law_r1_values_of_all_calls_of_an_answer_are_bounded() {
    let arguments = format!("{{\"a\":[{}]}}", vec!["0"; 60_000].join(","));
    let calls = ["c1", "c2", "c3"].map(|id| (id, "look", arguments.as_str()));
    let model = ScriptedModel::new([Answer::from_calls(calls), Answer::from_text("Done.")]);
    let (advisor, journal) = deciding(|_| Ok(CallDecision::Run));
    let response = client(&model, advisor)
        .tool(tool("look", "ok"))
        .build()
        .unwrap()
        .prompt()
        .user("go")
        .call()
        .await
        .unwrap();
    assert_eq!((response.text().as_str(), journal.labels().len()), ("Done.", 2));
    let lines = transcript_lines(&response.transcript);
    let text = "error c3: not started: the arguments of the calls of an answer may have 131072 values together; make fewer calls at once";
    assert!(lines.iter().any(|line| line == text), "{:?}", lines.last());
}

/// A person is not asked about what the hook denies, and decides about what the model wrote, whatever the hook would change.
#[tokio::test]
async fn law_t2_hook_denies_what_the_policy_leaves_to_a_person() {
    let (model, (look, given)) = (two_looks(), invoked("look"));
    let policy =
        ToolPolicy { rules: vec![ToolRule::new(["look"], PolicyAction::Ask)], ..ToolPolicy::default() };
    let decide = |call: &ReadyCall| match call.arguments["a"] == 1 {
        true => Ok(CallDecision::Deny("not on Sundays".into())),
        false => Ok(CallDecision::RunWith(json!({"a": 9}))),
    };
    let hooks = Deciding { decide, journal: Journal::new() };
    let advisor = ToolCallAdvisor::builder().policy(policy).hooks(hooks).build().unwrap();
    let response = response_of(client(&model, advisor).tool(look)).await;
    let open: Vec<_> = response.open_calls().map(|(_, call)| call.id.as_str().to_owned()).collect();
    assert_eq!((open, given.lock().unwrap().len()), (vec!["c2".to_owned()], 0));
    let lines = transcript_lines(&response.transcript);
    assert!(lines.contains(&"error c1: not started: not on Sundays".to_owned()), "{lines:?}");
}

/// O5: no tool runs, and the calls are answered.
#[tokio::test]
async fn law_o5_failing_before_tool_starts_nothing() {
    let (advisor, _) = deciding(|call| match call.arguments["a"] == 2 {
        true => Err(Error::new(ErrorKind::Advisor, "the policy service is gone")),
        false => Ok(CallDecision::Run),
    });
    let (model, ledger, (look, given)) = (two_looks(), Ledger::default(), invoked("look"));
    let run = go(client(&model, advisor).advisor(ledger.clone()).tool(look)).await;
    assert_eq!((run.error().kind(), given.lock().unwrap().len(), model.calls()), (ErrorKind::Advisor, 0, 1));
    assert_valid(&ledger.transcript());
}

/// K2: nothing of the round has started, or is recorded by the loop, while the hook waits.
#[tokio::test]
async fn law_k2_drop_in_before_tool_leaves_nothing_started() {
    struct Waiting(Gate);
    #[async_trait]
    impl LoopHooks for Waiting {
        async fn before_tool(&self, _: &ReadyCall, _: &ChatRequest) -> Result<CallDecision> {
            self.0.pass().await;
            Ok(CallDecision::Run)
        }
    }
    let (model, ledger, (look, given)) = (two_looks(), Ledger::default(), invoked("look"));
    let advisor = ToolCallAdvisor::builder().hooks(Waiting(Gate::new())).build().unwrap();
    let client = client(&model, advisor).advisor(ledger.clone()).tool(look).build().unwrap();
    let mut turn = Box::pin(client.prompt().user("go").call());
    assert!(futures::poll!(turn.as_mut()).is_pending());
    drop(turn);
    assert_eq!((given.lock().unwrap().len(), ledger.steps().len()), (0, 0));
}
