//! Editors for tests: one that judges calls, and one that makes calls of text.

use std::collections::BTreeMap;
use std::task::{Context, Poll};

use advisor_chain::chain::{ChunkEditor, EditedChunks};
use advisor_chain::messages::{Block, BlockDelta, BlockHead, BlockId, BlockKind, ToolCall};
use advisor_chain::{Chunk, Result};
use futures::FutureExt;
use futures::future::BoxFuture;

/// A judgement that is known at once.
pub fn verdict(allowed: bool) -> BoxFuture<'static, bool> {
    std::future::ready(allowed).boxed()
}

/// Holds back each call until it is judged. A denied one becomes a text in its place.
pub struct Judging<J> {
    judge: J,
    held: BTreeMap<BlockId, Vec<Chunk>>,
    judged: Vec<(BlockId, BoxFuture<'static, bool>)>,
}

impl<J> Judging<J> {
    /// Creates one with this judge.
    pub fn new(judge: J) -> Self {
        Self { judge, held: BTreeMap::new(), judged: Vec::new() }
    }
}

impl<J: FnMut(ToolCall) -> BoxFuture<'static, bool> + Send + 'static> ChunkEditor for Judging<J> {
    fn edit(&mut self, chunk: Chunk, out: &mut EditedChunks<'_>) {
        match &chunk {
            Chunk::Opened { block, head } if head.kind == BlockKind::ToolCall => {
                self.held.insert(*block, vec![chunk]);
                return;
            }
            Chunk::Closed { block, content } => {
                let judged = content.as_tool_call().map(|call| (*block, (self.judge)(call.clone())));
                self.judged.extend(judged);
            }
            Chunk::AttemptRestarted { round } => {
                self.held.retain(|block, _| block.round != *round);
                self.judged.retain(|(block, _)| block.round != *round);
            }
            _ => {}
        }
        match chunk.block().and_then(|block| self.held.get_mut(&block)) {
            Some(held) => held.push(chunk),
            None => out.push(chunk),
        }
    }

    fn poll_pending(&mut self, cx: &mut Context<'_>, out: &mut EditedChunks<'_>) -> Poll<Result<()>> {
        for (block, mut verdict) in std::mem::take(&mut self.judged) {
            match verdict.poll_unpin(cx) {
                Poll::Pending => self.judged.push((block, verdict)),
                Poll::Ready(true) => {
                    self.held.remove(&block).into_iter().flatten().for_each(|chunk| out.push(chunk));
                }
                Poll::Ready(false) => {
                    self.held.remove(&block);
                    out.push(Chunk::Opened { block, head: BlockHead::new(BlockKind::Text) });
                    out.push(Chunk::Delta { block, delta: BlockDelta::Text("[denied]".into()) });
                    out.close(block);
                }
            }
        }
        if self.judged.is_empty() { Poll::Ready(Ok(())) } else { Poll::Pending }
    }
}

/// Makes a call of each `[name]` in a text.
#[derive(Default)]
pub struct Calling {
    texts: BTreeMap<BlockId, String>,
}

impl ChunkEditor for Calling {
    fn edit(&mut self, chunk: Chunk, out: &mut EditedChunks<'_>) {
        match chunk {
            Chunk::Opened { block, head } if head.kind == BlockKind::Text => {
                self.texts.insert(block, String::new());
            }
            Chunk::Delta { block, delta: BlockDelta::Text(text) } => {
                self.texts.entry(block).or_default().push_str(&text);
            }
            Chunk::Closed { block, content } => match self.texts.remove(&block) {
                Some(text) => {
                    for piece in split(&text) {
                        out.add(block, piece);
                    }
                }
                None => out.push(Chunk::Closed { block, content }),
            },
            chunk => {
                if let Chunk::AttemptRestarted { round } = chunk {
                    self.texts.retain(|block, _| block.round != round);
                }
                out.push(chunk);
            }
        }
    }
}

fn split(text: &str) -> impl Iterator<Item = Block> {
    let piece = |piece: &str| match piece.split_once(']') {
        Some((name, text)) => vec![ToolCall::new("", name, "{}").into(), Block::text(text)],
        None => vec![Block::text(piece)],
    };
    text.split('[').flat_map(piece).filter(|block| block.as_text() != Some(""))
}
