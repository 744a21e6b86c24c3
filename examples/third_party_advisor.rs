//! An advisor of one's own that changes chunks, and its tests with the testkit.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::sync::Arc;

use advisor_chain::{
    AdvisorChain, AdvisorInfo, BlockDelta, ChatRequest, Chunk, ChunkFold, ChunkStream, Message, Phase,
    Placement, Result, StreamAdvisor, async_trait,
};
use advisor_testkit::{Answer, ScriptedModel};
use futures::StreamExt;

/// Replaces a word in the answer, also where it is cut in two. It holds back only what may be the word's beginning.
struct Redact(&'static str);

impl AdvisorInfo for Redact {
    fn name(&self) -> &str {
        "redact"
    }

    fn placement(&self) -> Placement {
        Placement::new(Phase::Round)
    }
}

#[async_trait]
impl StreamAdvisor for Redact {
    async fn advise_stream(self: Arc<Self>, request: ChatRequest, next: AdvisorChain) -> Result<ChunkStream> {
        let mut held = String::new();
        Ok(next.next_stream(request).await?.edit_chunks(move |chunk, out| {
            let text = |block, text: String| Chunk::Delta { block, delta: BlockDelta::Text(text.into()) };
            match chunk {
                Chunk::Delta { block, delta: BlockDelta::Text(more) } => {
                    held.push_str(&more);
                    held = held.replace(self.0, "█");
                    let keep = beginning_of(self.0, &held);
                    let sure = held.drain(..held.len() - keep).collect::<String>();
                    if !sure.is_empty() {
                        out.push_back(text(block, sure));
                    }
                }
                Chunk::Closed { block, content } => {
                    if !held.is_empty() {
                        out.push_back(text(block, std::mem::take(&mut held)));
                    }
                    out.push_back(Chunk::Closed { block, content });
                }
                other => out.push_back(other),
            }
        }))
    }
}

/// How many bytes at the end of `text` may be the beginning of `word`.
fn beginning_of(word: &str, text: &str) -> usize {
    let lengths = word.char_indices().map(|(at, _)| at).rev();
    lengths
        .into_iter()
        .find(|length| text.ends_with(word.get(..*length).unwrap_or_default()))
        .unwrap_or_default()
}

#[tokio::main]
async fn main() -> Result<()> {
    // However the model cuts its text, the answer, the chunks and the response say the same.
    let secret = "The key is swordfish, swordfish!";
    for cut in (1..secret.len()).filter(|cut| secret.is_char_boundary(*cut)) {
        let (one, two) = secret.split_at(cut);
        let model =
            ScriptedModel::new([Answer::new().text(one).text(two).finish(advisor_chain::FinishReason::Stop)]);
        let chain = AdvisorChain::builder(model).advisor(Redact("swordfish")).build()?;
        let mut stream = chain.next_stream(ChatRequest::new(Message::user("?"))).await?;
        let mut fold = ChunkFold::new();
        while let Some(chunk) = stream.next().await {
            let chunk = chunk?;
            fold.push(&chunk);
            if let Chunk::Completed(response) = chunk {
                assert_eq!(response.text(), "The key is █, █!");
                assert_eq!(fold.text(response.round()), response.text());
            }
        }
    }
    println!("redacted in every one of {} cuts", secret.len() - 1);
    Ok(())
}
