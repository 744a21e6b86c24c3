//! Judges that wait for their turn, behind a judge that works.

use std::sync::Arc;

use advisor_core::{Chunk, Error, ErrorKind, FinishReason};
use advisor_testkit::{Answer, Gate, Journal, ScriptedModel};
use common_advisors::policy::{BlockPolicy, OnFailure, PendingBlock, Verdict};
use futures::{FutureExt, StreamExt};

use crate::policy::blocks::common::{chain, end_of_call, read, request, run};

/// An answer whose two calls are complete, and which then goes on with this.
fn two_calls_then(rest: impl FnOnce(Answer) -> Answer) -> Answer {
    rest(
        Answer::new()
            .call("c1", "a", "{}")
            .call("c2", "b", "{}")
            .delta(end_of_call(0))
            .delta(end_of_call(1))
            .text("Meanwhile."),
    )
}

/// A policy with one judge at a time, which waits at the gate and returns this.
fn one_at_a_time(
    journal: &Journal,
    gate: &Gate,
    returns: impl Fn() -> advisor_core::Result<Verdict> + Send + Sync + 'static,
) -> BlockPolicy {
    let (journal, gate, returns) = (journal.clone(), gate.clone(), Arc::new(returns));
    let judge = move |pending: PendingBlock| {
        let (gate, returns) = (gate.clone(), Arc::clone(&returns));
        journal.record(format!("judge {}", pending.call().unwrap().name));
        async move {
            gate.pass().await;
            returns()
        }
    };
    BlockPolicy { concurrency: 1, ..BlockPolicy::new(judge) }
}

#[tokio::test]
async fn law_k2_judges_that_wait_are_not_called_after_a_drop() {
    let (journal, gate) = (Journal::new(), Gate::new());
    let policy = one_at_a_time(&journal, &gate, || Ok(Verdict::Allow));
    let model = ScriptedModel::new([two_calls_then(Answer::hang)]);
    let mut stream = chain(model, [Arc::new(policy) as _]).next_stream(request()).await.unwrap();
    while let Some(Some(chunk)) = stream.next().now_or_never() {
        chunk.unwrap();
    }
    drop(stream);
    gate.release();
    tokio::task::yield_now().await;
    assert_eq!(journal.labels(), ["judge a"]);
}

#[tokio::test]
async fn law_r2_judges_that_wait_are_not_called_after_an_error() {
    let (journal, gate) = (Journal::new(), Gate::new());
    let policy = one_at_a_time(&journal, &gate, || Ok(Verdict::Allow));
    let broken = Error::new(ErrorKind::Connection, "the connection broke");
    let run = run(two_calls_then(|answer| answer.error(broken)), vec![Arc::new(policy)]).await;
    assert_eq!(run.outcome.unwrap_err().kind(), ErrorKind::Connection);
    gate.release();
    tokio::task::yield_now().await;
    assert_eq!(journal.labels(), ["judge a"]);
}

/// A decision that ends the answer comes before any judge of a later block.
#[tokio::test]
async fn law_r2_no_judge_is_called_after_the_last_verdict() {
    type Returns = fn() -> advisor_core::Result<Verdict>;
    let ends: [(OnFailure, Returns); 2] = [
        (OnFailure::Deny, || Ok(Verdict::EndAnswer(FinishReason::Refusal))),
        (OnFailure::Fail, || Err(Error::new(ErrorKind::Connection, "the judge cannot be reached"))),
    ];
    for (on_failure, returns) in ends {
        for is_whole in [true, false] {
            let (journal, gate) = (Journal::new(), Gate::new());
            let policy = BlockPolicy { on_failure, ..one_at_a_time(&journal, &gate, returns) };
            let finished = |answer: Answer| answer.finish(FinishReason::ToolCalls);
            let answer = two_calls_then(if is_whole { finished } else { Answer::hang });
            let request = request();
            let turn = Arc::clone(&request.turn);
            let chain = chain(ScriptedModel::new([answer]), [Arc::new(policy) as _]);
            let mut stream = chain.next_stream(request).await.unwrap();
            let mut chunks = Vec::new();
            while let Some(Some(chunk)) = stream.next().now_or_never() {
                chunks.push(chunk);
            }
            assert!(!chunks.iter().any(|chunk| matches!(chunk, Ok(Chunk::Completed(_)))));
            gate.release();
            let run = read(futures::stream::iter(chunks).chain(stream), &turn).await;
            assert_eq!(run.outcome.is_err(), on_failure == OnFailure::Fail);
            assert_eq!(journal.labels(), ["judge a"]);
        }
    }
}
