//! Decisions about calls that wait, in any process.

use advisor_chain::tools::{
    ArgumentTest, CallDecision, Decision, DecisionProblem, PolicyAction, ReadyCall, ToolPolicy, ToolRule,
};
use advisor_tests::prelude::*;
use advisor_tests::stores::two_stores;

use crate::approval::process::*;

fn approval(problem: DecisionProblem) -> ErrorKind {
    ErrorKind::Approval { problem }
}

#[tokio::test]
async fn turn_is_decided_and_finished_in_another_process() {
    for place in PLACES {
        let (stores, _folder) = two_stores().await;
        for store in stores {
            let first = Process::new(&store, place, two_payments());
            assert_eq!((first.ask().await, first.runs()), (FinishReason::ToolCalls, 0));
            let other = Process::new(&store, place, done());
            let pending = other.pending().await;
            let shown: Vec<_> = pending.iter().map(|call| call.call.arguments.as_str()).collect();
            assert_eq!(shown, [r#"{"cents":1}"#, r#"{"cents":3}"#]);
            // Decisions travel as JSON.
            let made = [pending[0].approve().unwrap(), pending[1].deny("too much").unwrap()];
            let made: Vec<Decision> = serde_json::from_str(&serde_json::to_string(&made).unwrap()).unwrap();
            let prompt = other.client.prompt().conversation("c").resume(made.clone());
            assert_eq!((prompt.call().await.unwrap().text().as_str(), other.runs()), ("Done.", 1));
            let results = ["c1: paid 1", "c2: seen", "c3: not started: too much"];
            assert_eq!(other.sent(), [&["Pay.", "(c1)(c2)(c3)"][..], &results].concat(), "{place:?}");
            // Nothing waits any more, and nothing runs again.
            assert_eq!(other.pending().await, []);
            let again = other.resume(made).await.unwrap_err();
            assert_eq!((again.kind(), other.runs()), (ErrorKind::NoClientSideCall, 1));
        }
    }
}

#[tokio::test]
async fn changed_arguments_run_and_are_told_to_the_model() {
    let store: Arc<dyn ConversationStore> = Arc::new(InMemoryStore::new());
    let process = Process::new(&store, Phase::Round, then_done(one_payment()));
    process.ask().await;
    let pending = process.pending().await;
    let changed = pending[0].approve_with(json!({"cents": 2})).unwrap();
    process.resume([changed]).await.unwrap();
    let result = "c1: The call ran with changed arguments: {\"cents\":2}\npaid 2";
    assert_eq!(process.sent(), ["Pay.", "(c1)", result]);
    // Arguments that do not fit are refused, and the call still waits.
    let process = Process::new(&store, Phase::Round, then_done(one_payment()));
    process.ask().await;
    let pending = process.pending().await;
    let wrong = pending[0].approve_with(json!({"cents": "2"})).unwrap();
    let refused = process.resume([wrong]).await.unwrap_err();
    assert_eq!((refused.kind(), process.runs()), (approval(DecisionProblem::Arguments), 0), "{refused}");
    assert!(!refused.to_string().contains("\"2\""), "arguments are content: {refused}");
    process.resume([pending[0].approve().unwrap()]).await.unwrap();
    assert_eq!(process.runs(), 1);
}

/// What a person changes is bound by the policy, as what the model writes.
#[tokio::test]
async fn changed_arguments_are_bound_by_the_policy() {
    let at_most = ArgumentTest::AtMost { pointer: "/cents".into(), number: 100.0 };
    let rules = [ToolRule { when: vec![at_most], ..ToolRule::new(["pay"], PolicyAction::Ask) }];
    let policy = ToolPolicy { rules: rules.into(), otherwise: PolicyAction::Deny("too much".into()) };
    let model = ScriptedModel::new(then_done(one_payment()));
    let client = ChatClient::builder(model)
        .advisor(ChatMemoryAdvisor::new(InMemoryStore::new()))
        .advisor(ToolCallAdvisor::builder().policy(policy).build().unwrap())
        .tool(FnTool::new(definition("pay"), |_: Value| async { Ok("paid") }))
        .build()
        .unwrap();
    client.prompt().user("Pay.").conversation("c").call().await.unwrap();
    let pending = client.pending_calls("c").await.unwrap();
    let more = pending[0].approve_with(json!({"cents": 101})).unwrap();
    let refused = client.prompt().conversation("c").resume([more]).call().await.unwrap_err();
    assert_eq!(refused.kind(), approval(DecisionProblem::Policy), "{refused}");
    let less = pending[0].approve_with(json!({"cents": 100})).unwrap();
    assert_eq!(client.prompt().conversation("c").resume([less]).call().await.unwrap().text(), "Done.");
}

/// Asks before each payment but these: of 7 cents it fails, 8 are denied, 9 are allowed.
#[derive(Default, Clone)]
struct Checking(Arc<AtomicUsize>);

#[async_trait]
impl LoopHooks for Checking {
    async fn before_tool(&self, call: &ReadyCall, _request: &ChatRequest) -> Result<CallDecision> {
        self.0.fetch_add(1, Ordering::SeqCst);
        match call.arguments["cents"].as_u64() {
            Some(7) => Err(Error::new(ErrorKind::Advisor, "the hook failed")),
            Some(8) => Ok(CallDecision::Deny("too much".into())),
            Some(9) => Ok(CallDecision::Run),
            _ => Ok(CallDecision::Ask),
        }
    }
}

/// The hook is asked once about changed arguments, before a start is recorded. If it denies them or fails, all calls wait
/// as before.
#[tokio::test]
async fn law_t5_hook_is_asked_before_approved_calls_start() {
    for place in PLACES {
        let calls = [("c1", "pay", r#"{"cents":1}"#), ("c2", "pay", r#"{"cents":2}"#)];
        let hook = Checking::default();
        let paid = Arc::new(Mutex::new(Vec::new()));
        let runs = Arc::clone(&paid);
        let pay = FnTool::new(definition("pay"), move |arguments: Value| {
            runs.lock().unwrap().push(arguments["cents"].clone());
            async { Ok("paid") }
        });
        let client = ChatClient::builder(ScriptedModel::new(then_done(vec![Answer::from_calls(calls)])))
            .advisor_in(place, ChatMemoryAdvisor::new(InMemoryStore::new()))
            .advisor(ToolCallAdvisor::builder().hooks(hook.clone()).build().unwrap())
            .tool(pay)
            .build()
            .unwrap();
        client.prompt().user("Pay.").conversation("c").call().await.unwrap();
        let resume = async |cents: u64| {
            let pending = client.pending_calls("c").await.unwrap();
            assert!(pending.iter().all(|call| !call.started), "{place:?}");
            hook.0.store(0, Ordering::SeqCst);
            let changed = pending[1].approve_with(json!({ "cents": cents })).unwrap();
            let decisions = [pending[0].approve().unwrap(), changed];
            let resumed = client.prompt().conversation("c").resume(decisions).call().await;
            assert_eq!(hook.0.load(Ordering::SeqCst), 1, "{place:?}");
            resumed.map_err(|error| error.kind())
        };
        assert_eq!(resume(7).await.unwrap_err(), ErrorKind::Advisor);
        assert_eq!(resume(8).await.unwrap_err(), approval(DecisionProblem::Policy));
        assert!(paid.lock().unwrap().is_empty());
        assert_eq!(resume(9).await.unwrap().text(), "Done.");
        assert_eq!(*paid.lock().unwrap(), [json!(1), json!(9)]);
    }
}

/// All decisions are checked before anything runs.
#[tokio::test]
async fn law_t5_wrong_decision_runs_nothing() {
    let store: Arc<dyn ConversationStore> = Arc::new(InMemoryStore::new());
    let process = Process::new(&store, Phase::Round, two_payments());
    process.ask().await;
    let pending = process.pending().await;
    let approved = |place: usize| pending[place].approve().unwrap();
    let mut expired = approved(1);
    expired.expires_at = Some(0);
    let mut forged = approved(1);
    forged.arguments = r#"{"cents":2}"#.into();
    let mut unknown = approved(1);
    unknown.key.position = 7;
    for (decisions, kind) in [
        (vec![approved(0), expired], approval(DecisionProblem::Expired)),
        (vec![approved(0), forged], approval(DecisionProblem::OtherCall)),
        (vec![approved(0)], approval(DecisionProblem::Missing)),
        (
            vec![approved(0), approved(1), pending[1].deny("no").unwrap()],
            approval(DecisionProblem::Duplicate),
        ),
        // The call that such a decision names is no call without a decision.
        (vec![approved(0), unknown.clone()], ErrorKind::NoClientSideCall),
        (vec![approved(0), approved(1), unknown], ErrorKind::NoClientSideCall),
    ] {
        let refused = process.resume(decisions).await.unwrap_err();
        assert_eq!((refused.kind(), process.runs()), (kind, 0), "{refused}");
        assert!(!process.pending().await[0].started);
    }
    let both = || [approved(0), approved(1)];
    let prompt = || process.client.prompt().conversation("c");
    let result = |call: &ToolCall| Message::tool(ToolResult::new(call, vec!["paid".into()]));
    let stray = ToolCall::new("c9", "pay", "{}");
    let asking = pending[0].key.as_ref().unwrap().turn.clone();
    for (resumed, kind) in [
        (prompt().messages([result(&pending[0].call)]).resume(both()), approval(DecisionProblem::WithResult)),
        (prompt().messages([result(&stray)]).resume(both()), ErrorKind::NoClientSideCall),
        (prompt().turn(asking).resume(both()), approval(DecisionProblem::SameTurn)),
    ] {
        let refused = resumed.call().await.unwrap_err();
        assert_eq!((refused.kind(), process.runs()), (kind, 0), "{refused}");
    }
    // A chain without the loop, or without the tool, is found before a start is recorded.
    let bare = || {
        let memory = ChatMemoryAdvisor::new(Arc::clone(&store));
        ChatClient::builder(ScriptedModel::new([])).advisor(memory)
    };
    for (bare, kind) in [
        (bare(), ErrorKind::Configuration),
        (bare().advisor(ToolCallAdvisor::new()), approval(DecisionProblem::UnknownTool)),
    ] {
        let refused =
            bare.build().unwrap().prompt().conversation("c").resume(both()).call().await.unwrap_err();
        assert_eq!(refused.kind(), kind, "{refused}");
    }
    assert!(process.pending().await.iter().all(|call| !call.started));
    let nowhere = process.client.prompt().resume([approved(0)]).call().await.unwrap_err();
    assert_eq!(nowhere.kind(), ErrorKind::Configuration);
}

#[tokio::test]
async fn law_t5_two_approvers_run_a_call_once() {
    for place in PLACES {
        let (stores, _folder) = two_stores().await;
        for store in stores {
            Process::new(&store, place, one_payment()).ask().await;
            let gate = Gate::new();
            let one = Process::waiting(&store, place, done(), Some(gate.clone()));
            let two = Process::new(&store, place, done());
            let approved = one.pending().await[0].approve().unwrap();
            let mut first = Box::pin(one.resume([approved.clone()]));
            one.started(&mut first).await;
            let second = two.resume([approved]).await.unwrap_err();
            assert_eq!((second.kind(), two.runs()), (ErrorKind::CallAlreadyStarted, 0));
            gate.release();
            assert_eq!(first.await.unwrap().text(), "Done.");
            assert_eq!((one.runs(), one.sent().last().unwrap().as_str()), (1, "c1: paid 1"));
        }
    }
}

/// The approver dies while the tool runs.
#[tokio::test]
async fn law_t5_call_of_lost_approver_needs_verification() {
    for place in PLACES {
        let (stores, _folder) = two_stores().await;
        for store in stores {
            Process::new(&store, place, one_payment()).ask().await;
            let one = Process::waiting(&store, place, done(), Some(Gate::new()));
            let approved = one.pending().await[0].approve().unwrap();
            let mut resumed = Box::pin(one.resume([approved]));
            one.started(&mut resumed).await;
            drop(resumed);
            let next = Process::new(&store, place, done());
            let pending = next.pending().await;
            assert!(pending[0].started);
            // It may have run, so a denial would tell the model something false.
            let late = next.resume([pending[0].deny("no").unwrap()]).await.unwrap_err();
            assert_eq!(late.kind(), ErrorKind::CallAlreadyStarted);
            next.client.prompt().user("And?").conversation("c").call().await.unwrap();
            let told = format!("c1: {VERIFY_BEFORE_RETRYING}");
            assert_eq!((next.sent()[2].as_str(), next.runs()), (told.as_str(), 0), "{place:?}");
        }
    }
}

/// A new message of the user answers the call that waits.
#[tokio::test]
async fn user_message_answers_the_pending_call() {
    let store: Arc<dyn ConversationStore> = Arc::new(InMemoryStore::new());
    let process = Process::new(&store, Phase::Round, then_done(one_payment()));
    process.ask().await;
    let approved = process.pending().await[0].approve().unwrap();
    process.client.prompt().user("Never mind.").conversation("c").call().await.unwrap();
    assert!(process.sent()[2].starts_with("c1: not run"), "{:?}", process.sent());
    let late = process.resume([approved]).await.unwrap_err();
    assert_eq!((late.kind(), process.runs()), (ErrorKind::NoClientSideCall, 0));
}

/// A user may say something with the decision, and give the result of a client-side tool of the same answer.
#[tokio::test]
async fn decision_comes_with_results_and_words_of_the_caller() {
    let store: Arc<dyn ConversationStore> = Arc::new(InMemoryStore::new());
    let both = Answer::from_calls([("c1", "place", "{}"), ("c2", "pay", r#"{"cents":2}"#)]);
    let process = Process::new(&store, Phase::Round, then_done(vec![both]));
    process.ask().await;
    let pending = process.pending().await;
    let here = ToolResult::new(&pending[0].call, vec!["Oslo".into()]);
    let prompt = process.client.prompt().conversation("c").messages([Message::tool(here)]).user("Go ahead.");
    prompt.resume([pending[1].approve().unwrap()]).call().await.unwrap();
    assert_eq!(process.sent(), ["Pay.", "(c1)(c2)", "c1: Oslo", "c2: paid 2", "Go ahead."]);
}
