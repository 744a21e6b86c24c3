//! Reads a stream and checks the laws of its blocks.
#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of it")]

use std::collections::BTreeSet;

use advisor_chain::messages::{BlockId, ChunkFold};
use advisor_chain::{ChatResponse, Chunk, Result};
use futures::{Stream, StreamExt};

/// The result of a stream that was checked against the laws.
pub struct Out {
    pub fold: ChunkFold,
    pub outcome: Result<ChatResponse>,
    pub rounds: Vec<ChatResponse>,
}

/// Reads a stream to its end. Blocks open, continue and close once, all before their round ends (S3). The shown
/// content of a round equals its response (S4).
pub async fn read(mut stream: impl Stream<Item = Result<Chunk>> + Unpin) -> Out {
    let (mut fold, mut rounds) = (ChunkFold::new(), Vec::new());
    let (mut open, mut closed) = (BTreeSet::<BlockId>::new(), BTreeSet::new());
    let outcome = loop {
        let chunk = match stream.next().await.expect("a stream ends with `Completed` or an error") {
            Ok(chunk) => chunk,
            Err(error) => break Err(error),
        };
        assert!(open.iter().all(|block| block.round >= chunk.round()), "open in a later round: {open:?}");
        fold.push(&chunk);
        match &chunk {
            Chunk::Opened { block, .. } => {
                assert!(!closed.contains(block) && open.insert(*block), "{block} opens twice");
            }
            Chunk::Delta { block, .. } => assert!(open.contains(block), "{block} goes on and is not open"),
            Chunk::Closed { block, content } => {
                assert!(open.remove(block) && closed.insert(*block), "{block} closes and is not open");
                assert_eq!(fold.block(*block).as_ref(), Some(content));
            }
            Chunk::AttemptRestarted { round } => {
                open.retain(|block| block.round != *round);
                closed.retain(|block| block.round != *round);
            }
            Chunk::RoundCompleted(response) | Chunk::Completed(response) => {
                let last = chunk.completed().is_some();
                let ended = |block: &&BlockId| last || block.round == response.round();
                assert_eq!(open.iter().find(ended), None, "a round ends with an open block");
                let shown = fold.blocks(response.round());
                let known: Vec<_> = response.blocks().map(|(id, block)| (id, block.clone())).collect();
                assert!(shown.iter().all(|block| known.contains(block)), "{shown:?} is not of {known:?}");
                assert!(known.is_sorted_by(|(a, _), (b, _)| a < b), "ids in another order: {known:?}");
                rounds.push(response.clone());
                if last {
                    break Ok(response.clone());
                }
            }
            _ => {}
        }
    };
    Out { fold, outcome, rounds }
}
