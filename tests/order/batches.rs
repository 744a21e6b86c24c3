//! Tests of chunks that are ready at once: they equal those of polling, and chunks after a stop were not read.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use advisor_core::{
    AdvisorChain, Batches, ChatModel, ChatRequest, ChatResponse, Chunk, ChunkStream, Delta, DeltaKind, Error,
    ErrorKind, FinishReason, Limit, Message, MessageAggregator, OnDrop, Phase, Placement, Record, Result,
    Step, ToolCallDelta, Turn, TurnEnd, TurnId, TurnRecorder, TurnStream, Usage, async_trait, from_fn,
};
use advisor_testkit::Journal;
use futures::future::BoxFuture;
use futures::{FutureExt, Stream, StreamExt};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{Just, Strategy, any};
use proptest::{prop_assert_eq, prop_oneof, proptest};
use tool_call_advisor::{ToolCallAdvisor, ToolCallStreaming, ToolLimits};

/// Runs work that never waits.
fn now<T>(work: impl Future<Output = T>) -> T {
    work.now_or_never().expect("it waits for nothing")
}

/// Deltas that are all ready, `at_once` of which are returned together. `None` is an error.
#[derive(Clone)]
struct Here {
    deltas: VecDeque<Option<Delta>>,
    at_once: usize,
    polls: Arc<AtomicUsize>,
}

impl Stream for Here {
    type Item = Result<Delta>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.polls.fetch_add(1, Ordering::Relaxed);
        let failed = || Error::new(ErrorKind::Connection, "it fails here");
        Poll::Ready(self.deltas.pop_front().map(|delta| delta.ok_or_else(failed)))
    }
}

impl Batches<Delta> for Here {
    fn take_ready(mut self: Pin<&mut Self>, ready: &mut VecDeque<Delta>) {
        assert!(ready.is_empty(), "it is asked when nothing is left");
        let until_it_fails = self.deltas.iter().take_while(|delta| delta.is_some()).count();
        let count = self.at_once.min(until_it_fails);
        ready.extend(self.deltas.drain(..count).flatten());
    }
}

#[async_trait]
impl ChatModel for Here {
    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
        let aggregator = MessageAggregator::with_settings(request.round, request.aggregator_settings());
        Ok(ChunkStream::from_delta_batches(aggregator, self.clone()))
    }
}

fn here(deltas: impl IntoIterator<Item = Delta>, at_once: usize) -> Here {
    Here { deltas: deltas.into_iter().map(Some).collect(), at_once, polls: Arc::default() }
}

fn words(count: usize) -> Vec<Delta> {
    (0..count).map(|at| Delta::text(format!("{at} "))).chain([Delta::finish(FinishReason::Stop)]).collect()
}

/// An advisor that records the passing chunks in the journal.
fn looking(name: &'static str, journal: &Journal) -> impl advisor_core::StreamAdvisor + use<> {
    let journal = journal.clone();
    from_fn(name, move |request: ChatRequest, next: AdvisorChain| {
        let journal = journal.clone();
        async move {
            Ok(next.next_stream(request).await?.inspect_chunks(move |chunk| {
                journal.record(format!("{name} {chunk:?}"));
            }))
        }
    })
}

/// Returns the output of a turn, and the chunks that two advisors saw, one inside the loop and one outside.
fn turn(model: Here, mode: ToolCallStreaming) -> (Vec<String>, [Vec<String>; 2]) {
    let journal = Journal::new();
    let chain = AdvisorChain::builder(model)
        .advisor(looking("outside", &journal))
        .advisor(ToolCallAdvisor::builder().streaming(mode).build().unwrap())
        .advisor(looking("inside", &journal))
        .build()
        .unwrap();
    // Ids that are made for calls depend on the turn.
    let request = ChatRequest::new(Message::user("?")).with_turn(Turn::new(TurnId::new("t").unwrap()));
    let turn = chain.stream(request);
    let out = now(turn.map(|item| format!("{item:?}")).collect());
    let seen = |name: &str| journal.labels().into_iter().filter(|label| label.starts_with(name)).collect();
    (out, [seen("inside"), seen("outside")])
}

fn delta() -> impl Strategy<Value = Delta> {
    prop_oneof![
        6 => any::<u8>().prop_map(|text| Delta::text(format!("{text} "))),
        3 => any::<u8>().prop_map(|text| Delta::reasoning(format!("{text} "))),
        1 => any::<u8>().prop_map(|text| Delta::from(DeltaKind::Refusal(format!("{text} ").into()))),
        1 => Just(Delta::text("")),
        1 => any::<u8>().prop_map(|tokens| Delta::usage(Usage::new(u64::from(tokens), 1))),
        1 => Just(Delta::tool_call(ToolCallDelta::start(0, "c", "f"))),
        2 => any::<u8>().prop_map(|text| Delta::tool_call(ToolCallDelta::arguments(0, format!("{text}")))),
    ]
}

proptest! {
    #[test]
    fn law_s2_batches_give_the_same_chunks_as_polling(
        deltas in vec(delta(), 0..40), at_once in 1_usize..12, fails in option::weighted(0.2, 0_usize..40)
    ) {
        let deltas: Vec<_> = deltas.into_iter().chain([Delta::finish(FinishReason::Stop)]).collect();
        for mode in [ToolCallStreaming::TextOnly, ToolCallStreaming::FinalAnswerOnly, ToolCallStreaming::All] {
            let answer = |at_once| {
                let mut here = here(deltas.clone(), at_once);
                if let Some(at) = fails.filter(|at| *at < deltas.len()) {
                    here.deltas[at] = None;
                }
                turn(here, mode)
            };
            prop_assert_eq!(answer(at_once), answer(0));
        }
    }
}

#[test]
fn law_s2_ready_chunks_pass_advisors_and_loop_at_once() {
    let model = here(words(100), 100);
    let polls = Arc::clone(&model.polls);
    let (out, _) = turn(model, ToolCallStreaming::All);
    // A block that opens and closes, and the end.
    assert_eq!(out.len(), 100 + 3);
    let polls = polls.load(Ordering::Relaxed);
    assert!(polls < 10, "{polls} polls of the model for 100 words that were there");
}

#[test]
fn error_reports_whether_output_came_before_it() {
    for at in 0..8 {
        let mut model = here(words(10), 3);
        model.deltas[at] = None;
        let mut chunks = ChunkStream::from_delta_batches(MessageAggregator::new(0), model);
        let mut taken = VecDeque::new();
        let error = loop {
            Pin::new(&mut chunks).take_ready(&mut taken);
            if let Err(error) = now(chunks.next()).unwrap() {
                break error;
            }
        };
        assert_eq!(error.emitted(), at > 0);
    }
}

/// A source that gives its whole answer at once, which it must not.
struct Whole(VecDeque<Chunk>);

impl Stream for Whole {
    type Item = Result<Chunk>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.pop_front().map(Ok))
    }
}

impl Batches<Chunk> for Whole {
    fn take_ready(mut self: Pin<&mut Self>, ready: &mut VecDeque<Chunk>) {
        ready.append(&mut self.0);
    }
}

#[test]
fn law_s1_o3_source_ending_at_once_overtakes_no_work() {
    let journal = Journal::new();
    let told = journal.clone();
    let whole = from_fn("whole", move |request: ChatRequest, _: AdvisorChain| {
        let (worked, looked) = (told.clone(), told.clone());
        async move {
            let round = request.turn.next_round();
            let answer = ChatResponse::new(round, Message::assistant("Hi"), FinishReason::Stop);
            let mut chunks: VecDeque<_> =
                answer.blocks().flat_map(|(block, content)| Chunk::from_block(block, content)).collect();
            chunks.extend([Chunk::Completed(answer.clone()), Chunk::Completed(answer)]);
            let work = |answer| async move {
                worked.record("work");
                Ok(answer)
            };
            Ok(ChunkStream::from_batches(Whole(chunks)).on_completed(work).inspect_chunks(move |chunk| {
                if let Chunk::Completed(_) = chunk {
                    looked.record("looked at the end");
                }
            }))
        }
    });
    let chain = AdvisorChain::builder(here([], 0)).advisor(whole).build().unwrap();
    let items: Vec<_> = now(chain.stream(ChatRequest::new(Message::user("?"))).collect());
    let texts: Vec<_> = items.iter().map(|item| item.as_ref().unwrap().text()).collect();
    assert_eq!(texts, [None, Some("Hi"), None, None]);
    assert!(items.last().unwrap().as_ref().unwrap().completed().is_some());
    assert_eq!(journal.labels(), ["work", "looked at the end"]);
}

#[test]
fn panicking_inspector_lets_no_uninspected_chunk_out() {
    let panicking = from_fn("panicking", |request: ChatRequest, next: AdvisorChain| async move {
        Ok(next.next_stream(request).await?.inspect_chunks(|chunk| {
            assert!(chunk.text() != Some("5 "), "it does not like this one");
        }))
    });
    let chain = AdvisorChain::builder(here(words(10), 10)).advisor(panicking).build().unwrap();
    let mut turn = chain.stream(ChatRequest::new(Message::user("?")));
    let panicked =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| while now(turn.next()).is_some() {}));
    panicked.unwrap_err();
    assert!(!matches!(turn.next().now_or_never(), Some(Some(Ok(Chunk::Delta { .. })))));
}

/// An answer without an end, which is always ready.
struct Endless {
    begun: bool,
}

impl Stream for Endless {
    type Item = Result<Delta>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if !self.begun {
            self.begun = true;
            // The turn's time passes before the first one: the clock stands elsewhere as soon as this is polled.
            let _ = std::pin::pin!(tokio::time::advance(Duration::from_millis(5))).poll(cx);
        }
        Poll::Ready(Some(Ok(Delta::text("and so on "))))
    }
}

impl Batches<Delta> for Endless {
    fn take_ready(self: Pin<&mut Self>, ready: &mut VecDeque<Delta>) {
        if self.begun {
            ready.extend((0..8).map(|_| Delta::text("and so on ")));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn law_t3_time_runs_out_although_chunks_are_always_there() {
    let endless = from_fn("endless", |request: ChatRequest, _: AdvisorChain| async move {
        let aggregator = MessageAggregator::new(request.turn.next_round());
        Ok(ChunkStream::from_delta_batches(aggregator, Endless { begun: false }))
    });
    let limits = ToolLimits::default().with_turn_timeout(Duration::from_millis(1));
    let chain = AdvisorChain::builder(here([], 0))
        .advisor(ToolCallAdvisor::builder().limits(limits).build().unwrap())
        .advisor(endless.with_placement(Placement::new(Phase::Round)))
        .build()
        .unwrap();
    // Far more than what comes in time.
    let out: Vec<_> = chain.stream(ChatRequest::new(Message::user("?"))).take(100_000).collect().await;
    let completed = out.last().unwrap().as_ref().unwrap().completed().expect("it ended");
    assert_eq!(completed.finish().reason, FinishReason::Limit(Limit::Time(1)));
}

/// Records the end of a turn in the journal.
struct Recorder(Journal);

#[async_trait]
impl TurnRecorder for Recorder {
    async fn record(&self, record: &Record) -> Result<()> {
        if let Step::End(end) = &record.step {
            self.0.record(format!("{end:?}"));
        }
        Ok(())
    }

    fn dropped(&self, _round: u32, end: &TurnEnd) -> Option<BoxFuture<'static, ()>> {
        self.0.record(format!("{end:?}"));
        None
    }
}

/// A turn of ten words that are here at once, of which some were read.
fn read(chunks: usize) -> (TurnStream, String, Journal) {
    let chain = AdvisorChain::builder(here(words(10), 10)).build().unwrap();
    let request = ChatRequest::new(Message::user("?"));
    let journal = Journal::new();
    request.turn.add_recorder(Arc::new(Recorder(journal.clone())));
    let mut turn = chain.stream(request);
    let read: Vec<_> = now(turn.by_ref().take(chunks).collect());
    let texts: Vec<_> = read.into_iter().map(Result::unwrap).collect();
    (turn, texts.iter().filter_map(Chunk::text).collect(), journal)
}

#[test]
fn law_k2_dropped_turn_remembers_only_chunks_that_were_read() {
    for chunks in 1..=11 {
        let (turn, text, journal) = read(chunks);
        drop(turn);
        let end = TurnEnd::Interrupted { partial: text.as_str().into() };
        assert_eq!(journal.labels(), [format!("{end:?}")]);
    }
}

#[test]
fn law_k2_cancelled_turn_emits_no_ready_chunk() {
    for chunks in 1..=11 {
        let (mut turn, text, journal) = read(chunks);
        turn.handle().cancel(OnDrop::KeepPartial);
        let rest: Vec<_> = now(turn.by_ref().collect());
        assert_eq!(rest.len(), 1);
        assert_eq!(rest[0].as_ref().unwrap_err().kind(), ErrorKind::Cancelled);
        let end = TurnEnd::Interrupted { partial: text.as_str().into() };
        assert_eq!(journal.labels(), [format!("{end:?}")]);
    }
}

#[test]
fn side_task_ends_turn_while_chunks_are_ready() {
    let lost = || Error::new(ErrorKind::Store, "the lease is lost");
    for begins_early in [true, false] {
        let (mut turn, _, _) = read(2);
        let ends = Arc::new(AtomicBool::new(false));
        let waiting = Arc::clone(&ends);
        let beside = std::future::poll_fn(move |cx| {
            cx.waker().wake_by_ref();
            if waiting.load(Ordering::Relaxed) { Poll::Ready(lost()) } else { Poll::Pending }
        });
        turn.turn().attach(beside);
        if begins_early {
            assert!(now(turn.next()).unwrap().is_ok(), "it goes on beside");
        }
        ends.store(true, Ordering::Relaxed);
        let rest: Vec<_> = now(turn.by_ref().collect());
        assert_eq!(rest.len(), 1);
        assert_eq!(rest[0].as_ref().unwrap_err().kind(), ErrorKind::Store);
    }
}
