//! Tests of errors that end a turn, and of their content.

use advisor_tests::prelude::*;

use crate::tool_loop::support::*;

/// An error in a later round ends the turn with it. Final content is kept, and no tool runs again.
#[tokio::test]
async fn error_in_round_two_carries_final_content() {
    let model = ScriptedModel::new([
        Answer::from_calls([("c1", "look", "{}")]),
        Answer::new()
            .text("It is ")
            .call("c2", "look", "{}")
            .error(Error::new(ErrorKind::Connection, "reset")),
    ]);
    let (look, given) = invoked("look");
    let run = go(client(&model, ToolCallAdvisor::new()).tool(look)).await;
    let error = run.error();
    assert_eq!(error.kind(), ErrorKind::Connection);
    assert!(error.emitted());
    assert_eq!(error.partial().unwrap().text(), "It is ");
    assert_eq!(transcript_lines(error.history().unwrap()), ["user: go", "call c1 look {}", "result c1: ok"]);
    assert_eq!(given.lock().unwrap().len(), 1, "a cut call never runs");
}

/// Asking again would run the tools again, so an error after them says so, even where nothing was shown.
#[tokio::test]
async fn error_after_tools_ran_counts_as_emitted() {
    for rounds in [0, 1] {
        let calls = (0..rounds).map(|_| Answer::from_calls([("c1", "look", "{}")]));
        let reset = Answer::refused(Error::new(ErrorKind::Connection, "reset"));
        let model = ScriptedModel::new(calls.chain([reset]));
        let quiet = streaming(ToolCallStreaming::FinalAnswerOnly);
        let run = go(client(&model, quiet).tool(tool("look", "sunny"))).await;
        assert!(run.chunks.is_empty(), "{:?}", run.lines());
        assert_eq!(run.error().emitted(), rounds > 0);
    }
}

/// A call that the server ended stays complete in the partial answer, as it was shown; its finish reason vetoes it.
#[tokio::test]
async fn ended_call_of_failed_answer_never_runs() {
    let end = Delta::from(DeltaKind::BlockEnd).with_block(0);
    let model = ScriptedModel::new([Answer::new()
        .call("c1", "look", "{\"city\":\"Oslo\"}")
        .delta(end)
        .finish(FinishReason::ToolCalls)
        .error(Error::new(ErrorKind::Provider { status: None }, "overloaded"))]);
    let (look, given) = invoked("look");
    let run = go(client(&model, streaming(ToolCallStreaming::All)).tool(look)).await;
    let partial = run.error().partial().unwrap();
    let (block, call) = partial.tool_calls().next().unwrap();
    let closed = run.chunks.iter().find_map(|chunk| match chunk {
        Chunk::Closed { block: closed, content } if *closed == block => content.as_tool_call(),
        _ => None,
    });
    assert_eq!((call.complete, Some(call)), (true, closed), "it was shown so");
    assert!(partial.finish.reason.vetoes_calls());
    assert!(given.lock().unwrap().is_empty());
    assert_eq!(transcript_lines(run.error().history().unwrap()), ["user: go"]);
}

/// O5: an error makes only a complete answer final, not an empty or a cut one.
#[tokio::test]
async fn law_o5_error_records_no_empty_or_cut_answer() {
    for answer in [
        Answer::new().finish(FinishReason::Stop),
        Answer::new().text("It is").finish(FinishReason::Interrupted),
    ] {
        let stages = Stages::failing_at("after_round 1");
        let ledger = Ledger::at(&stages);
        let advisor = ToolCallAdvisor::builder().hooks(Watch(stages)).build().unwrap();
        let model = ScriptedModel::new([answer]);
        let run = go(client(&model, advisor).advisor(ledger.clone())).await;
        assert_eq!(transcript_lines(run.error().history().unwrap()), ["user: go"]);
        assert_eq!(ledger.steps(), ["end"]);
    }
}

/// An advisor around the loop sees a failure before the first round as an error in place of a stream.
#[tokio::test]
async fn failure_before_first_round_is_an_error_of_the_call() {
    let refused = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&refused);
    let around = move |request: ChatRequest, next: AdvisorChain| {
        let count = Arc::clone(&count);
        async move {
            next.next_stream(request).await.inspect_err(|_| {
                count.fetch_add(1, Ordering::Relaxed);
            })
        }
    };
    for (stage, errors) in [("loop_start", 1), ("before_round 1", 2)] {
        let hooks = Watch(Stages::failing_at(stage));
        let advisor = ToolCallAdvisor::builder().hooks(hooks).build().unwrap();
        let model = ScriptedModel::new([]);
        let run =
            go(client(&model, advisor).advisor_in(Phase::Turn, from_fn("around", around.clone()))).await;
        assert_eq!(run.error().kind(), ErrorKind::Advisor, "{stage}");
        assert_eq!(refused.load(Ordering::Relaxed), errors, "{stage}");
    }
}

/// An error may carry an earlier answer of the turn, whose calls have their results: they get no others.
#[tokio::test]
async fn law_t1_later_error_with_an_answered_answer_adds_no_results() {
    let model = ScriptedModel::new([Answer::from_calls([("c1", "look", "{}"), ("c2", "look", "{}")])]);
    let first: Arc<Mutex<Option<ChatResponse>>> = Arc::default();
    let fails_later = from_fn("fails-later", move |request: ChatRequest, next: AdvisorChain| {
        let first = Arc::clone(&first);
        async move {
            if let Some(answer) = first.lock().unwrap().clone() {
                return Err(Error::new(ErrorKind::Connection, "reset").or_partial(answer));
            }
            let answer = next.next_stream(request).await?;
            Ok(answer.on_completed(move |response| async move {
                *first.lock().unwrap() = Some(response.clone());
                Ok(response)
            }))
        }
    });
    let ledger = Ledger::default();
    let client = client(&model, ToolCallAdvisor::new()).advisor_in(Phase::Turn, ledger.clone());
    let run = go(client.advisor_in(Phase::Round, fails_later).tool(tool("look", "sunny"))).await;
    let history = run.error().history().unwrap();
    assert_valid(history);
    let told = ["user: go", "call c1 look {}", "call c2 look {}", "result c1: sunny", "result c2: sunny"];
    assert_eq!(transcript_lines(history), told);
    assert_eq!(transcript_lines(&ledger.transcript()), told);
    assert_eq!(ledger.steps().iter().filter(|step| **step == "results").count(), 1, "{:?}", ledger.steps());
}
