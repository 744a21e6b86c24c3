//! `ChunkStream::edit_chunks` and `edit_with`: change chunks, add blocks and wait.

mod answers;
mod blocks;
mod edited;
mod editor;
mod finish;
mod output;
mod own_block;
mod pending_text;
mod text;

use std::collections::VecDeque;
use std::sync::Arc;

use message_aggregator::Chunk;

use crate::{ChunkStream, Turn, TurnId};
use edited::Edited;

pub use editor::ChunkEditor;
pub use output::EditedChunks;
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
    /// text, and [`edit_with`](Self::edit_with) runs editors that add blocks or wait.
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
        self.edit_with(FnEditor { edit, edited: VecDeque::new() })
    }

    /// Passes every chunk through an editor that may also add blocks, replace them by other kinds, and wait.
    ///
    /// The output is well-formed, and all reports of it are equal, as with [`edit_chunks`](Self::edit_chunks).
    /// The finish reason becomes `ToolCalls` if calls were added to an answer without any, and `Stop` if all calls were
    /// removed. A reason that [vetoes](crate::FinishReason::vetoes_calls) calls, and `Paused`, stay.
    ///
    /// An editor that adds calls belongs inside the tool loop, in [`Phase::ModelCall`](crate::Phase::ModelCall): there
    /// they run. Outside it, a call added to the last answer is for the caller, and any other one has an error
    /// result.
    ///
    /// A stream that an advisor made itself needs its turn first ([`in_turn`](Self::in_turn)). The ids of added blocks
    /// are then unique in the turn.
    ///
    /// # Example
    /// ```
    /// use advisor_core::{
    ///     Block, BlockKind, ChatResponse, Chunk, ChunkEditor, ChunkStream, EditedChunks, FinishReason, Message, ToolCall,
    /// };
    /// use futures::StreamExt;
    ///
    /// /// Replaces each call by a text.
    /// struct NoCalls(Option<advisor_core::BlockId>);
    ///
    /// impl ChunkEditor for NoCalls {
    ///     fn edit(&mut self, chunk: Chunk, out: &mut EditedChunks<'_>) {
    ///         match &chunk {
    ///             Chunk::Opened { block, head } if head.kind == BlockKind::ToolCall => {
    ///                 out.add(*block, Block::text(" I may not use tools."));
    ///                 self.0 = Some(*block);
    ///             }
    ///             chunk if self.0.is_some() && chunk.block() == self.0 => {}
    ///             _ => out.push(chunk),
    ///         }
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> advisor_core::Result<()> {
    /// let blocks = vec![Block::text("Let me look."), Block::from(ToolCall::new("c1", "look", "{}"))];
    /// let answer = ChatResponse::new(1, Message::assistant_blocks(blocks), FinishReason::ToolCalls);
    /// let mut edited = ChunkStream::answer(answer).edit_with(NoCalls(None));
    /// while let Some(chunk) = edited.next().await {
    ///     if let Some(response) = chunk?.completed() {
    ///         assert_eq!(response.text(), "Let me look. I may not use tools.");
    ///         assert_eq!(response.finish().reason, FinishReason::Stop);
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    pub fn edit_with(mut self, editor: impl ChunkEditor) -> Self {
        let turn = Arc::clone(self.turn.get_or_insert_with(|| Turn::new(TurnId::random())));
        self.inside(|inner| Self::new(Edited::new(inner, editor, turn)))
    }
}

/// An editor made of a closure.
struct FnEditor<F> {
    edit: F,
    edited: VecDeque<Chunk>,
}

impl<F: FnMut(Chunk, &mut VecDeque<Chunk>) + Send + 'static> ChunkEditor for FnEditor<F> {
    fn edit(&mut self, chunk: Chunk, out: &mut EditedChunks<'_>) {
        (self.edit)(chunk, &mut self.edited);
        self.edited.drain(..).for_each(|chunk| out.push(chunk));
    }
}
