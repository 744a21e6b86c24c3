//! Tests of turns whose chunks are always ready: a stop, a side task and the time limit come in between.

use std::pin::Pin;
use std::sync::atomic::AtomicBool;
use std::task::{Context, Poll};

use advisor_core::MessageAggregator;
use advisor_tests::prelude::*;
use futures::future::BoxFuture;
use futures::{Stream, stream};

/// Runs work that never waits.
fn now<T>(work: impl Future<Output = T>) -> T {
    work.now_or_never().expect("it waits for nothing")
}

/// A model whose answer is this number of words, all of which are ready.
struct Words(usize);

#[async_trait]
impl ChatModel for Words {
    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
        let words = (0..self.0).map(|at| Delta::text(format!("{at} ")));
        let deltas = words.chain([Delta::finish(FinishReason::Stop)]).map(Ok);
        let aggregator = MessageAggregator::new(request.round);
        Ok(ChunkStream::from_deltas(aggregator, stream::iter(deltas.collect::<Vec<_>>())))
    }
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

#[tokio::test(start_paused = true)]
async fn law_t3_time_runs_out_although_chunks_are_always_there() {
    let endless = from_fn("endless", |request: ChatRequest, _: AdvisorChain| async move {
        let aggregator = MessageAggregator::new(request.turn.next_round());
        Ok(ChunkStream::from_deltas(aggregator, Endless { begun: false }))
    });
    let limits = ToolLimits { turn_timeout: Some(Duration::from_millis(1)), ..ToolLimits::default() };
    let chain = ChatClient::builder(Words(0))
        .advisor(ToolCallAdvisor::builder().limits(limits).build().unwrap())
        .advisor(endless.with_placement(Placement::new(Phase::Round)))
        .build()
        .unwrap()
        .chain()
        .clone();
    // Far more than what comes in time.
    let out: Vec<_> = chain.stream(ChatRequest::new(Message::user("?"))).take(100_000).collect().await;
    let completed = out.last().unwrap().as_ref().unwrap().completed().expect("it ended");
    assert_eq!(completed.finish.reason, FinishReason::Limit(Limit::Time(1)));
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

/// A turn of ten words, of which some were read.
fn read(chunks: usize) -> (TurnStream, String, Journal) {
    let chain = ChatClient::builder(Words(10)).build().unwrap().chain().clone();
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
