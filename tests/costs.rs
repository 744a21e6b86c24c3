//! Tests of the cost of a chain per chunk, counted and not timed.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

use std::pin::Pin;
use std::task::{Context, Poll};

use advisor_chain::advisors::{Budget, RateLimit, ResponseCache, Retry};
use advisor_chain::stream_policy::{Guard, LetterCase};
use advisor_core::{
    AdvisorChain, ChatClient, ChatModel, ChatRequest, ChatResponse, Chunk, ChunkStream, Delta, FinishReason,
    Message, MessageAggregator, Result, async_trait, from_fn,
};
use futures::{FutureExt, Stream, StreamExt};

/// Sends a given number of one-word chunks.
#[derive(Clone, Copy)]
struct Words(usize);

#[async_trait]
impl ChatModel for Words {
    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
        Ok(ChunkStream::from_deltas(MessageAggregator::new(request.round), Deltas(Some(self.0))))
    }
}

/// A number of words, then the end.
struct Deltas(Option<usize>);

impl Stream for Deltas {
    type Item = Result<Delta>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(words) = self.0 else { return Poll::Ready(None) };
        self.0 = words.checked_sub(1);
        let delta = if words > 0 { Delta::text("word ") } else { Delta::finish(FinishReason::Stop) };
        Poll::Ready(Some(Ok(delta)))
    }
}

/// The way in which an answer is read.
#[derive(Debug, Clone, Copy)]
enum Reading {
    /// As a turn.
    Turn,
    /// As an advisor reads it.
    Advisor,
}

/// Heap allocations of one answer of `words` words through `looking` advisors that look at every chunk.
fn allocations(words: usize, looking: usize, reading: Reading) -> u64 {
    let chain = (0..looking).fold(ChatClient::builder(Words(words)), |builder, _| {
        builder.advisor(from_fn("looking", |request, next: AdvisorChain| async move {
            let mut texts = 0;
            let look = move |chunk: &Chunk| {
                texts += usize::from(chunk.text().is_some());
                assert!(texts < 1_000_000);
            };
            Ok(next.next_stream(request).await?.inspect_chunks(look))
        }))
    });
    allocations_of(chain.build().unwrap().chain(), words, reading)
}

/// Heap allocations of one answer of `words` words.
fn allocations_of(chain: &AdvisorChain, words: usize, reading: Reading) -> u64 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let counted = allocation_counter::measure(|| {
        runtime.block_on(async {
            let request = ChatRequest::new(Message::user("?"));
            let chunks = match reading {
                Reading::Turn => count(chain.stream(request)).await,
                Reading::Advisor => count(chain.next_stream(request).await.unwrap()).await,
            };
            assert_eq!(chunks, words + 3, "opened, the words, closed, completed");
        });
    });
    counted.count_total
}

async fn count(stream: impl Stream<Item = Result<Chunk>>) -> usize {
    stream.map(|chunk| drop(chunk.unwrap())).count().await
}

#[test]
fn law_r4_looking_at_chunks_allocates_nothing_per_chunk() {
    for reading in [Reading::Turn, Reading::Advisor] {
        let of = |words, looking| allocations(words, looking, reading);
        let per_thousand = |looking| of(3000, looking).saturating_sub(of(2000, looking));
        let (none, five) = (per_thousand(0), per_thousand(5));
        assert_eq!(none, five, "{reading:?}: five looking advisors allocate as much per chunk as none");
        // Only the text of the block grows, and it doubles each time; a turn keeps a copy of what it has handed out.
        let texts = match reading {
            Reading::Turn => 2,
            Reading::Advisor => 1,
        };
        assert!(five <= texts, "{reading:?}: {five} allocations for a thousand chunks");
    }
}

/// The texts of the blocks in the output and of the held-back text grow, and double each time.
#[test]
fn law_r4_guards_allocate_nothing_per_chunk() {
    let guards: [fn() -> Guard; 2] = [
        || Guard::for_words(["worm", "order"], LetterCase::Ignore),
        || Guard::for_pattern(r"\bword \d{1,4}").unwrap(),
    ];
    for guard in guards {
        for reading in [Reading::Turn, Reading::Advisor] {
            let of = |words| {
                let chain = ChatClient::builder(Words(words)).advisor(guard().on_output());
                allocations_of(chain.build().unwrap().chain(), words, reading)
            };
            let per_thousand = of(3000).saturating_sub(of(2000));
            assert!(per_thousand <= 4, "{reading:?}: {per_thousand} allocations for a thousand chunks");
        }
    }
}

/// A retry reads the stream of its attempt; the others add work for the end of the answer only.
#[test]
fn law_r4_limits_and_retries_allocate_nothing_per_chunk() {
    let plain = |words, reading| {
        allocations_of(ChatClient::builder(Words(words)).build().unwrap().chain(), words, reading)
    };
    let limited = |words, reading| {
        let chain = ChatClient::builder(Words(words))
            .advisor(Budget::for_each_tenant().with_tokens(1_000).ignoring_unknown_cost())
            .advisor(RateLimit::for_each_tenant().with_concurrency(1))
            .advisor(ResponseCache::default())
            .advisor(Retry::default());
        allocations_of(chain.build().unwrap().chain(), words, reading)
    };
    for reading in [Reading::Turn, Reading::Advisor] {
        let per_thousand = |of: &dyn Fn(usize, Reading) -> u64| of(3000, reading) - of(2000, reading);
        assert_eq!(per_thousand(&limited), per_thousand(&plain), "{reading:?}");
    }
}

#[test]
fn law_r4_answer_end_without_waiting_work_allocates_nothing() {
    let answer = ChatResponse::new(1, Message::assistant("Hi"), FinishReason::Stop);
    let mut stream = ChunkStream::answer(answer);
    let counted = allocation_counter::measure(|| {
        let mut chunks = 0;
        while let Some(chunk) = stream.next().now_or_never().unwrap() {
            chunk.unwrap();
            chunks += 1;
        }
        assert_eq!(chunks, 4, "opened, the word, closed, completed");
    });
    assert_eq!(counted.count_total, 0);
}

#[test]
fn law_r4_the_counter_sees_what_an_advisor_allocates() {
    let builder = ChatClient::builder(Words(100)).advisor(from_fn(
        "copying",
        |request, next: AdvisorChain| async move {
            let mut copies = Vec::new();
            Ok(next.next_stream(request).await?.inspect_chunks(move |chunk| {
                copies.push(Box::new(chunk.clone()));
            }))
        },
    ));
    let client = builder.build().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let counted = allocation_counter::measure(|| {
        runtime.block_on(async {
            client.chain().next_call(ChatRequest::new(Message::user("?"))).await.unwrap()
        });
    });
    assert!(counted.count_total >= 100, "{}", counted.count_total);
}
