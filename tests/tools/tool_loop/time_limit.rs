//! Law T3, the turn's time: it is bounded while a round opens, while the model answers, while tools run and
//! between all of them. The clock is paused: it moves only when everything waits.

use std::sync::mpsc;

use advisor_tests::prelude::*;
use tokio::runtime::Builder;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, advance};

use crate::tool_loop::support::*;

const SECOND: Duration = Duration::from_secs(1);

fn limits() -> ToolLimits {
    ToolLimits { turn_timeout: Some(5 * SECOND), ..ToolLimits::default() }
}

/// The turn ended for lack of time, as late as it must and no later.
fn assert_out_of_time(run: &Run, begun: Instant) {
    assert_eq!(limit_of(run), Limit::Time(5000));
    assert_eq!(begun.elapsed(), 5 * SECOND);
    assert_valid(&run.response().transcript);
    assert!(run.response().text().ends_with("the time limit of 5000 ms for one turn was reached."));
}

fn one_call() -> Answer {
    Answer::from_calls([("c1", "look", "{}")])
}

/// The only blocking thread of the runtime is taken, so the long arguments of both calls wait for their check.
#[test]
fn law_t3_time_runs_out_while_arguments_are_checked() {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .max_blocking_threads(1)
        .build()
        .unwrap();
    runtime.block_on(async {
        let begun = Instant::now();
        let (release, released) = mpsc::channel::<()>();
        let taken = spawn_blocking(move || released.recv());
        let long = json!({"a": "x".repeat(100_000)}).to_string();
        let calls = ["c1", "c2"].map(|id| (id, "look", long.as_str()));
        let model = ScriptedModel::new([Answer::from_calls(calls)]);
        let client = client(&model, limited(limits())).tool(tool("look", "sunny")).build().unwrap();
        let passing = async {
            loop {
                advance(SECOND).await;
            }
        };
        let run = tokio::select! {
            biased;
            run = read(client.prompt().user("go").stream()) => run,
            () = passing => unreachable!(),
        };
        assert_eq!(limit_of(&run), Limit::Time(5000));
        // Each check alone would end after ten seconds.
        assert!(begun.elapsed() < 10 * SECOND, "{:?}", begun.elapsed());
        for (line, id) in transcript_lines(&run.response().transcript)[3..].iter().zip(["c1", "c2"]) {
            let text = "not started: the time limit of 5000 ms for one turn was reached";
            assert_eq!(*line, format!("error {id}: {text}"));
        }
        release.send(()).unwrap();
        taken.await.unwrap().unwrap();
    });
}

/// Shown content is kept: the blocks are closed, and the text is part of the transcript.
#[tokio::test(start_paused = true)]
async fn law_t3_time_runs_out_while_the_model_answers() {
    for mode in MODES {
        let begun = Instant::now();
        let model = ScriptedModel::new([Answer::new().text("It is ").text("sun").hang()]);
        let advisor = ToolCallAdvisor::builder().limits(limits()).streaming(mode).build().unwrap();
        let ledger = Ledger::default();
        let run = go(client(&model, advisor).advisor(ledger.clone()).tool(tool("look", "sunny"))).await;
        assert_out_of_time(&run, begun);
        let lines = transcript_lines(&run.response().transcript);
        assert_eq!(lines[..2], ["user: go", "assistant: It is sun"], "{mode:?}");
        assert_eq!(ledger.transcript(), run.response().transcript, "{mode:?}");
    }
}

/// A call that was still coming in is answered like every other.
#[tokio::test(start_paused = true)]
async fn law_t3_time_limit_expires_in_middle_of_call() {
    for mode in [ToolCallStreaming::TextOnly, ToolCallStreaming::All] {
        let begun = Instant::now();
        let mut nameless = advisor_chain::messages::ToolCallDelta::start(1, "", "look");
        nameless.call_id = None;
        let model = ScriptedModel::new([Answer::new()
            .text("Let me look.")
            .call("c1", "look", "{}")
            .delta(Delta::tool_call(nameless))
            .hang()]);
        let advisor = ToolCallAdvisor::builder().limits(limits()).streaming(mode).build().unwrap();
        let run = go(client(&model, advisor).tool(tool("look", "sunny"))).await;
        assert_out_of_time(&run, begun);
        let calls: Vec<_> =
            run.response().transcript.iter().flat_map(|message| message.tool_calls().cloned()).collect();
        assert_eq!((calls.len(), calls[0].id.as_str()), (2, "c1"), "its own id stays");
        assert!(calls.iter().all(|call| !call.complete && !call.id.is_empty()), "{calls:?}");
        let lines = transcript_lines(&run.response().transcript);
        let unrun = "not started: the time limit of 5000 ms for one turn was reached";
        assert!(lines[4].ends_with(unrun) && lines[5].ends_with(unrun), "{lines:?}");
    }
}

/// A model that does not even begin to answer is bounded as well.
#[tokio::test(start_paused = true)]
async fn law_t3_time_runs_out_while_a_round_opens() {
    for hangs_in_round in [1, 2] {
        let begun = Instant::now();
        let stuck = from_fn("stuck", move |request: ChatRequest, next: AdvisorChain| async move {
            if request.messages.iter().filter(|message| message.tool_result().is_some()).count() + 1
                == hangs_in_round
            {
                std::future::pending::<()>().await;
            }
            next.next_stream(request).await
        })
        .with_placement(Placement::new(Phase::ModelCall));
        let model = ScriptedModel::new([one_call(), Answer::from_text("never")]);
        let run = go(client(&model, limited(limits())).advisor(stuck).tool(tool("look", "sunny"))).await;
        assert_out_of_time(&run, begun);
        assert_eq!(model.calls(), hangs_in_round - 1);
    }
}

#[tokio::test(start_paused = true)]
async fn law_t3_time_runs_out_while_tools_run() {
    let begun = Instant::now();
    let hanging = FnTool::new(definition("hang"), |_: Value| async {
        std::future::pending::<()>().await;
        Ok("never")
    });
    let model = ScriptedModel::new([Answer::from_calls([("c1", "look", "{}"), ("c2", "hang", "{}")])]);
    let run = go(client(&model, limited(limits())).tool(tool("look", "sunny")).tool(hanging)).await;
    assert_out_of_time(&run, begun);
    assert_eq!(
        transcript_lines(&run.response().transcript)[3..5],
        ["result c1: sunny", "error c2: stopped: the turn's time is over; the outcome is unknown"]
    );
    assert_eq!(model.calls(), 1);
}

/// Spends more time than there is, at one of the turning points.
struct Slow(&'static str);

#[async_trait]
impl LoopHooks for Slow {
    async fn before_round(&self, request: ChatRequest, round: u32) -> Result<ChatRequest> {
        if self.0 == format!("before_round {round}") {
            advance(5 * SECOND).await;
        }
        Ok(request)
    }

    async fn after_round(&self, response: ChatResponse, _round: u32) -> Result<ChatResponse> {
        if self.0 == "after_round" {
            advance(5 * SECOND).await;
        }
        Ok(response)
    }

    async fn next_messages(&self, next: MessageList, _results: &[Message]) -> Result<MessageList> {
        if self.0 == "next_messages" {
            advance(5 * SECOND).await;
        }
        Ok(next)
    }
}

/// After the end of the time, no round begins and no tool starts.
#[tokio::test(start_paused = true)]
async fn law_t3_time_is_over_before_a_round() {
    for (stage, asked, last) in [
        ("before_round 1", 0, "user: go"),
        ("after_round", 1, "error c1: not started: the time limit of 5000 ms for one turn was reached"),
        ("next_messages", 1, "result c1: sunny"),
        ("before_round 2", 1, "result c1: sunny"),
    ] {
        let begun = Instant::now();
        let model = ScriptedModel::new([one_call(), Answer::from_text("never")]);
        let advisor = ToolCallAdvisor::builder().limits(limits()).hooks(Slow(stage)).build().unwrap();
        let run = go(client(&model, advisor).tool(tool("look", "sunny"))).await;
        assert_out_of_time(&run, begun);
        assert_eq!(model.calls(), asked, "{stage}");
        let lines = transcript_lines(&run.response().transcript);
        assert_eq!(lines[lines.len() - 2], last, "{stage}");
    }
}

/// An answer that is ready when the time ends counts as an answer.
#[tokio::test(start_paused = true)]
async fn law_t3_answer_ready_in_time_is_no_limit() {
    let model = ScriptedModel::new([Answer::new()
        .wait(advance(5 * SECOND))
        .text("Done.")
        .finish(FinishReason::Stop)]);
    let response = response_of(client(&model, limited(limits()))).await;
    assert_eq!((response.text().as_str(), &response.finish.reason), ("Done.", &FinishReason::Stop));
}
