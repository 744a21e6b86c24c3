mod answers;
mod blocks;
mod pending_text;
mod text;

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::stream::Stream;
use message_aggregator::Chunk;

use crate::{ChunkStream, Error, Result};
use answers::EditedAnswers;
use blocks::EditedBlocks;

pub use pending_text::PendingText;
pub use text::HoldBack;

impl ChunkStream {
    /// Replaces every chunk but `Completed` by the chunks that `edit` appends to its queue, if any.
    ///
    /// The output is consistent (law S4). A block whose deltas were changed, held back or left out gets the
    /// emitted content everywhere. This covers its closing chunk, the response of its round, the final transcript
    /// of the turn, and the partial answer and history of an error. A changed block loses its provider data, which
    /// is only valid for the original. A block that was never opened in the output is left out, and so are the
    /// results of a call whose block was. Answers that `edit` never saw, such as rounds that the tool loop does
    /// not show, stay unchanged.
    ///
    /// The output is also well-formed (law S3). Blocks that `edit` leaves open close before their round ends. Left
    /// out are:
    /// - chunks of a block that is not open;
    /// - deltas of another kind than their block;
    /// - blocks that are not part of the answer;
    /// - completions that did not come from the inner stream.
    ///
    /// So held-back content must be emitted before its block closes. [`edit_text`](Self::edit_text) does that for
    /// text.
    ///
    /// # Example
    /// ```
    /// use advisor_core::{BlockDelta, ChatResponse, Chunk, ChunkStream, FinishReason, Message};
    /// use futures::StreamExt;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> advisor_core::Result<()> {
    /// let answer = ChatResponse::new(1, Message::assistant("hello"), FinishReason::Stop);
    /// let mut loud = ChunkStream::answer(answer).edit_chunks(|chunk, out| match chunk {
    ///     Chunk::Delta { block, delta: BlockDelta::Text(text) } => {
    ///         out.push_back(Chunk::Delta { block, delta: BlockDelta::Text(text.to_uppercase().into()) });
    ///     }
    ///     other => out.push_back(other),
    /// });
    /// while let Some(chunk) = loud.next().await {
    ///     if let Chunk::Completed(response) = chunk? {
    ///         assert_eq!(response.text(), "HELLO");
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    pub fn edit_chunks(self, edit: impl FnMut(Chunk, &mut VecDeque<Chunk>) + Send + 'static) -> Self {
        self.inside(|inner| {
            Self::new(Edited {
                inner,
                edit,
                blocks: EditedBlocks::default(),
                answers: EditedAnswers::default(),
                edited: VecDeque::new(),
                ready: VecDeque::new(),
            })
        })
    }
}

struct Edited<F> {
    inner: ChunkStream,
    edit: F,
    blocks: EditedBlocks,
    answers: EditedAnswers,
    edited: VecDeque<Chunk>,
    ready: VecDeque<Chunk>,
}

// The closure is never pinned.
impl<F> Unpin for Edited<F> {}

impl<F: FnMut(Chunk, &mut VecDeque<Chunk>) + Send + 'static> Stream for Edited<F> {
    type Item = Result<Chunk>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = Pin::into_inner(self);
        loop {
            if let Some(chunk) = this.ready.pop_front() {
                return Poll::Ready(Some(Ok(chunk)));
            }
            match ready!(Pin::new(&mut this.inner).poll_next(cx)) {
                Some(Ok(chunk)) => this.take(chunk),
                Some(Err(error)) => return Poll::Ready(Some(Err(this.edited_error(error)))),
                None => return Poll::Ready(None),
            }
        }
    }
}

impl<F: FnMut(Chunk, &mut VecDeque<Chunk>)> Edited<F> {
    fn take(&mut self, chunk: Chunk) {
        match chunk {
            // The editor can neither change nor withhold the end.
            Chunk::Completed(response) => {
                self.blocks.close_until(u32::MAX, &mut self.ready);
                let response = self.answers.edited_response(&response, &self.blocks);
                self.ready.push_back(Chunk::Completed(response));
            }
            Chunk::RoundCompleted(response) => {
                let round = response.round();
                self.blocks.close_until(round, &mut self.ready);
                let response = self.answers.edited_response(&response, &self.blocks);
                self.blocks.forget(round);
                self.blocks.complete(round);
                self.let_out(Chunk::RoundCompleted(response));
            }
            chunk => {
                self.blocks.arrive(&chunk);
                self.let_out(chunk);
            }
        }
    }

    fn let_out(&mut self, chunk: Chunk) {
        (self.edit)(chunk, &mut self.edited);
        for chunk in self.edited.drain(..) {
            self.blocks.let_out(chunk, &mut self.ready);
        }
    }

    fn edited_error(&mut self, error: Error) -> Error {
        let partial = error.partial().map(|partial| self.answers.edited_response(partial, &self.blocks));
        let history = error.history().map(|history| self.answers.edited_messages(history));
        error.with_seen(partial, history)
    }
}
