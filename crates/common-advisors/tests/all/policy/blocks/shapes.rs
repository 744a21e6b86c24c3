//! The shapes of answers that providers send.

use std::sync::{Arc, Mutex};

use advisor_core::{
    AggregatorSettings, Block, BlockHead, BlockId, BlockKind, BlockObserver, ChatResponse, Delta,
    FinishReason, ToolCallDelta,
};
use advisor_testkit::{Answer, Gate, ScriptedModel};
use common_advisors::policy::{BlockPolicy, ObserveBlocks, PendingBlock, Verdict};
use futures::{FutureExt, StreamExt};

use crate::policy::blocks::common::{chain, denying, judged, opened, request, run, run_in};

#[tokio::test]
async fn text_alone_passes_unjudged() {
    let policy = judged(|_| panic!("a text is not judged"));
    let answer = Answer::new().text("Here").text(" are").text(" islands.").finish(FinishReason::Stop);
    let run = run(answer, vec![Arc::new(policy)]).await;
    assert_eq!(run.blocks(), ["Here are islands."]);
    assert_eq!(run.denials().0, []);
}

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

#[tokio::test]
async fn empty_pieces_open_no_block() {
    let piece = |index, text: &str| Delta::tool_call(ToolCallDelta::arguments(index, text));
    let answer = Answer::new()
        .text("I'll get the weather")
        .text("")
        .delta(Delta::tool_call(ToolCallDelta::start(0, "c1", "weather")))
        .text("")
        .delta(piece(0, "{\"a\":"))
        .text("")
        .delta(piece(0, "1}"))
        .finish(FinishReason::ToolCalls);
    let run = run(answer, vec![Arc::new(denying(&[]))]).await;
    assert_eq!(opened(&run.chunks), [BlockKind::Text, BlockKind::ToolCall]);
    assert_eq!(run.blocks(), ["I'll get the weather", "(weather {\"a\":1})"]);
}

/// What happens to blocks, in order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl BlockObserver for Log {
    fn opened(&mut self, block: BlockId, head: &BlockHead) {
        self.0.lock().unwrap().push(format!("{block} + {:?}", head.kind));
    }

    fn closed(&mut self, block: BlockId, _content: &Block) {
        self.0.lock().unwrap().push(format!("{block} -"));
    }

    fn completed(&mut self, response: &ChatResponse) {
        self.0.lock().unwrap().push(format!("{:?}", response.finish().reason));
    }
}

#[tokio::test]
async fn blocks_open_and_close_in_order() {
    let answer = (0..98).fold(Answer::new(), |answer, _| answer.text("x "));
    let answer = answer.call("c1", "a", "{}").call("c2", "b", "{}").finish(FinishReason::ToolCalls);
    let log = Log::default();
    let of_log = log.clone();
    let observer = ObserveBlocks::new(move |_| of_log.clone());
    let run = run(answer, vec![Arc::new(observer), Arc::new(denying(&[]))]).await;
    assert_eq!(run.response().text().len(), 196);
    assert_eq!(
        *log.0.lock().unwrap(),
        ["1.0 + Text", "1.0 -", "1.1 + ToolCall", "1.1 -", "1.2 + ToolCall", "1.2 -", "ToolCalls"]
    );
}

#[tokio::test]
async fn text_after_a_call_is_a_separate_block() {
    for (names, expected) in [
        (&[][..], ["Before.", "(look {})", "After."]),
        (&["look"], ["Before.", "[The call of `look` was denied.]", "After."]),
    ] {
        let answer = Answer::new()
            .text("Before.")
            .call("c1", "look", "{}")
            .text("After.")
            .finish(FinishReason::ToolCalls);
        let run = run_in(chain(ScriptedModel::new([answer]), [Arc::new(denying(names)) as _])).await;
        assert_eq!(run.blocks(), expected);
    }
}
