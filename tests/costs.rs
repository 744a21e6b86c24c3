//! What a chain costs per chunk, counted and not timed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use advisor_core::{
    AdvisorChain, ChatModel, ChatRequest, ChatResponse, Chunk, ChunkStream, Delta, FinishReason, Message,
    MessageAggregator, Result, async_trait, from_fn,
};
use futures::{FutureExt, StreamExt};

/// Sends a given number of one-word chunks.
struct Words(usize);

#[async_trait]
impl ChatModel for Words {
    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
        let words = (0..self.0).map(|_| Ok(Delta::text("word ")));
        let deltas = words.chain([Ok(Delta::finish(FinishReason::Stop))]);
        Ok(ChunkStream::from_deltas(MessageAggregator::new(request.round), futures::stream::iter(deltas)))
    }
}

/// Heap allocations of one answer of `words` words through `looking` advisors that look at every chunk.
fn allocations(words: usize, looking: usize) -> u64 {
    let builder = (0..looking).fold(AdvisorChain::builder(Words(words)), |builder, _| {
        builder.advisor(from_fn("looking", |request, next: AdvisorChain| async move {
            let mut texts = 0;
            let look = move |chunk: &Chunk| {
                texts += usize::from(chunk.text().is_some());
                assert!(texts < 1_000_000);
            };
            Ok(next.next_stream(request).await?.inspect_chunks(look))
        }))
    });
    let chain = builder.build().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let counted = allocation_counter::measure(|| {
        runtime.block_on(async {
            let mut stream = chain.next_stream(ChatRequest::new(Message::user("?"))).await.unwrap();
            let mut chunks = 0;
            while let Some(chunk) = stream.next().await {
                chunk.unwrap();
                chunks += 1;
            }
            assert_eq!(chunks, words + 3, "opened, the words, closed, completed");
        });
    });
    counted.count_total
}

#[test]
fn law_r4_looking_at_chunks_allocates_nothing_per_chunk() {
    let per_thousand = |looking| allocations(3000, looking).saturating_sub(allocations(2000, looking));
    let (none, five) = (per_thousand(0), per_thousand(5));
    assert_eq!(none, five, "five looking advisors allocate as much per chunk as none");
    // Only the text of the block grows, and it doubles each time.
    assert!(five <= 1, "{five} allocations for a thousand chunks");
}

#[test]
fn law_r4_the_end_of_an_answer_that_no_work_waits_for_allocates_nothing() {
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
    let builder = AdvisorChain::builder(Words(100)).advisor(from_fn(
        "copying",
        |request, next: AdvisorChain| async move {
            let mut copies = Vec::new();
            Ok(next.next_stream(request).await?.inspect_chunks(move |chunk| {
                copies.push(Box::new(chunk.clone()));
            }))
        },
    ));
    let chain = builder.build().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let counted = allocation_counter::measure(|| {
        runtime.block_on(async { chain.next_call(ChatRequest::new(Message::user("?"))).await.unwrap() });
    });
    assert!(counted.count_total >= 100, "{}", counted.count_total);
}
