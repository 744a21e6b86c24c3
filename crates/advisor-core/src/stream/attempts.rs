//! `Attempts` and `ChunkStream::from_attempts`: further attempts at an answer after one failed, for `FallbackModel`
//! and retries.

use async_trait::async_trait;
use futures::stream::{StreamExt, unfold};
use message_aggregator::Chunk;

use crate::{ChunkStream, Error, Result};

/// Further attempts at an answer, for a model or an advisor that asks again after an error.
///
/// [`ChunkStream::from_attempts`] makes a stream of them.
#[async_trait]
pub trait Attempts: Send + 'static {
    /// Checks whether another attempt may follow this error.
    fn can_follow(&self, error: &Error) -> bool;

    /// Opens the next attempt that answers.
    ///
    /// # Errors
    /// The last error, if no attempt is left.
    async fn open_next(&mut self, error: Error) -> Result<ChunkStream>;

    /// Returns the round that a further attempt makes void after a part of it was shown. `None`, the default: no attempt
    /// follows then.
    fn voids(&self) -> Option<u32> {
        None
    }
}

impl ChunkStream {
    /// Creates a stream of the first attempt, which other attempts follow while it fails.
    ///
    /// If a part of the failed attempt was shown, [`Chunk::AttemptRestarted`] comes before the next one. Dropping the
    /// future or the stream drops the running attempt.
    ///
    /// # Errors
    /// That of the last attempt, if none of them can be opened.
    pub async fn from_attempts(first: Result<Self>, mut attempts: impl Attempts) -> Result<Self> {
        let live = match first {
            Ok(live) => live,
            Err(error) if attempts.can_follow(&error) => attempts.open_next(error).await?,
            Err(error) => return Err(error),
        };
        let attempted = Attempted { live, attempts, failed: None, shown: false };
        Ok(Self::new(unfold(attempted, Attempted::next)))
    }
}

struct Attempted<A> {
    live: ChunkStream,
    attempts: A,
    /// The error after which the next attempt begins.
    failed: Option<Error>,
    /// Whether a chunk of the running attempt was emitted.
    shown: bool,
}

impl<A: Attempts> Attempted<A> {
    async fn next(mut self) -> Option<(Result<Chunk>, Self)> {
        loop {
            if let Some(error) = self.failed.take() {
                match self.attempts.open_next(error).await {
                    Ok(live) => self.live = live,
                    Err(error) => return Some((Err(error), self)),
                }
            }
            match self.live.next().await? {
                Err(error)
                    if (!self.shown || self.attempts.voids().is_some())
                        && self.attempts.can_follow(&error) =>
                {
                    self.failed = Some(error);
                    let void = self.attempts.voids().filter(|_| std::mem::take(&mut self.shown));
                    if let Some(round) = void {
                        return Some((Ok(Chunk::AttemptRestarted { round }), self));
                    }
                }
                item => {
                    self.shown = true;
                    return Some((item, self));
                }
            }
        }
    }
}
