//! Reads a stream and checks the laws of its blocks.

use advisor_testkit::StreamValidator;
use advisor_tests::prelude::*;
use futures::Stream;

/// The result of a stream that was checked against the laws.
pub(crate) struct Out {
    pub(crate) fold: ChunkFold,
    pub(crate) outcome: Result<ChatResponse>,
    pub(crate) rounds: Vec<ChatResponse>,
}

/// Reads a stream to its end. Its chunks are well-formed (S3), and a response has what was shown (S4), in the order of
/// the ids.
pub(crate) async fn read(mut stream: impl Stream<Item = Result<Chunk>> + Unpin) -> Out {
    let (mut fold, mut rounds, mut validator) = (ChunkFold::new(), Vec::new(), StreamValidator::new());
    let outcome = loop {
        let chunk = match stream.next().await.expect("a stream ends with `Completed` or an error") {
            Ok(chunk) => chunk,
            Err(error) => break Err(error),
        };
        validator.push(&chunk).unwrap_or_else(|violation| panic!("{violation}: {chunk:?}"));
        fold.push(&chunk);
        if let Chunk::RoundCompleted(response) | Chunk::Completed(response) = &chunk {
            assert!(
                response.blocks().is_sorted_by(|(a, _), (b, _)| a < b),
                "ids in another order: {response:?}"
            );
            rounds.push(response.clone());
            if chunk.completed().is_some() {
                break Ok(response.clone());
            }
        }
    };
    Out { fold, outcome, rounds }
}
