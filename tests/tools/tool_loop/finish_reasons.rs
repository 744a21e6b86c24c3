//! Tests that complete calls run whatever the finish reason says, except for reasons that veto them.

use advisor_tests::prelude::*;

use crate::tool_loop::support::*;

/// A call that was cut off never runs, even where its arguments happen to parse.
#[tokio::test]
async fn law_t2_a_cut_call_never_runs() {
    for (reason, cut) in [
        (FinishReason::Length, "length limit"),
        (FinishReason::ContentFilter, "content filter"),
        (FinishReason::Refusal, "refusal"),
        (FinishReason::Interrupted, "interrupted"),
    ] {
        let model = ScriptedModel::new([Answer::new().call("c1", "look", "{}").finish(reason.clone())]);
        let (look, given) = invoked("look");
        let response = response_of(client(&model, ToolCallAdvisor::new()).tool(look)).await;
        assert!(given.lock().unwrap().is_empty());
        assert_eq!((&response.finish.reason, model.calls()), (&reason, 1));
        let lines = transcript_lines(&response.transcript);
        assert_eq!(lines[2], format!("error c1: not started: the answer was cut off ({cut})"));
        let closing =
            format!("I stopped here: the answer was cut off ({cut}) before its tool calls could run.");
        assert_eq!(lines[3], format!("assistant: {closing}"));
        assert_valid(&response.transcript);
    }
}

/// Complete calls run whatever the finish reason is.
#[tokio::test]
async fn calls_run_whatever_the_finish_reason_says() {
    for reason in [FinishReason::Stop, FinishReason::ToolCalls] {
        let model = ScriptedModel::new([
            Answer::new().call("c1", "look", "{}").finish(reason),
            Answer::from_text("Done."),
        ]);
        let (look, given) = invoked("look");
        let client = client(&model, ToolCallAdvisor::new()).tool(look).build().unwrap();
        assert_eq!(client.prompt().user("go").call().await.unwrap().text(), "Done.");
        assert_eq!(given.lock().unwrap().len(), 1);
    }
    // Without a finish reason, an open call runs only if its arguments parse.
    for (arguments, runs) in [("{}", 1), ("{\"a\":", 0)] {
        let model = ScriptedModel::new([
            Answer::new().call("c1", "look", arguments).done(),
            Answer::from_text("Done."),
        ]);
        let (look, given) = invoked("look");
        let response = response_of(client(&model, ToolCallAdvisor::new()).tool(look)).await;
        assert_eq!(given.lock().unwrap().len(), runs, "{arguments}");
        assert_eq!(response.text(), "Done.");
        assert_valid(&response.transcript);
    }
}

/// A word that nobody knows may have cut the answer: only a call that the wire ended runs. The model reads of the others.
#[tokio::test]
async fn law_t2_under_an_unknown_reason_only_ended_calls_run() {
    let model = ScriptedModel::new([
        Answer::new()
            .call("c1", "look", "{}")
            .delta(Delta::from(DeltaKind::BlockEnd).with_block(0))
            .call("c2", "look", "{}")
            .finish(FinishReason::Other("odd".into())),
        Answer::from_text("Done."),
    ]);
    let (look, given) = invoked("look");
    let response = response_of(client(&model, ToolCallAdvisor::new()).tool(look)).await;
    assert_eq!((given.lock().unwrap().len(), response.text().as_str()), (1, "Done."));
    let lines = transcript_lines(&response.transcript);
    let told = "error c2: not started: the call is incomplete; make it again, by itself";
    assert!(lines.iter().any(|line| line == told), "{lines:?}");
    assert_valid(&response.transcript);
}
