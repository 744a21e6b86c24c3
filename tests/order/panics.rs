//! Tests of panics in user code. A panic while a turn is polled is caught, and ends the turn. A panic during a
//! drop lets the turn end and settle.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use advisor_core::{FallbackModel, OnDrop, Spawner};
use advisor_tests::prelude::*;
use futures::future::BoxFuture;

/// The place where an advisor panics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Request,
    Chunk,
    Completion,
}

/// Records the end of a turn in the journal.
struct Recorder {
    journal: Journal,
    /// Whether it panics at the end.
    panics: bool,
    /// Whether it never ends to record, and panics when it is dropped.
    hangs: bool,
}

impl Recorder {
    fn new(journal: &Journal) -> Self {
        Self { journal: journal.clone(), panics: false, hangs: false }
    }
}

#[async_trait]
impl TurnRecorder for Recorder {
    async fn record(&self, record: &Record) -> Result<()> {
        if self.hangs {
            let _held = PanicsInDrop;
            std::future::pending::<()>().await;
        }
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

/// A turn of thirty words with an advisor that panics. The first twelve words are ready before the others.
fn turn(at: Option<At>, recorder: Recorder) -> TurnStream {
    let words = |answer: Answer, words: Range<u32>| {
        words.fold(answer, |answer, word| answer.text(format!("{word} ")))
    };
    let first = words(Answer::new(), 0..12).wait(std::future::ready(()));
    let words = words(first, 12..30).finish(FinishReason::Stop);
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
    let chain =
        ChatClient::builder(ScriptedModel::new([words])).advisor(panicking).build().unwrap().chain().clone();
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
fn law_s4_panicked_advisor_yields_only_one_error() {
    for at in [At::Request, At::Chunk, At::Completion] {
        let journal = Journal::new();
        let mut turn = turn(Some(at), Recorder::new(&journal));
        let text = read(&mut turn);
        let [Err(error)] = &rest(&mut turn)[..] else { panic!("{at:?}: more than an error") };
        assert_eq!(error.kind(), ErrorKind::Advisor, "{at:?}");
        assert_eq!(error.emitted(), at != At::Request, "{at:?}");
        // Delivered text is stored.
        let end = TurnEnd::Failed { partial: text.as_str().into() };
        assert_eq!(journal.labels(), [format!("{end:?}")], "{at:?}");
    }
}

#[test]
fn recorder_panic_error_holds_answer_of_the_turn() {
    let journal = Journal::new();
    let mut turn = turn(None, Recorder { panics: true, ..Recorder::new(&journal) });
    let text = read(&mut turn);
    let [Err(error)] = &rest(&mut turn)[..] else { panic!("more than an error") };
    assert_eq!(error.kind(), ErrorKind::Advisor);
    assert_eq!(error.partial().unwrap().text(), text);
    assert_eq!(journal.labels(), ["Completed(Stop)"]);
}

#[tokio::test]
async fn dropped_panicked_turn_ends_and_does_not_continue() {
    for mode in [OnDrop::KeepPartial, OnDrop::Rollback, OnDrop::FinishTurn] {
        let journal = Journal::new();
        let mut turn = turn(Some(At::Chunk), Recorder::new(&journal));
        let text = read(&mut turn);
        let handle = turn.handle();
        drop(turn.with_on_drop(mode).with_spawner(Spawner::tokio(tokio::runtime::Handle::current())));
        handle.settled().await;
        let end = match mode {
            OnDrop::Rollback => TurnEnd::RolledBack,
            _ => TurnEnd::Interrupted { partial: text.as_str().into() },
        };
        assert_eq!(journal.labels(), [format!("{end:?}")]);
    }
}

/// Panics when it is dropped.
struct PanicsInDrop;

impl Drop for PanicsInDrop {
    fn drop(&mut self) {
        panic!("it does not like to be dropped");
    }
}

/// The owner of a value that panics when it is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holder {
    /// The future of an advisor that waits for the model to be asked.
    Opening,
    /// The work of an advisor for the end of the answer.
    Work,
    Inspecting,
    Editing,
    /// A side task of the turn.
    Companion,
    /// The future of a recorder that has not recorded yet.
    Recording,
}

const HOLDERS: [Holder; 6] = [
    Holder::Opening,
    Holder::Work,
    Holder::Inspecting,
    Holder::Editing,
    Holder::Companion,
    Holder::Recording,
];

/// A turn that shows "Hello", and whose answer then waits for ever or fails. `holder` owns the value that
/// panics in its drop.
fn held(holder: Holder, journal: &Journal, fails: bool) -> TurnStream {
    let holding = from_fn("holding", move |request: ChatRequest, next: AdvisorChain| async move {
        let held = PanicsInDrop;
        if holder == Holder::Opening {
            std::future::pending::<()>().await;
        }
        if holder == Holder::Companion {
            request.turn.attach(async move {
                let _held = held;
                std::future::pending().await
            });
            return next.next_stream(request).await;
        }
        let stream = match next.next_stream(request).await {
            Ok(stream) => stream,
            Err(error) => {
                std::mem::forget(held);
                return Err(error);
            }
        };
        Ok(match holder {
            Holder::Work => stream.on_completed(|response| async move {
                drop(held);
                Ok(response)
            }),
            Holder::Inspecting => stream.inspect_chunks(move |_| {
                let _ = &held;
            }),
            Holder::Editing => stream.edit_with(move |chunk: Chunk, out: &mut EditedChunks<'_>| {
                let _ = &held;
                out.push(chunk);
            }),
            _ => {
                std::mem::forget(held);
                stream
            }
        })
    });
    let answer = Answer::new().text("Hello");
    let answer = match (holder, fails) {
        (Holder::Recording, _) => answer.finish(FinishReason::Stop),
        (_, true) => answer.error(Error::new(ErrorKind::Connection, "it broke")),
        (_, false) => answer.wait(std::future::pending()),
    };
    let chain =
        ChatClient::builder(ScriptedModel::new([answer])).advisor(holding).build().unwrap().chain().clone();
    let request = ChatRequest::new(Message::user("?"));
    let hangs = holder == Holder::Recording;
    request.turn.add_recorder(Arc::new(Recorder { hangs, ..Recorder::new(journal) }));
    chain.stream(request)
}

fn read_so_far(turn: &mut TurnStream) -> Vec<Result<Chunk, Error>> {
    let mut items = Vec::new();
    while let Some(Some(item)) = turn.next().now_or_never() {
        items.push(item);
    }
    items
}

#[test]
fn dropped_turn_settles_despite_any_drop_panic() {
    for holder in HOLDERS {
        for reader_panics in [false, true] {
            let journal = Journal::new();
            let mut turn = held(holder, &journal, false);
            read_so_far(&mut turn);
            let handle = turn.handle();
            let reading = catch_unwind(AssertUnwindSafe(move || {
                let _turn = turn;
                assert!(!reader_panics, "the reader panics");
            }));
            assert_eq!(reading.is_err(), reader_panics, "{holder:?}");
            assert!(handle.settled().now_or_never().is_some(), "{holder:?}");
            assert_eq!(journal.labels().len(), 1, "{holder:?}: {:?}", journal.labels());
        }
    }
}

#[test]
fn cancelled_turn_reports_and_settles_despite_drop_panic() {
    // A recording that has begun is waited for.
    for holder in HOLDERS.into_iter().filter(|holder| *holder != Holder::Recording) {
        let journal = Journal::new();
        let mut turn = held(holder, &journal, false);
        read_so_far(&mut turn);
        let handle = turn.handle();
        handle.cancel(OnDrop::KeepPartial);
        let [Err(error)] = &read_so_far(&mut turn)[..] else { panic!("{holder:?}: more than an error") };
        assert_eq!(error.kind(), ErrorKind::Cancelled, "{holder:?}");
        assert!(handle.settled().now_or_never().is_some(), "{holder:?}");
        assert_eq!(journal.labels().len(), 1, "{holder:?}: {:?}", journal.labels());
    }
}

#[test]
fn failed_turn_settles_despite_any_drop_panic() {
    for holder in HOLDERS.into_iter().filter(|holder| !matches!(holder, Holder::Recording | Holder::Opening))
    {
        let journal = Journal::new();
        let mut turn = held(holder, &journal, true);
        let handle = turn.handle();
        // A panic in a poll comes out of it, and the next poll ends the turn.
        let mut polls = (0..3).map(|_| catch_unwind(AssertUnwindSafe(|| read_so_far(&mut turn))));
        let last = polls.find_map(|read| read.ok()?.pop());
        assert!(last.unwrap().is_err(), "{holder:?}");
        assert!(handle.settled().now_or_never().is_some(), "{holder:?}");
        assert_eq!(journal.labels().len(), 1, "{holder:?}: {:?}", journal.labels());
    }
}

/// Panics when it learns of a drop.
struct PanicsWhenTold;

#[async_trait]
impl TurnRecorder for PanicsWhenTold {
    async fn record(&self, _record: &Record) -> Result<()> {
        Ok(())
    }

    fn dropped(&self, _round: u32, _end: &TurnEnd) -> Option<BoxFuture<'static, ()>> {
        panic!("it does not want to know");
    }
}

#[test]
fn recorder_panic_on_drop_does_not_silence_others() {
    let journal = Journal::new();
    let mut turn = turn(None, Recorder::new(&journal));
    turn.turn().add_recorder(Arc::new(PanicsWhenTold));
    turn.turn().add_recorder(Arc::new(Recorder::new(&journal)));
    assert!(turn.next().now_or_never().is_some());
    let handle = turn.handle();
    drop(turn);
    assert!(handle.settled().now_or_never().is_some());
    assert_eq!(journal.labels(), vec!["Interrupted { partial: \"\" }"; 2]);
}

#[test]
fn shown_output_survives_spawner_panic() {
    for mode in [OnDrop::FinishTurn, OnDrop::KeepPartial] {
        for (cancelled, reader_panics) in [(false, false), (false, true), (true, false)] {
            let journal = Journal::new();
            // As `tokio::spawn` does where there is no runtime.
            let spawner = Spawner::new(|_| panic!("there is no runtime"));
            let turn = turn(None, Recorder::new(&journal));
            let mut turn = turn.with_on_drop(mode).with_spawner(spawner);
            turn.turn().add_recorder(Arc::new(LeavesWork));
            let shown: Vec<_> = (0..5).filter_map(|_| turn.next().now_or_never()).collect();
            let text: String = shown
                .into_iter()
                .flatten()
                .filter_map(|item| Some(item.unwrap().text()?.to_owned()))
                .collect();
            let handle = turn.handle();
            if cancelled {
                handle.cancel(mode);
                let [Err(error)] = &rest(&mut turn)[..] else { panic!("{mode:?}: more than an error") };
                assert_eq!(error.kind(), ErrorKind::Cancelled, "{mode:?}");
            }
            let leaving = catch_unwind(AssertUnwindSafe(move || {
                let _turn = turn;
                assert!(!reader_panics, "the reader panics");
            }));
            assert_eq!(leaving.is_err(), reader_panics, "{mode:?}");
            assert!(handle.settled().now_or_never().is_some(), "{mode:?} {cancelled}");
            let end = TurnEnd::Interrupted { partial: text.as_str().into() };
            assert_eq!(journal.labels(), [format!("{end:?}")], "{mode:?} {cancelled}");
        }
    }
}

/// Leaves work for the spawner when it learns of a drop.
struct LeavesWork;

#[async_trait]
impl TurnRecorder for LeavesWork {
    async fn record(&self, _record: &Record) -> Result<()> {
        Ok(())
    }

    fn dropped(&self, _round: u32, _end: &TurnEnd) -> Option<BoxFuture<'static, ()>> {
        Some(futures::future::ready(()).boxed())
    }
}

/// An answer whose source panics when it is dropped.
fn dropped_with_a_bang(answer: Answer) -> AdvisorChain {
    let bang = from_fn("bang", |request: ChatRequest, next: AdvisorChain| async move {
        let bomb = PanicsInDrop;
        Ok(next.next_stream(request).await?.inspect_chunks(move |_| {
            let _held = &bomb;
        }))
    });
    ChatClient::builder(ScriptedModel::new([answer])).advisor(bang).build().unwrap().chain().clone()
}

struct Banging(AdvisorChain);

#[async_trait]
impl ChatModel for Banging {
    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
        self.0.next_stream(request).await
    }
}

#[tokio::test]
async fn source_drop_panic_ends_or_retries_the_answer() {
    let ended = dropped_with_a_bang(Answer::new().text("a").text("stop").hang());
    let ended = ended.next_stream(ChatRequest::new(Message::user("?"))).await.unwrap();
    let ended = ended.end_when(|chunk| (chunk.text()? == "stop").then_some(FinishReason::Stop));
    let chunks: Vec<_> = ended.collect().await;
    assert_eq!(chunks.last().unwrap().as_ref().unwrap().completed().unwrap().text(), "a");

    let broken = Answer::new().text("a").error(Error::new(ErrorKind::Connection, "reset"));
    let model = FallbackModel::new(Banging(dropped_with_a_bang(broken)))
        .with_fallback(ScriptedModel::new([Answer::from_text("b")]))
        .with_restart_after_output();
    let chain = ChatClient::builder(model).build().unwrap().chain().clone();
    assert_eq!(chain.next_call(ChatRequest::new(Message::user("?"))).await.unwrap().text(), "b");
}
