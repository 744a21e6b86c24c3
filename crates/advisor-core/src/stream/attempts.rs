//! `Attempts` and `ChunkStream::from_attempts`: further attempts at an answer after one failed, for `FallbackModel`
//! and retries.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::Stream;
use message_aggregator::Chunk;

use crate::{ChunkStream, Error, Result, drop_caught};

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
    pub async fn from_attempts(first: Result<Self>, attempts: impl Attempts) -> Result<Self> {
        let mut attempts: Box<dyn Attempts> = Box::new(attempts);
        let live = match first {
            Ok(live) => live,
            Err(error) if attempts.can_follow(&error) => attempts.open_next(error).await?,
            Err(error) => return Err(error),
        };
        Ok(Self::new(Attempted { state: State::Live(live, attempts), shown: false }))
    }
}

struct Attempted {
    state: State,
    /// Whether a chunk of the running attempt was emitted.
    shown: bool,
}

enum State {
    Live(ChunkStream, Box<dyn Attempts>),
    Opening(BoxFuture<'static, Result<(ChunkStream, Box<dyn Attempts>)>>),
    Ended,
}

impl Stream for Attempted {
    type Item = Result<Chunk>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            match &mut this.state {
                State::Live(live, attempts) => match ready!(Pin::new(live).poll_next(cx)) {
                    Some(Err(error))
                        if (!this.shown || attempts.voids().is_some()) && attempts.can_follow(&error) =>
                    {
                        let void = attempts.voids().filter(|_| std::mem::take(&mut this.shown));
                        this.restart(error);
                        if let Some(round) = void {
                            return Poll::Ready(Some(Ok(Chunk::AttemptRestarted { round })));
                        }
                    }
                    next => {
                        this.shown = true;
                        return Poll::Ready(next);
                    }
                },
                State::Opening(opening) => match ready!(opening.as_mut().poll(cx)) {
                    Ok((live, attempts)) => this.state = State::Live(live, attempts),
                    Err(error) => {
                        this.state = State::Ended;
                        return Poll::Ready(Some(Err(error)));
                    }
                },
                State::Ended => return Poll::Ready(None),
            }
        }
    }
}

impl Attempted {
    fn restart(&mut self, error: Error) {
        let State::Live(failed, mut attempts) = std::mem::replace(&mut self.state, State::Ended) else {
            return;
        };
        drop_caught(failed);
        let opening = async move { Ok((attempts.open_next(error).await?, attempts)) };
        self.state = State::Opening(opening.boxed());
    }
}
