//! An answer that was read to its end.

use advisor_core::{ChatResponse, Chunk, ChunkFold, Error};
use advisor_testkit::StreamValidator;
use futures::{Stream, StreamExt};

/// An answer that was read to its end.
#[derive(Debug)]
pub(crate) struct Run {
    /// The chunks before the completion or the error.
    pub(crate) chunks: Vec<Chunk>,
    pub(crate) end: Result<ChatResponse, Error>,
}

impl Run {
    /// Reads an answer to its end. Returns `None` if that is neither a completion nor an error.
    pub(crate) async fn read(mut items: impl Stream<Item = Result<Chunk, Error>> + Unpin) -> Option<Self> {
        let mut chunks = Vec::new();
        while let Some(item) = items.next().await {
            match item {
                Ok(Chunk::Completed(response)) => return Some(Self { chunks, end: Ok(response) }),
                Ok(chunk) => chunks.push(chunk),
                Err(error) => return Some(Self { chunks, end: Err(error) }),
            }
        }
        None
    }

    /// Returns why the chunks break law S1, S3 or S4, if they do.
    pub(crate) fn violation(&self) -> Option<String> {
        let mut validator = StreamValidator::new();
        let completed = self.end.as_ref().ok().map(|response| Chunk::Completed(response.clone()));
        let violation = self.chunks.iter().chain(&completed).find_map(|chunk| {
            let violation = validator.push(chunk).err()?;
            Some(format!("{violation}, at {chunk:?}"))
        });
        violation.or_else(|| self.never_shown())
    }

    /// Returns the blocks of the response, if it has more of them than were shown.
    fn never_shown(&self) -> Option<String> {
        let response = self.end.as_ref().ok()?;
        let shown = fold(&self.chunks).blocks(response.round()).len();
        let reported: Vec<_> = response.blocks().collect();
        (shown != reported.len())
            .then(|| format!("{shown} blocks were shown, and the response has {reported:?}"))
    }
}

pub(crate) fn fold(chunks: &[Chunk]) -> ChunkFold {
    let mut fold = ChunkFold::default();
    chunks.iter().for_each(|chunk| fold.push(chunk));
    fold
}
