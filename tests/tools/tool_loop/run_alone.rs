//! Tests of calls that run outside the loop, such as client-side ones: they run as inside it.

use advisor_chain::Turn;
use advisor_chain::tools::{
    CallDecision, CallRunner, DecidedCall, ParallelTools, PolicyAction, ReadyCall, ToolPolicy, Verdict,
};
use advisor_tests::prelude::*;

use crate::tool_loop::support::*;

fn advisor() -> ToolCallAdvisor {
    let tools = ParallelTools { timeout: Some(Duration::from_secs(5)), ..ParallelTools::default() };
    let limits = ToolLimits { result_bytes: 100, ..ToolLimits::default() };
    ToolCallAdvisor::builder().execution(tools).limits(limits).build().unwrap()
}

fn tools() -> ToolSet {
    let schema = json!({"type": "object", "properties": {"days": {"type": "integer"}}});
    let plain = |name: &str| ToolDefinition::new(name, "A tool of a test.", schema.clone());
    let echo = FnTool::new(plain("echo"), |arguments: Value| async move { Ok(arguments) });
    let long = FnTool::new(plain("long"), |_: Value| async { Ok("x".repeat(1_000)) });
    let failing = FnTool::new(plain("fails"), |_: Value| async { Err::<&str, _>(ToolError::new("broken")) });
    let silent = FnTool::new(plain("silent"), |_: Value| async { Err::<&str, _>(ToolError::new(" ")) });
    let panicking = FnTool::with_invocation(plain("panics"), |_: ToolInvocation| async { panic!("oh") });
    let hanging = FnTool::new(plain("hangs"), |_: Value| async {
        std::future::pending::<()>().await;
        Ok("never")
    });
    ToolSet::new().with(echo).with(long).with(failing).with(silent).with(panicking).with(hanging)
}

fn key() -> CallKey {
    CallKey::new(TurnId::new("turn-1").unwrap(), 1, 0)
}

/// Runs a call that a person has approved, outside any loop.
async fn run_alone(advisor: &ToolCallAdvisor, tools: &ToolSet, call: ToolCall) -> Result<ToolResult> {
    let request = ChatRequest { tools: tools.clone(), ..ChatRequest::new(Vec::new()) };
    run_in(advisor, &request, key(), call).await
}

async fn run_in(
    advisor: &ToolCallAdvisor,
    request: &ChatRequest,
    key: CallKey,
    call: ToolCall,
) -> Result<ToolResult> {
    let call = DecidedCall { key, call, verdict: Verdict::Approved, definition: None };
    Ok(advisor.run(request, vec![call]).await?.swap_remove(0))
}

/// Law T2: for any error of a call, the model reads the same text.
#[tokio::test(start_paused = true)]
async fn law_t2_call_run_alone_gives_the_loop_result() {
    for (name, arguments, reads) in [
        ("echo", r#"{"days":3}"#, r#"{"days":3}"#),
        ("echo", "", "{}"),
        ("echo", r#"{"days":null}"#, "{}"),
        ("long", "{}", "bytes left out"),
        ("fails", "{}", "broken"),
        ("silent", "{}", "the tool failed without saying why"),
        ("panics", "{}", "the tool panicked: oh"),
        ("hangs", "{}", "stopped: no answer within 5 s; the outcome is unknown"),
        ("nonesuch", "{}", "there is no tool called `nonesuch`"),
        ("echo", r#"{"days":"#, "not started: the arguments are no valid JSON"),
        ("echo", r#"{"days":"soon"}"#, r#"/days: "soon" is not of type "integer""#),
        ("echo", "[]", r#"is not of type "object""#),
    ] {
        let model =
            ScriptedModel::new([Answer::from_calls([("c1", name, arguments)]), Answer::from_text("Done.")]);
        let response = response_of(client(&model, advisor()).tools(&tools())).await;
        let in_loop = response.transcript.iter().find_map(Message::tool_result).unwrap();
        let call = ToolCall::new("c1", name, arguments);
        let alone = run_alone(&advisor(), &tools(), call).await.unwrap();
        assert_eq!(alone, *in_loop);
        assert!(alone.text().contains(reads) && alone.text().len() <= 100, "{name}: {}", alone.text());
    }
    let mut cut = ToolCall::new("c1", "echo", "{}");
    cut.complete = false;
    let alone = run_alone(&advisor(), &tools(), cut).await.unwrap();
    assert_eq!(alone.text(), "not started: the call is incomplete; make it again, by itself");
}

/// Law T5: run twice in one turn, a call that must not run twice is started once.
#[tokio::test]
async fn law_t5_call_run_alone_twice_is_started_once() {
    for (effect, runs) in [(Some(Effect::AtMostOnce), 1), (Some(Effect::Idempotent), 2), (None, 2)] {
        let count = Arc::new(Mutex::new(0));
        let counted = Arc::clone(&count);
        let mut once = definition("charge");
        once.effect = effect;
        let charge = FnTool::new(once, move |_: Value| {
            *counted.lock().unwrap() += 1;
            async { Ok("charged") }
        });
        let tools = ToolSet::new().with(charge);
        let turn = Turn::new(key().turn);
        let request = ChatRequest { tools, turn, ..ChatRequest::new(Vec::new()) };
        let run = async |key| {
            let call = ToolCall::new("c1", "charge", "{}");
            run_in(&ToolCallAdvisor::new(), &request, key, call).await.unwrap()
        };
        let (first, second) = (run(key()).await, run(key()).await);
        assert_eq!((first.text().as_str(), *count.lock().unwrap()), ("charged", runs));
        let refused = runs == 1;
        assert_eq!((second.is_error, second.text() == VERIFY_BEFORE_RETRYING), (refused, refused));
        // Another call is another matter.
        assert!(!run(CallKey::new(key().turn, 1, 1)).await.is_error);
    }
}

/// Fails when it is asked about this tool.
struct FailingFor(&'static str);

#[async_trait]
impl LoopHooks for FailingFor {
    async fn before_tool(&self, call: &ReadyCall, _request: &ChatRequest) -> Result<CallDecision> {
        match &*call.call.name == self.0 {
            true => Err(Error::new(ErrorKind::Advisor, "the hook failed")),
            false => Ok(CallDecision::Run),
        }
    }
}

/// Law T5: a call is started only when it runs, so an error about a later call of its batch leaves it to be run.
#[tokio::test]
async fn law_t5_call_of_failed_batch_is_not_started() {
    let once = ToolDefinition { effect: Some(Effect::AtMostOnce), ..definition("charge") };
    let charge = FnTool::new(once, |_: Value| async { Ok("charged") });
    let request = ChatRequest {
        tools: ToolSet::new().with(charge).with(tool("look", "sunny")),
        turn: Turn::new(key().turn),
        ..ChatRequest::new(Vec::new())
    };
    let decided = |position, name: &str, verdict| {
        let key = CallKey::new(key().turn, 1, position);
        DecidedCall { key, call: ToolCall::new("c1", name, "{}"), verdict, definition: None }
    };
    let charged = || decided(0, "charge", Verdict::Approved);
    let looked = || decided(1, "look", Verdict::ApprovedWith(json!({})));
    let failing = ToolCallAdvisor::builder().hooks(FailingFor("look")).build().unwrap();
    assert!(failing.run(&request, vec![charged(), looked()]).await.is_err());
    let results = ToolCallAdvisor::new().run(&request, vec![charged(), looked()]).await.unwrap();
    assert_eq!(results.iter().map(ToolResult::text).collect::<Vec<_>>()[0], "charged");
    // What a person has changed is bound by the policy here, too.
    let policy = ToolPolicy { otherwise: PolicyAction::Deny("no".into()), ..ToolPolicy::default() };
    let denying = ToolCallAdvisor::builder().policy(policy).build().unwrap();
    assert_eq!(denying.run(&request, vec![looked()]).await.unwrap()[0].text(), "not started: no");
}

/// Hides the first call of an answer from those outside.
fn hiding() -> impl StreamAdvisor {
    from_fn("hiding", |request: ChatRequest, next: AdvisorChain| async move {
        let mut hidden = None;
        Ok(next.next_stream(request).await?.edit_with(move |chunk: Chunk, out: &mut EditedChunks<'_>| {
            match &chunk {
                Chunk::Opened { block, head } if head.call.is_some() && hidden.is_none() => {
                    hidden = Some(*block)
                }
                Chunk::Delta { block, .. } | Chunk::Closed { block, .. } if Some(*block) == hidden => {}
                _ => out.push(chunk),
            }
        }))
    })
}

/// Law T5: an open call has the key of its place in the recorded answer, which is that of no other call. It runs in its
/// turn, also after the time of the loop, and however long after another one.
#[tokio::test(start_paused = true)]
async fn law_t5_open_call_has_key_of_recorded_answer() {
    let once = ToolDefinition { effect: Some(Effect::AtMostOnce), client_side: true, ..definition("pay") };
    let pay = FnTool::with_invocation(once, |call: ToolInvocation| async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok(call.key.to_string().into())
    });
    let tools = ToolSet::new().with(pay).with(tool("look", "sunny"));
    for hides in [false, true] {
        let answer = Answer::new().text("All.").call("c1", "look", "{}").call("c2", "pay", "{}");
        let answer = answer.call("c3", "pay", "{}").finish(FinishReason::ToolCalls);
        let model = ScriptedModel::new([answer]);
        let limits = ToolLimits { turn_timeout: Some(Duration::from_secs(5)), ..ToolLimits::default() };
        let advisor = ToolCallAdvisor::builder().limits(limits).streaming(ToolCallStreaming::All);
        let advisor = advisor.build().unwrap();
        let client = client(&model, advisor.clone()).tools(&tools);
        let client = if hides { client.advisor_in(Phase::Turn, hiding()) } else { client };
        let response = client.build().unwrap().prompt().user("Pay.").turn("t").call().await.unwrap();
        assert_eq!(response.call_key(BlockId::new(1, 9)), None);
        let turn = Arc::clone(&response.turn);
        let request = ChatRequest { tools: tools.clone(), turn, ..ChatRequest::new(Vec::new()) };
        let mut ran = Vec::new();
        for (block, call) in response.open_calls() {
            let key = response.call_key(block).unwrap();
            tokio::time::advance(Duration::from_secs(3_600)).await;
            let first = run_in(&advisor, &request, key.clone(), call.clone()).await.unwrap();
            let second = run_in(&advisor, &request, key, call.clone()).await.unwrap();
            assert_eq!(second.text(), VERIFY_BEFORE_RETRYING);
            ran.push((call.id.to_string(), first.text()));
        }
        let expected = [("c2", "t/1/1"), ("c3", "t/1/2")].map(|(id, key)| (id.into(), key.into()));
        assert_eq!(ran, expected, "hides {hides}");
    }
}
