//! Somebody's code panics while a turn is polled, and the panic is caught: the turn is over.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use advisor_core::{
    AdvisorChain, ChatRequest, Chunk, Error, ErrorKind, FinishReason, Message, OnDrop, Record, Result,
    Spawner, Step, TurnEnd, TurnRecorder, TurnStream, async_trait, from_fn,
};
use advisor_testkit::{Answer, Journal, ScriptedModel};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};

/// Where an advisor panics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Request,
    Chunk,
    Completion,
}

/// Tells the journal how a turn ended; panics at the answer if it is to.
struct Recorder {
    journal: Journal,
    panics: bool,
}

#[async_trait]
impl TurnRecorder for Recorder {
    async fn record(&self, record: &Record) -> Result<()> {
        if let Step::End(end) = &record.step {
            assert!(!self.panics, "it cannot record");
            self.journal.record(format!("{end:?}"));
        }
        Ok(())
    }

    fn dropped(&self, _round: u32, end: &TurnEnd) -> Option<BoxFuture<'static, ()>> {
        self.journal.record(format!("{end:?}"));
        None
    }
}

/// A turn of thirty words, all of which are here at once, with an advisor that panics.
fn turn(at: Option<At>, recorder: Recorder) -> TurnStream {
    let words = (0..30).fold(Answer::new(), |answer, word| answer.text(format!("{word} ")));
    let words = words.finish(FinishReason::Stop);
    let panicking = from_fn("panicking", move |request: ChatRequest, next: AdvisorChain| async move {
        assert!(at != Some(At::Request), "it does not like the request");
        let stream = next.next_stream(request).await?.inspect_chunks(move |chunk| {
            assert!(at != Some(At::Chunk) || chunk.text() != Some("25 "), "it does not like this one");
        });
        Ok(stream.on_completed(move |response| async move {
            assert!(at != Some(At::Completion), "it does not like the answer");
            Ok(response)
        }))
    });
    let chain = AdvisorChain::builder(ScriptedModel::new([words])).advisor(panicking).build().unwrap();
    let request = ChatRequest::new(Message::user("?"));
    request.turn.add_recorder(Arc::new(recorder));
    chain.stream(request)
}

/// Reads until the turn panics.
fn read(turn: &mut TurnStream) -> String {
    let mut text = String::new();
    let reading = catch_unwind(AssertUnwindSafe(|| {
        while let Some(Some(Ok(chunk))) = turn.next().now_or_never() {
            text.push_str(chunk.text().unwrap_or_default());
        }
    }));
    assert!(reading.is_err(), "it panics, and that is not hidden");
    text
}

fn rest(turn: &mut TurnStream) -> Vec<Result<Chunk, Error>> {
    turn.collect::<Vec<_>>().now_or_never().unwrap()
}

#[test]
fn law_s4_a_turn_in_which_an_advisor_panicked_goes_on_with_an_error_and_nothing_else() {
    for at in [At::Request, At::Chunk, At::Completion] {
        let journal = Journal::new();
        let mut turn = turn(Some(at), Recorder { journal: journal.clone(), panics: false });
        let text = read(&mut turn);
        let [Err(error)] = &rest(&mut turn)[..] else { panic!("{at:?}: more than an error") };
        assert_eq!(error.kind(), ErrorKind::Advisor, "{at:?}");
        assert_eq!(error.emitted(), at != At::Request, "{at:?}");
        // What was delivered is remembered.
        let end = TurnEnd::Failed { partial: text.as_str().into() };
        assert_eq!(journal.labels(), [format!("{end:?}")], "{at:?}");
    }
}

#[test]
fn a_turn_whose_recorder_panicked_is_handed_over_and_its_answer_is_in_the_error() {
    let journal = Journal::new();
    let mut turn = turn(None, Recorder { journal: journal.clone(), panics: true });
    let text = read(&mut turn);
    let [Err(error)] = &rest(&mut turn)[..] else { panic!("more than an error") };
    assert_eq!(error.kind(), ErrorKind::Advisor);
    assert_eq!(error.partial().unwrap().text(), text);
    assert_eq!(journal.labels(), ["Completed(Stop)"]);
}

#[tokio::test]
async fn a_turn_that_panicked_and_is_dropped_ends_and_does_not_go_on() {
    for mode in [OnDrop::Seal, OnDrop::Rollback, OnDrop::FinishTurn] {
        let journal = Journal::new();
        let mut turn = turn(Some(At::Chunk), Recorder { journal: journal.clone(), panics: false });
        let text = read(&mut turn);
        let handle = turn.handle();
        drop(turn.on_drop(mode).with_spawner(Spawner::tokio(tokio::runtime::Handle::current())));
        handle.settled().await;
        let end = match mode {
            OnDrop::Rollback => TurnEnd::RolledBack,
            _ => TurnEnd::Interrupted { partial: text.as_str().into() },
        };
        assert_eq!(journal.labels(), [format!("{end:?}")]);
    }
}
