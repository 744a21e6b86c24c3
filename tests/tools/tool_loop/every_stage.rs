//! One turn with a tool round, at each place where something outside the loop's own code runs: in order,
//! failing there, and dropped there.

use advisor_chain::tools::LoopEnd;
use advisor_tests::prelude::*;

use crate::tool_loop::support::*;

/// Every stage of the turn, at its documented time (law T4). `saw` marks the output that the reader has
/// received by then.
const STAGES: [&str; 22] = [
    "loop_start", "before_round 1", "before 1", "open 1", "text 1", "arguments 1", "after 1",
    "after_round 1", "record answer 1", "tool c1", "record results 1", "next_messages 1", "before_round 2",
    "before 2", "open 2", "text 2", "after 2", "after_round 2", "record end 2", "finalize", "outer after 1",
    "saw the end",
];

/// Returns the stages in which a turn can wait: all that are neither synchronous nor outside the chain.
fn stages_that_wait() -> impl Iterator<Item = &'static str> {
    STAGES.into_iter().filter(|stage| !["finalize", "saw the end"].contains(stage))
}

/// Stages whose failure is an error of the turn: a failing tool is a result.
fn stages_that_fail() -> impl Iterator<Item = &'static str> {
    stages_that_wait().filter(|stage| *stage != "tool c1")
}

#[tokio::test]
async fn law_t4_every_hook_runs_at_its_documented_time() {
    let stages = Stages::default();
    let staging = staged(&stages);
    let run = read(staging.turn).await;
    stages.journal.record("saw the end");
    assert_eq!(stages.journal.labels(), STAGES);
    assert_eq!(stages.ends(), [LoopEnd::Finished(FinishReason::Stop)]);
    let outcome = stages.outcomes().remove(0);
    assert_eq!((outcome.rounds, outcome.calls), (2, 1));
    assert_eq!(&outcome.transcript, &run.response().transcript);
    assert_eq!(staging.ledger.transcript(), outcome.transcript, "recorded is what the turn says");
    assert_eq!(staging.ledger.steps(), ["answer", "results", "end"]);
}

/// O3, O5, T4: after any failure, no tool starts and no request is sent. The error is delivered, the recorded
/// transcript stays valid, and `finalize` runs once.
#[tokio::test]
async fn law_t4_any_failure_finalizes_once_and_stops() {
    for stage in stages_that_fail() {
        let stages = Stages::failing_at(stage);
        let staging = staged(&stages);
        let run = read(staging.turn).await;
        let error = run.error();
        assert_eq!(error.kind(), ErrorKind::Advisor, "{stage}");
        let ended = if stage == "outer after 1" {
            LoopEnd::Finished(FinishReason::Stop) // the loop was done by then
        } else {
            LoopEnd::Failed(ErrorKind::Advisor)
        };
        assert_eq!(stages.ends(), [ended], "{stage}");
        let labels = stages.journal.labels();
        let failed_at = labels.iter().position(|label| label == stage).unwrap();
        for later in &labels[failed_at + 1..] {
            let closes = ["record ", "gone ", "finalize", "told of the drop"]
                .iter()
                .any(|closing| later.starts_with(closing));
            assert!(closes, "after `{stage}` failed there was `{later}`:\n{}", stages.journal);
        }
        assert_eq!(labels[..failed_at], STAGES[..failed_at], "{stage}");
        if stage != "outer after 1" {
            let history = error.history().unwrap_or_else(|| panic!("{stage}: no history"));
            assert_eq!(validate_transcript(history), [], "{stage}: {:?}", transcript_lines(history));
            assert_eq!(&stages.outcomes()[0].transcript, history, "{stage}");
            if !stage.starts_with("record") {
                assert_valid(&staging.ledger.transcript());
                assert!(matches!(staging.ledger.end(), Some(TurnEnd::Failed { .. })), "{stage}");
            }
        }
    }
}

/// O5: calls that are final already are answered, once, and the turn's end is recorded as a failure.
#[tokio::test]
async fn law_o5_already_stored_calls_are_answered_not_started() {
    let answered = [
        "user: How is it?",
        "assistant: Let me look.",
        "call c1 look {}",
        "error c1: not started: an error ended the turn",
    ];
    for stage in ["after 1", "after_round 1"] {
        let stages = Stages::failing_at(stage);
        let staging = staged(&stages);
        let run = read(staging.turn).await;
        assert_eq!(transcript_lines(&staging.ledger.transcript()), answered, "{stage}");
        assert_eq!(staging.ledger.steps(), ["answer", "results", "end"], "{stage}");
        assert_eq!(transcript_lines(run.error().history().unwrap()), answered, "{stage}");
        assert!(matches!(staging.ledger.end(), Some(TurnEnd::Failed { .. })), "{stage}");
        assert_eq!(staging.model.calls(), 1, "{stage}");
    }
}

/// K2, T4: dropped at any stage, all work inside stops at once. Then `finalize` runs exactly once, and the
/// recorders learn of the drop last.
#[tokio::test]
async fn law_t4_dropped_at_any_stage_finalize_runs_once() {
    for stage in stages_that_wait() {
        let gate = Gate::new();
        let stages = Stages::waiting_at(stage, &gate);
        let staging = staged(&stages);
        let mut turn = Reader::new(staging.turn);
        turn.until(gate.reached()).await;
        let before = stages.journal.labels();
        assert_eq!(before.last().unwrap(), stage);
        drop(turn);
        gate.release();
        tokio::task::yield_now().await;
        let labels = stages.journal.labels();
        let told: &[&str] = match stage {
            "open 1" | "text 1" | "arguments 1" => &["gone 1", "finalize", "told of the drop"],
            "open 2" | "text 2" => &["gone 2", "finalize", "told of the drop"],
            "outer after 1" => &["told of the drop"], // the loop had ended
            _ => &["finalize", "told of the drop"],
        };
        assert_eq!(labels[before.len()..], *told, "{stage}:\n{}", stages.journal);
        let ended = match stage {
            "outer after 1" => LoopEnd::Finished(FinishReason::Stop),
            _ => LoopEnd::Dropped,
        };
        assert_eq!(stages.ends(), [ended], "{stage}");
    }
}

/// `finalize` receives the content that was final when the turn was dropped, without partial content.
#[tokio::test]
async fn law_t4_a_drop_tells_finalize_what_was_final() {
    for (stage, last) in [
        ("arguments 1", "user: How is it?"),
        ("tool c1", "call c1 look {}"),
        ("next_messages 1", "result c1: sunny"),
        ("text 2", "result c1: sunny"),
    ] {
        let gate = Gate::new();
        let stages = Stages::waiting_at(stage, &gate);
        let mut turn = Reader::new(staged(&stages).turn);
        turn.until(gate.reached()).await;
        drop(turn);
        let outcome = stages.outcomes().remove(0);
        assert_eq!(transcript_lines(&outcome.transcript).last().unwrap(), last, "{stage}");
    }
}

/// O3: the reader learns of the end of round 1 only after all work inside the loop is done. The tool starts
/// only after the round was recorded.
#[tokio::test]
async fn law_o3_round_ends_outside_after_all_inside_is_done() {
    for stage in ["after 1", "after_round 1", "record answer 1"] {
        let gate = Gate::new();
        let stages = Stages::waiting_at(stage, &gate);
        let mut turn = Reader::new(staged(&stages).turn);
        let shown = turn.so_far().await;
        assert!(gate.is_reached());
        assert_eq!(shown, ["1.0 + text", "1.0 \"Let me look.\"", "1.0 -"], "{stage}");
        stages.journal.assert_count("tool*", 0);
        gate.release();
        let shown = turn.so_far().await;
        assert_eq!(shown[0], "round 1 completed", "{stage}");
        stages.journal.assert_happens_before("record answer 1", "tool c1");
    }
    for stage in ["after 2", "after_round 2", "record end 2"] {
        let gate = Gate::new();
        let stages = Stages::waiting_at(stage, &gate);
        let mut turn = Reader::new(staged(&stages).turn);
        let shown = turn.so_far().await;
        assert!(gate.is_reached());
        assert_eq!(shown.last().unwrap(), "2.0 -", "{stage}: O6, the end is recorded before `Completed`");
        gate.release();
        assert_eq!(turn.so_far().await, ["completed 2 Stop"], "{stage}");
    }
}

/// O4: every result of a round is recorded before the next request.
#[tokio::test]
async fn law_o4_results_are_recorded_before_the_next_request() {
    let gate = Gate::new();
    let stages = Stages::waiting_at("record results 1", &gate);
    let staging = staged(&stages);
    let mut turn = Reader::new(staging.turn);
    turn.so_far().await;
    assert!(gate.is_reached());
    assert_eq!(staging.model.calls(), 1);
    stages.journal.assert_count("next_messages*", 0);
    gate.release();
    turn.finish().await;
    assert_eq!(staging.model.calls(), 2);
}
