//! The shapes of answers that providers send.

use std::sync::{Arc, Mutex};

use advisor_core::{AggregatorSettings, FinishReason};
use advisor_testkit::{Answer, Gate, ScriptedModel};
use common_advisors::policy::{BlockPolicy, PendingBlock, Verdict};
use futures::{FutureExt, StreamExt};

use crate::policy::blocks::common::{chain, request};

/// Some providers never interleave calls. With their setting, a call is judged when the next block begins.
#[tokio::test]
async fn eager_calls_are_judged_when_the_next_begins() {
    let (gate, judged) = (Gate::new(), Arc::new(Mutex::new(Vec::new())));
    let noted = Arc::clone(&judged);
    let policy = BlockPolicy::new(move |pending: PendingBlock| {
        noted.lock().unwrap().push(pending.call().unwrap().id.to_string());
        async { Ok(Verdict::Allow) }
    });
    let answer = Answer::new()
        .call("c1", "weather", "{\"a\":1}")
        .call("c2", "weather", "{\"a\":2}")
        .gate(&gate)
        .call("c3", "time", "{}")
        .finish(FinishReason::ToolCalls)
        .done();
    let settings = AggregatorSettings { eager_calls: true, ..AggregatorSettings::default() };
    let model = ScriptedModel::new([answer]).with_settings(settings);
    let mut stream = chain(model, [Arc::new(policy) as _]).next_stream(request()).await.unwrap();
    while let Some(Some(chunk)) = stream.next().now_or_never() {
        chunk.unwrap();
    }
    assert_eq!(*judged.lock().unwrap(), ["c1"], "c2 may go on");
    gate.release();
    while let Some(chunk) = stream.next().await {
        chunk.unwrap();
    }
    assert_eq!(*judged.lock().unwrap(), ["c1", "c2", "c3"]);
}
