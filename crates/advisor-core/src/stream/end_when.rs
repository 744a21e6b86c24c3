//! `ChunkStream::end_when`: ends an answer early for a reason, for output guards and budgets.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::stream::Stream;
use message_aggregator::{ChatResponse, Chunk, ChunkFold, FinishReason, Message, Usage};

use crate::{ChunkStream, Result, drop_caught};

impl ChunkStream {
    /// Ends the answer as soon as `end` returns a reason for a chunk, for output guards and budgets.
    ///
    /// That chunk is not emitted. The output of the round so far becomes the answer: its open blocks close, the
    /// source is dropped, and `Completed` follows with that finish reason. Completion work added further inside
    /// does not run; work added to the returned stream does. `end` is not called for `Completed`, since the answer
    /// has ended then.
    ///
    /// A tool call that was still open is incomplete and never runs. Inside the tool loop, complete calls run
    /// unless the reason [vetoes](FinishReason::vetoes_calls) them.
    ///
    /// Usage arrives once per round, after its blocks: the cost of an answer is unknown while it streams. If `end`
    /// returns a reason for a usage chunk, that usage counts.
    ///
    /// Outside the loop, the turn ends here. The response has the usage of the emitted rounds: with
    /// `FinalAnswerOnly`, of the last one at most. Its transcript is that of the turn, without the changes that an
    /// editor outside the loop made to earlier rounds. If the turn ends between two rounds, the answer is empty.
    ///
    /// The results of a round become final together. If one of its tools is still running, all its calls get
    /// [`OUTCOME_UNKNOWN`](crate::OUTCOME_UNKNOWN) as their result. Started calls that must not run twice get
    /// [`VERIFY_BEFORE_RETRYING`](crate::VERIFY_BEFORE_RETRYING) instead.
    ///
    /// # Example
    /// ```
    /// use advisor_core::{ChatResponse, ChunkStream, FinishReason, Message};
    /// use futures::StreamExt;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> advisor_core::Result<()> {
    /// let answer = ChatResponse::new(1, Message::assistant("The password is swordfish"), FinishReason::Stop);
    /// let mut guarded = ChunkStream::answer(answer).end_when(|chunk| {
    ///     chunk.text()?.contains("password").then_some(FinishReason::ContentFilter)
    /// });
    /// while let Some(chunk) = guarded.next().await {
    ///     if let Some(response) = chunk?.completed() {
    ///         assert_eq!((response.text().as_str(), &response.finish().reason), ("", &FinishReason::ContentFilter));
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    pub fn end_when(self, end: impl FnMut(&Chunk) -> Option<FinishReason> + Send + 'static) -> Self {
        self.inside(|inner| {
            Self::new(EndWhen {
                inner: Some(inner),
                end,
                shown: ChunkFold::new(),
                usage: UsageSoFar::default(),
                last: VecDeque::new(),
            })
        })
    }
}

struct EndWhen<F> {
    /// `None` when the answer was ended here.
    inner: Option<ChunkStream>,
    end: F,
    /// Output of the current round.
    shown: ChunkFold,
    usage: UsageSoFar,
    /// Chunks to emit after the source was dropped.
    last: VecDeque<Chunk>,
}

// The closure is never pinned.
impl<F> Unpin for EndWhen<F> {}

impl<F: FnMut(&Chunk) -> Option<FinishReason> + Send + 'static> Stream for EndWhen<F> {
    type Item = Result<Chunk>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = Pin::into_inner(self);
        let Some(inner) = &mut this.inner else {
            return Poll::Ready(this.last.pop_front().map(Ok));
        };
        let next = ready!(Pin::new(inner).poll_next(cx));
        let Some(Ok(chunk)) = &next else { return Poll::Ready(next) };
        if matches!(chunk, Chunk::Completed(_)) {
            return Poll::Ready(next);
        }
        match (this.end)(chunk) {
            None => {
                this.note(chunk);
                Poll::Ready(next)
            }
            Some(reason) => {
                let round = chunk.round();
                // They count, although they are not emitted.
                if matches!(chunk, Chunk::RoundCompleted(_) | Chunk::Usage { .. }) {
                    this.note(chunk);
                }
                this.end_round(round, &reason);
                Poll::Ready(this.last.pop_front().map(Ok))
            }
        }
    }
}

impl<F> EndWhen<F> {
    fn note(&mut self, chunk: &Chunk) {
        self.usage.note(chunk);
        match chunk {
            Chunk::RoundCompleted(_) => self.shown = ChunkFold::new(),
            chunk => self.shown.push(chunk),
        }
    }

    /// Ends the answer with the output of this round.
    fn end_round(&mut self, round: u32, reason: &FinishReason) {
        drop_caught(self.inner.take());
        self.last.extend(self.shown.close_open());
        let empty = || ChatResponse::new(round, Message::assistant_blocks(Vec::new()), reason.clone());
        let response =
            self.shown.response(round, reason).unwrap_or_else(empty).with_usage(self.usage.total());
        self.last.push_back(Chunk::Completed(response));
    }
}

/// The token counts of the rounds that a stream has shown, for an answer that ends early.
#[derive(Debug, Default)]
pub(crate) struct UsageSoFar {
    /// Of the completed rounds.
    completed: Option<Usage>,
    /// Of the current round, as far as known.
    running: Option<Usage>,
}

impl UsageSoFar {
    pub(crate) fn note(&mut self, chunk: &Chunk) {
        match chunk {
            Chunk::RoundCompleted(response) => {
                self.running = response.usage().copied();
                self.completed = self.total();
                self.running = None;
            }
            Chunk::Usage { usage, .. } => self.running.get_or_insert_default().merge(usage),
            _ => {}
        }
    }

    pub(crate) fn total(&self) -> Option<Usage> {
        let mut total = self.completed;
        if let Some(running) = &self.running {
            total.get_or_insert_default().add(running);
        }
        total
    }
}
