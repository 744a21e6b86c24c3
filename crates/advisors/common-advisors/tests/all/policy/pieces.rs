//! Passes a text through an advisor, in pieces.

use advisor_testkit::StreamValidator;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use advisor_core::{
    Block, BlockDelta, BlockHead, BlockId, BlockKind, ChatClient, ChatModel, ChatRequest, ChatResponse,
    Chunk, ChunkStream, FinishReason, Message, Result, StreamAdvisor, async_trait,
};
use futures::{FutureExt, StreamExt};

/// What was emitted after each piece, and after the end.
pub(crate) struct Shown {
    pub(crate) pieces: Vec<String>,
    pub(crate) whole: String,
    pub(crate) reason: FinishReason,
}

/// A model that answers with this stream.
struct Once(Mutex<Option<ChunkStream>>);

#[async_trait]
impl ChatModel for Once {
    async fn stream(&self, _: ChatRequest) -> Result<ChunkStream> {
        Ok(self.0.lock().unwrap().take().unwrap())
    }
}

/// Passes a text in these pieces through an advisor.
pub(crate) fn edited(advisor: impl StreamAdvisor, pieces: &[&str]) -> Shown {
    let block = BlockId::new(1, 0);
    let whole = pieces.concat();
    let mut chunks = vec![Chunk::Opened { block, head: BlockHead::new(BlockKind::Text) }];
    let delta = |piece: &&str| Chunk::Delta { block, delta: BlockDelta::Text((*piece).into()) };
    chunks.extend(pieces.iter().map(delta));
    chunks.push(Chunk::Closed { block, content: Block::text(whole.as_str()) });
    let answer = ChatResponse::new(1, Message::assistant(whole.as_str()), FinishReason::Stop);
    chunks.push(Chunk::Completed(answer));
    // The source is polled once for each chunk, so what comes out between is that of one piece.
    let mut at_end = String::new();
    let mut validator = StreamValidator::new();
    let counter = Arc::new(AtomicUsize::new(0));
    let polled = Arc::clone(&counter);
    let source = futures::stream::iter(chunks).map(move |chunk| {
        polled.fetch_add(1, Ordering::Relaxed);
        Ok(chunk)
    });
    let model = Once(Mutex::new(Some(ChunkStream::new(source))));
    let chain = ChatClient::builder(model).advisor(advisor).build().unwrap().chain().clone();
    let opened = chain.next_stream(ChatRequest::new(Message::user("?"))).now_or_never();
    let mut stream = opened.unwrap().unwrap();
    let mut pieces_shown = vec![String::new(); pieces.len()];
    while let Some(chunk) = stream.next().now_or_never().expect("the source is always ready") {
        let chunk = chunk.unwrap();
        validator.push(&chunk).unwrap();
        if let Some(text) = chunk.text() {
            let at = counter.load(Ordering::Relaxed).saturating_sub(2);
            match pieces_shown.get_mut(at) {
                Some(shown) => shown.push_str(text),
                None => at_end.push_str(text),
            }
        }
        if let Chunk::Completed(response) = chunk {
            let whole = pieces_shown.concat() + &at_end;
            assert_eq!(response.text(), whole, "the response equals the shown text");
            let reason = response.finish.reason.clone();
            return Shown { pieces: pieces_shown, whole, reason };
        }
    }
    panic!("the stream ends with its completion");
}

/// Returns the pieces of every split of a text, at its characters.
pub(crate) fn splits(text: &str) -> impl Iterator<Item = Vec<&str>> {
    let places: Vec<_> = text.char_indices().map(|(at, _)| at).skip(1).collect();
    (0..1_u32 << places.len()).map(move |cuts| {
        let mut pieces = Vec::new();
        let mut from = 0;
        for (bit, at) in places.iter().enumerate() {
            if cuts & (1 << bit) != 0 {
                pieces.push(&text[from..*at]);
                from = *at;
            }
        }
        pieces.push(&text[from..]);
        pieces
    })
}
