//! Judges that give no verdict.

use std::sync::Arc;
use std::time::Duration;

use advisor_core::{Error, ErrorKind, FinishReason, Result};
use advisor_testkit::{Answer, Gate, ScriptedModel};
use common_advisors::policy::{BlockPolicy, DenialCause, OnFailure, PendingBlock, Verdict};
use futures::{FutureExt, StreamExt};

use crate::policy::blocks::common::{Run, chain, read, request, run};

#[derive(Debug, Clone, Copy)]
enum Judge {
    Fails,
    NeverAnswers,
    Panics,
    PanicsAtOnce,
    PanicsWhenDropped,
}

/// Panics when it is dropped.
struct Loud;

impl Drop for Loud {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("dropped");
        }
    }
}

fn policy(judge: Judge) -> BlockPolicy {
    let policy = BlockPolicy::new(move |pending: PendingBlock| {
        assert!(
            !matches!(judge, Judge::PanicsAtOnce) || pending.call().unwrap().name != "bad",
            "the judge panics"
        );
        async move {
            if pending.call().unwrap().name != "bad" {
                return Ok(Verdict::Allow);
            }
            match judge {
                Judge::Fails => Err(Error::new(ErrorKind::Connection, "the judge cannot be reached")),
                Judge::NeverAnswers => std::future::pending::<Result<Verdict>>().await,
                Judge::Panics | Judge::PanicsAtOnce => panic!("the judge panics"),
                Judge::PanicsWhenDropped => {
                    let _loud = Loud;
                    std::future::pending::<Result<Verdict>>().await
                }
            }
        }
    });
    BlockPolicy { timeout: Some(Duration::from_secs(5)), ..policy }
}

fn answer() -> Answer {
    Answer::new()
        .text("Hm.")
        .call("c1", "good", "{}")
        .call("c2", "bad", "{}")
        .call("c3", "good", "{}")
        .finish(FinishReason::ToolCalls)
}

async fn judged(policy: BlockPolicy) -> Run {
    run(answer(), vec![Arc::new(policy)]).await
}

const JUDGES: [(Judge, ErrorKind); 5] = [
    (Judge::Fails, ErrorKind::Connection),
    (Judge::NeverAnswers, ErrorKind::Timeout),
    (Judge::Panics, ErrorKind::Advisor),
    (Judge::PanicsAtOnce, ErrorKind::Advisor),
    (Judge::PanicsWhenDropped, ErrorKind::Timeout),
];

/// Without a verdict, a call is denied: fail-secure. Other calls have their own verdicts.
#[tokio::test(start_paused = true)]
async fn law_t2_judge_without_verdict_denies() {
    for (judge, kind) in JUDGES {
        let run = judged(policy(judge)).await;
        let denied = "[The call of `bad` was denied, since it could not be checked.]";
        assert_eq!(run.blocks(), ["Hm.", "(good {})", denied, "(good {})"], "{judge:?}");
        assert_eq!(run.denials().0[0].cause, DenialCause::NoVerdict(kind), "{judge:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn policy_may_fail_open() {
    for (judge, _) in JUDGES {
        let run = judged(BlockPolicy { on_failure: OnFailure::Allow, ..policy(judge) }).await;
        assert_eq!(run.blocks(), ["Hm.", "(good {})", "(bad {})", "(good {})"], "{judge:?}");
        assert_eq!(run.denials().0, []);
    }
}

/// With `Fail`, the error ends the stream; its partial answer is what was shown.
#[tokio::test(start_paused = true)]
async fn law_s4_failed_judge_may_fail_the_answer() {
    for (judge, kind) in JUDGES {
        let run = judged(BlockPolicy { on_failure: OnFailure::Fail, ..policy(judge) }).await;
        let error = run.outcome.unwrap_err();
        assert_eq!((error.kind(), error.emitted()), (kind, true), "{judge:?}");
        let partial = crate::policy::blocks::common::in_short(error.partial().unwrap());
        assert_eq!(partial, ["Hm.", "(good {})"], "{judge:?}");
    }
}

/// A reader that is away while the time is over does not deny a call: the judge could not work meanwhile.
#[tokio::test(start_paused = true)]
async fn slow_reader_is_not_a_slow_judge() {
    let gate = Gate::new();
    let passes = gate.clone();
    let policy = BlockPolicy::new(move |_| {
        let gate = passes.clone();
        async move {
            gate.pass().await;
            // It needs another poll, as one that waits for a server does.
            tokio::task::yield_now().await;
            Ok(Verdict::Allow)
        }
    });
    let model = ScriptedModel::new([Answer::from_calls([("c1", "look", "{}")])]);
    let policy = BlockPolicy { timeout: Some(Duration::from_secs(5)), ..policy };
    let chain = chain(model, [Arc::new(policy) as _]);
    let request = request();
    let turn = Arc::clone(&request.turn);
    let mut stream = chain.next_stream(request).await.unwrap();
    assert!(stream.next().now_or_never().is_none());
    tokio::time::advance(Duration::from_secs(60)).await;
    gate.release();
    assert_eq!(read(stream, &turn).await.blocks(), ["(look {})"]);
}

#[tokio::test(start_paused = true)]
async fn timeout_is_that_of_the_policy() {
    for timeout in [Duration::from_millis(1), Duration::from_secs(7)] {
        let started = tokio::time::Instant::now();
        judged(BlockPolicy { timeout: Some(timeout), ..policy(Judge::NeverAnswers) }).await;
        assert_eq!(started.elapsed(), timeout);
    }
}
