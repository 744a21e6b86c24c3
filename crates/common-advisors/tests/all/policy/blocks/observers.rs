//! Observers of blocks.

use std::sync::Arc;

use advisor_core::{
    Block, BlockDelta, BlockHead, BlockId, BlockObserver, ChatResponse, Delta, DeltaKind, Error, ErrorKind,
    FinishReason, Media, Opaque,
};
use advisor_testkit::{Answer, Journal, ScriptedModel};
use common_advisors::policy::ObserveBlocks;
use serde_json::json;

use crate::policy::blocks::common::{run, run_in};

struct Log(Journal);

impl BlockObserver for Log {
    fn opened(&mut self, block: BlockId, head: &BlockHead) {
        self.0.record(format!("{block} opened {:?}", head.kind));
    }

    fn delta(&mut self, block: BlockId, delta: &BlockDelta) {
        self.0.record(format!("{block} delta {:?}", delta.kind()));
    }

    fn closed(&mut self, block: BlockId, content: &Block) {
        self.0.record(format!("{block} closed {:?}", content.kind()));
    }

    fn restarted(&mut self, round: u32) {
        self.0.record(format!("{round} restarted"));
    }

    fn completed(&mut self, response: &ChatResponse) {
        self.0.record(format!("{} completed", response.round()));
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.0.record("dropped");
    }
}

fn observer(
    journal: &Journal,
) -> ObserveBlocks<impl Fn(&advisor_core::ChatRequest) -> Log + Send + Sync + 'static> {
    let journal = journal.clone();
    ObserveBlocks::new(move |_| Log(journal.clone()))
}

#[tokio::test]
async fn law_s3_each_kind_has_its_callbacks() {
    let journal = Journal::new();
    let answer = Answer::new()
        .reasoning("hm")
        .text("a")
        .text("b")
        .delta(Delta::media(Media::from_url("image/png", "https://example.org/a.png")))
        .delta(DeltaKind::Opaque(Box::new(Opaque::new("made-up", "thing", json!(1)))).into())
        .call("c1", "look", "{}")
        .finish(FinishReason::ToolCalls);
    run(answer, vec![Arc::new(observer(&journal))]).await;
    let mut expected = Vec::new();
    for (block, kind, deltas) in
        [(0, "Reasoning", 1), (1, "Text", 2), (2, "Media", 1), (3, "Opaque", 1), (4, "ToolCall", 2)]
    {
        expected.push(format!("1.{block} opened {kind}"));
        expected.extend((0..deltas).map(|_| format!("1.{block} delta {kind}")));
        expected.push(format!("1.{block} closed {kind}"));
    }
    expected.extend(["1 completed".to_owned(), "dropped".to_owned()]);
    assert_eq!(journal.labels(), expected);
}

/// The observer of an answer is dropped when the answer fails, too, and learns of void attempts.
#[tokio::test]
async fn observer_is_dropped_after_an_error() {
    let journal = Journal::new();
    let down = || Error::new(ErrorKind::Connection, "the connection broke");
    let failed = run(Answer::new().text("a").error(down()), vec![Arc::new(observer(&journal))]).await;
    assert_eq!(failed.outcome.unwrap_err().kind(), ErrorKind::Connection);
    assert_eq!(journal.labels(), ["1.0 opened Text", "1.0 delta Text", "dropped"]);

    let journal = Journal::new();
    let first = ScriptedModel::new([Answer::new().delta(Delta::text("a")).error(down())]);
    let model = advisor_core::FallbackModel::new(first)
        .with_fallback(ScriptedModel::new([Answer::from_text("b")]))
        .with_restart_after_output();
    let chain = advisor_core::AdvisorChain::builder(model).advisor(observer(&journal)).build().unwrap();
    run_in(chain).await;
    journal.assert_order(&["1.0 opened Text", "1 restarted", "1.0 opened Text", "1 completed", "dropped"]);
}
