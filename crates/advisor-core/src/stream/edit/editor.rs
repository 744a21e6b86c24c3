//! `ChunkEditor`: the trait of an editor with state: `edit`, `poll_pending`, `end`.

use std::task::{Context, Poll};

use message_aggregator::{ChatResponse, Chunk};

use super::EditedChunks;
use crate::Result;

/// An editor of the chunks of one stream: it changes, adds and removes blocks, and may wait for decisions.
///
/// [`ChunkStream::edit_with`](crate::ChunkStream::edit_with) runs it. A closure is enough for an editor that only
/// changes chunks ([`ChunkStream::edit_chunks`](crate::ChunkStream::edit_chunks)).
///
/// # Ordering
/// [`edit`](Self::edit) runs for each chunk in the poll in which it arrives, also while the editor waits. Before
/// a round ends, [`end`](Self::end) runs and the stream waits until [`poll_pending`](Self::poll_pending) returns
/// `Ready`. So a wait delays only the end of the round, and the chunks that the editor itself holds back.
///
/// # Cancellation
/// Dropping the stream drops its source, then the editor with everything that it waits for. `end` does not run for
/// a round that fails or is restarted.
///
/// # Errors
/// An error of `poll_pending` ends the stream, and so does [`EditedChunks::fail`]. It gets the output of the round
/// so far as its partial answer.
///
/// # Example
/// ```
/// use std::task::{Context, Poll, ready};
///
/// use advisor_core::{Block, BlockKind, Chunk, ChunkEditor, EditedChunks, Result};
/// use futures::FutureExt;
/// use futures::future::BoxFuture;
///
/// /// Puts the verdict of a judge after the text of each round.
/// struct Verdicts {
///     judge: fn(String) -> BoxFuture<'static, String>,
///     text: String,
///     pending: Option<(advisor_core::BlockId, BoxFuture<'static, String>)>,
/// }
///
/// impl ChunkEditor for Verdicts {
///     fn edit(&mut self, chunk: Chunk, out: &mut EditedChunks<'_>) {
///         if let Chunk::Closed { block, content } = &chunk
///             && content.kind() == BlockKind::Text
///         {
///             self.text.push_str(content.as_text().unwrap_or_default());
///             self.pending = Some((*block, (self.judge)(self.text.clone())));
///         }
///         out.push(chunk);
///     }
///
///     fn poll_pending(&mut self, cx: &mut Context<'_>, out: &mut EditedChunks<'_>) -> Poll<Result<()>> {
///         if let Some((after, verdict)) = &mut self.pending {
///             let verdict = ready!(verdict.poll_unpin(cx));
///             out.add(*after, Block::text(verdict));
///             self.pending = None;
///         }
///         Poll::Ready(Ok(()))
///     }
/// }
/// ```
pub trait ChunkEditor: Send + 'static {
    /// Takes the next chunk of the stream, and emits it, other chunks, or none.
    ///
    /// It gets every chunk but `Completed`, which it can neither change nor withhold. After
    /// [`Chunk::AttemptRestarted`] it must forget everything of that round.
    fn edit(&mut self, chunk: Chunk, out: &mut EditedChunks<'_>);

    /// Polls the pending work of the editor, and emits decided chunks. Returns `Pending` while work is pending.
    ///
    /// It is called before each chunk and at the end of each round, also after it has returned `Ready`.
    ///
    /// # Errors
    /// Ends the stream.
    fn poll_pending(&mut self, _cx: &mut Context<'_>, _out: &mut EditedChunks<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Runs once when a round is complete, before its open blocks close. `response` is the unedited answer of the
    /// round. The editor emits the chunks that it still holds back, and may add blocks or begin to wait.
    fn end(&mut self, _response: &ChatResponse, _out: &mut EditedChunks<'_>) {}
}
