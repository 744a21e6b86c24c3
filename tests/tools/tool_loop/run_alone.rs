//! Tests of calls that run outside the loop, such as client-side ones: they run as inside it.

use advisor_chain::Turn;
use advisor_chain::tools::{CallRun, ParallelTools, ToolEvents};
use advisor_tests::prelude::*;

use crate::tool_loop::support::*;

fn advisor() -> ToolCallAdvisor {
    let tools = ParallelTools::new().with_timeout(Some(Duration::from_secs(5)));
    let limits = ToolLimits::default().with_result_bytes(100);
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
        let in_loop = response.transcript().iter().find_map(Message::tool_result).unwrap();
        let run = CallRun::new(ToolCall::new("c1", name, arguments), key());
        let alone = advisor().run_call(&tools(), run).await.unwrap();
        assert_eq!(alone, *in_loop);
        assert!(alone.text().contains(reads) && alone.text().len() <= 100, "{name}: {}", alone.text());
    }
    let mut cut = ToolCall::new("c1", "echo", "{}");
    cut.complete = false;
    let alone = advisor().run_call(&tools(), CallRun::new(cut, key())).await.unwrap();
    assert_eq!(alone.text(), "not started: the call is incomplete; make it again, by itself");
}

/// A tool that needs an approval has client-side calls; approved calls run, and the conversation continues.
#[tokio::test]
async fn client_side_calls_run_when_approved() {
    let paid = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&paid);
    let pay = FnTool::with_invocation(
        ToolDefinition { client_side: true, ..definition("pay") },
        move |call: ToolInvocation| {
            let told = (call.key.to_string(), call.conversation.clone(), call.turn.extensions().get::<u32>());
            seen.lock().unwrap().push(told);
            async { Ok("paid".into()) }
        },
    );
    let tools = ToolSet::new().with(pay);
    let model = ScriptedModel::new([
        Answer::new()
            .text("I will.")
            .call("c1", "pay", "{}")
            .call("c2", "pay", "{}")
            .finish(FinishReason::ToolCalls),
        Answer::from_text("One is paid."),
    ]);
    let advisor = ToolCallAdvisor::new();
    let client = client(&model, advisor.clone())
        .advisor(ChatMemoryAdvisor::new(InMemoryStore::new()))
        .tools(&tools)
        .build()
        .unwrap();
    let conversation = ConversationKey::new("c").unwrap();
    let prompt = || client.prompt().conversation(conversation.clone());
    let stream = prompt().user("Pay both.").turn(TurnId::new("turn-1").unwrap()).extension(7_u32).stream();
    let turn = Arc::clone(stream.turn());
    let answer = stream.call().await.unwrap();
    assert!(paid.lock().unwrap().is_empty(), "nothing runs before it is approved");

    let mut results = Vec::new();
    for run in CallRun::from_answer(&turn, &answer).unwrap() {
        // The text is the answer's first block.
        assert_eq!((run.block.round, run.block.position()), (1, run.key.position + 1));
        let run = run.with_conversation(conversation.clone());
        results.push(match run.call.id.as_str() {
            "c1" => ToolResult::error(&run.call, "the user denied it"),
            _ => advisor.run_call(&tools, run).await.unwrap(),
        });
    }
    let told = ("turn-1/1/1".to_string(), Some(conversation.clone()), Some(7));
    assert_eq!(*paid.lock().unwrap(), [told]);

    let response = prompt().messages(results.into_iter().map(Message::tool)).call().await.unwrap();
    assert_eq!(response.text(), "One is paid.");
    let sent = &model.prompts()[1].messages;
    assert_valid(sent);
    assert_eq!(transcript_lines(sent)[4..], ["error c1: the user denied it", "result c2: paid"]);
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
        let run = || CallRun::new(ToolCall::new("c1", "charge", "{}"), key()).with_turn(Arc::clone(&turn));
        let first = ToolCallAdvisor::new().run_call(&tools, run()).await.unwrap();
        let second = ToolCallAdvisor::new().run_call(&tools, run()).await.unwrap();
        assert_eq!((first.text().as_str(), *count.lock().unwrap()), ("charged", runs));
        let refused = runs == 1;
        assert_eq!((second.is_error, second.text() == VERIFY_BEFORE_RETRYING), (refused, refused));
        // Another call is another matter.
        let other = CallKey::new(key().turn, 1, 1);
        let run = CallRun::new(ToolCall::new("c2", "charge", "{}"), other).with_turn(turn);
        assert!(!ToolCallAdvisor::new().run_call(&tools, run).await.unwrap().is_error);
    }
}

/// Hides the first call of an answer from those outside.
fn hiding() -> impl StreamAdvisor {
    from_fn("hiding", |request: ChatRequest, next: AdvisorChain| async move {
        let mut hidden = None;
        Ok(next.next_stream(request).await?.edit_chunks(move |chunk, out| match &chunk {
            Chunk::Opened { block, head } if head.call.is_some() && hidden.is_none() => hidden = Some(*block),
            Chunk::Delta { block, .. } | Chunk::Closed { block, .. } if Some(*block) == hidden => {}
            _ => out.push_back(chunk),
        }))
    })
}

/// Law T5: a call of an answer that was changed on its way out has the key that the log gives it, or none.
#[tokio::test]
async fn law_t5_client_side_call_has_key_of_recorded_answer() {
    let pay = FnTool::new(ToolDefinition { client_side: true, ..definition("pay") }, |_: Value| async {
        Ok("paid")
    });
    let tools = ToolSet::new().with(pay);
    let calls = || Answer::from_calls([("c1", "pay", "{}"), ("c2", "pay", "{}")]);
    for (place, has_loop) in [(Phase::Round, true), (Phase::Turn, true), (Phase::Round, false)] {
        let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
        let model = ScriptedModel::new([calls()]);
        let client = match has_loop {
            true => client(&model, ToolCallAdvisor::new()).tools(&tools),
            false => ChatClient::builder(model.clone()),
        };
        let client = client.advisor(hiding()).advisor_in(place, memory.clone()).build().unwrap();
        let response = client.prompt().user("Pay.").conversation("c").turn("t").call().await.unwrap();
        assert_eq!(response.tool_calls().map(|(_, call)| call.id.as_str()).collect::<Vec<_>>(), ["c2"]);
        let runs = CallRun::from_answer(&response.turn, &response);
        if !has_loop {
            assert_eq!(runs.unwrap_err().kind(), ErrorKind::Configuration);
            continue;
        }
        let keys: Vec<_> = runs.unwrap().into_iter().map(|run| run.key.to_string()).collect();
        assert_eq!(keys, ["t/1/1"], "{place:?}");
        let logged = memory.client_side_calls(&ConversationKey::new("c").unwrap()).await.unwrap();
        assert_eq!(logged[1].key.as_ref().unwrap().to_string(), keys[0], "{place:?}");
        if place == Phase::Turn {
            // Submitted again, memory outside the loop gives the answer, and nobody knows what was hidden of it.
            let again = client.prompt().user("Pay.").conversation("c").turn("t").call().await.unwrap();
            let runs = CallRun::from_answer(&again.turn, &again);
            assert_eq!(runs.unwrap_err().kind(), ErrorKind::Configuration);
        }
    }
}

/// Without a loop, an answer that was not changed has its calls where they were.
#[tokio::test]
async fn call_without_loop_has_key_of_its_answer() {
    for recorded in [true, false] {
        let model = ScriptedModel::new([Answer::from_calls([("c1", "pay", "{}"), ("c2", "pay", "{}")])]);
        let client = ChatClient::builder(model);
        let client = match recorded {
            true => client.advisor(ChatMemoryAdvisor::new(InMemoryStore::new())),
            false => client.advisor(hiding()),
        };
        let response = client.build().unwrap().prompt().user("Pay.").conversation("c").turn("t").call();
        let response = response.await.unwrap();
        let runs = CallRun::from_answer(&response.turn, &response).unwrap();
        let named: Vec<_> = runs.iter().map(|run| format!("{} {}", run.key, run.call.id)).collect();
        let expected: &[_] = if recorded { &["t/1/0 c1", "t/1/1 c2"] } else { &["t/1/0 c2"] };
        assert_eq!(named, expected);
    }
}

/// Law R3: only the tool sees the arguments of a call.
#[test]
fn law_r3_debug_shows_no_arguments_of_a_call() {
    let call = ToolCall::new("c1", "pay", r#"{"iban":"canary"}"#);
    let text = format!("{:?}", CallRun::new(call, key()));
    assert!(!text.contains("canary") && text.contains("pay") && text.contains("turn-1"), "{text}");
}

/// An observer receives the start, the progress and the end, as in the loop.
#[tokio::test]
async fn observer_of_call_run_alone_receives_events() {
    let reporting = FnTool::with_invocation(definition("look"), |call: ToolInvocation| async move {
        call.progress.report("half way").await;
        Ok("y".repeat(1_000).into())
    });
    let tools = ToolSet::new().with(reporting);
    for (name, told) in [
        ("look", vec!["tool c1 started {}", "tool c1 progress half way", "tool c1 finished: "]),
        ("nonesuch", vec!["tool c1 unknown_tool: there is no tool called `nonesuch`"]),
    ] {
        let (events, mut receiver) = ToolEvents::channel(8);
        let run = CallRun::new(ToolCall::new("c1", name, "{}"), key()).with_events(events);
        let result = advisor().run_call(&tools, run).await.unwrap();
        let mut chunks = Vec::new();
        while let Some(event) = receiver.recv().await {
            assert_eq!((event.block.round, event.block.position()), (1, 0));
            chunks.push(Chunk::Tool(Box::new(event)));
        }
        let lines = lines(&chunks);
        assert_eq!(lines.len(), told.len(), "{lines:?}");
        assert!(lines.iter().zip(&told).all(|(line, told)| line.starts_with(told)), "{lines:?}");
        assert!(lines.last().unwrap().ends_with(&result.text()), "what the model is told: {lines:?}");
    }
}
