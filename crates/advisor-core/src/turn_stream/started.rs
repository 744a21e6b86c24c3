//! `TurnStream::started`: waits until the chain answers or fails, before a service sends its status.

use std::future::poll_fn;
use std::task::{Context, Poll};

use message_aggregator::Chunk;

use crate::turn_stream::state::State;
use crate::{Result, TurnStream};

/// The start of a turn, for services that send a status before the answer.
impl TurnStream {
    /// Waits until the turn has started: the chain has answered or failed.
    ///
    /// A service calls it before it sends the head of its HTTP response. So an error, such as a busy conversation
    /// or a rejected key, becomes an HTTP status. Usually the model has begun to answer by then. The returned turn
    /// yields every chunk from the first one on.
    ///
    /// # Cancellation
    /// Dropping the future drops the turn.
    ///
    /// # Errors
    /// Those of the turn up to the chain's answer, or up to its first chunk if that comes at once. The turn's end
    /// is recorded by then. If a model answers before it knows whether it fails, its error is the first item of
    /// the returned turn.
    ///
    /// # Example
    /// ```
    /// # use advisor_core::{ChatClient, Result, TurnStream};
    /// async fn answer(client: &ChatClient, question: &str) -> Result<TurnStream> {
    ///     client.prompt().user(question).stream().started().await
    /// }
    /// ```
    pub async fn started(mut self) -> Result<Self> {
        poll_fn(|cx| self.poll_started(cx)).await?;
        Ok(self)
    }

    fn poll_started(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        if matches!(self.state, State::Live { .. } | State::Last(_)) {
            return Poll::Ready(Ok(()));
        }
        match self.poll_turn(cx) {
            Poll::Ready(Some(Ok(chunk))) => {
                self.put_back(chunk);
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Some(Err(error))) => Poll::Ready(Err(error)),
            Poll::Pending if !matches!(self.state, State::Live { .. }) => Poll::Pending,
            Poll::Ready(None) | Poll::Pending => Poll::Ready(Ok(())),
        }
    }

    /// Puts back a polled chunk that was not delivered, as the next one.
    fn put_back(&mut self, chunk: Chunk) {
        match &mut self.state {
            State::Live { first, .. } => *first = Some(chunk),
            state => {
                *state = State::Last(Box::new(chunk));
                self.control.unsettle();
            }
        }
    }
}
