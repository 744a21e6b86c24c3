//! `ChunkStream::edit_text` and `HoldBack`: edits the text of each block, with bounded hold-back.

use std::collections::BTreeMap;

use message_aggregator::{BlockDelta, BlockId, BlockKind, Chunk};

use super::pending_text::{BlockState, EarlyEnd};
use super::{ChunkEditor, EditedChunks, PendingText};
use crate::ChunkStream;

/// The maximum amount of a block's text that an editor holds back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums, reason = "nothing, some, everything")]
pub enum HoldBack {
    /// Nothing: each piece is emitted in the poll in which it arrived.
    Nothing,
    /// At most this many bytes. The editor's remaining text beyond that is emitted unchanged.
    Bytes(usize),
    /// The whole block, until it ends.
    Block,
}

impl ChunkStream {
    /// Passes the text of each block through `edit` while it streams: text, reasoning and refusals.
    ///
    /// `edit` receives the text that was not emitted yet, and emits the part that it can decide on. The rest, up to
    /// `hold_back`, is passed again with the next piece of that block. Each block uses its own clone of the
    /// initial `edit`. So no state passes from one block to the next, or from a restarted attempt to the next. The
    /// output is consistent, as with [`edit_chunks`](Self::edit_chunks).
    ///
    /// An advisor that edits answers belongs inside memory, in [`Phase::ModelCall`](crate::Phase::ModelCall): then
    /// memory stores the emitted text.
    ///
    /// # Example
    /// ```
    /// use advisor_core::{ChatResponse, ChunkStream, FinishReason, HoldBack, Message};
    /// use futures::StreamExt;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> advisor_core::Result<()> {
    /// let answer = ChatResponse::new(1, Message::assistant("It was Mallory."), FinishReason::Stop);
    /// let mut masked = ChunkStream::answer(answer)
    ///     .edit_text(HoldBack::Bytes(6), |text| text.replace_all(&[("Mallory", "[name]")]));
    /// while let Some(chunk) = masked.next().await {
    ///     if let Some(response) = chunk?.completed() {
    ///         assert_eq!(response.text(), "It was [name].");
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    pub fn edit_text<E>(self, hold_back: HoldBack, edit: E) -> Self
    where
        E: FnMut(&mut PendingText<'_>) + Clone + Send + 'static,
    {
        self.edit_with(EditedTexts { edit, hold_back, open: BTreeMap::new(), emitted: String::new() })
    }
}

/// The open text blocks, each with its editor.
struct EditedTexts<E> {
    edit: E,
    hold_back: HoldBack,
    open: BTreeMap<BlockId, EditedText<E>>,
    /// The text of one delta. It is empty between deltas, and kept for its memory.
    emitted: String,
}

struct EditedText<E> {
    edit: E,
    kind: BlockKind,
    held: HeldText,
}

/// The held-back text of one block.
#[derive(Default)]
struct HeldText {
    /// Text that was taken, then the held-back text.
    text: String,
    /// The bytes that were taken.
    taken: usize,
}

impl HeldText {
    fn as_str(&self) -> &str {
        self.text.get(self.taken..).unwrap_or_default()
    }

    /// Keeps the last `bytes`.
    fn keep(&mut self, bytes: usize) {
        self.taken = self.text.len().saturating_sub(bytes);
        // No more text is moved than was taken, so the cost of a byte does not depend on how much is held back.
        if self.taken >= bytes {
            self.text.drain(..self.taken);
            self.taken = 0;
        }
    }
}

impl<E: FnMut(&mut PendingText<'_>) + Clone + Send + 'static> ChunkEditor for EditedTexts<E> {
    fn edit(&mut self, chunk: Chunk, out: &mut EditedChunks<'_>) {
        match &chunk {
            Chunk::Opened { block, head } => {
                let edited =
                    EditedText { edit: self.edit.clone(), kind: head.kind, held: HeldText::default() };
                self.open.insert(*block, edited);
            }
            Chunk::Delta { block, delta } => {
                if let (Some(edited), Some(text)) = (self.open.get_mut(block), text_of(delta)) {
                    edited.held.text.push_str(text);
                    return edited.let_out(*block, self.hold_back, BlockState::Open, &mut self.emitted, out);
                }
            }
            Chunk::Closed { block, .. } => {
                let edited = self.open.remove(block).filter(|edited| !edited.held.as_str().is_empty());
                if let Some(mut edited) = edited {
                    edited.let_out(*block, HoldBack::Nothing, BlockState::Ended, &mut self.emitted, out);
                }
            }
            Chunk::AttemptRestarted { round } => self.open.retain(|block, _| block.round != *round),
            _ => {}
        }
        out.push(chunk);
    }
}

impl<E: FnMut(&mut PendingText<'_>)> EditedText<E> {
    /// Edits the pending text, and emits the decided part. `emitted` is an empty buffer.
    fn let_out(
        &mut self,
        block: BlockId,
        hold_back: HoldBack,
        state: BlockState,
        emitted: &mut String,
        out: &mut EditedChunks<'_>,
    ) {
        if hold_back == HoldBack::Block {
            return;
        }
        let mut pending = PendingText::new(self.held.as_str(), emitted, self.kind, state);
        (self.edit)(&mut pending);
        pending.hold_at_most(match hold_back {
            HoldBack::Bytes(bytes) => bytes,
            HoldBack::Nothing | HoldBack::Block => 0,
        });
        let (rest, end) = pending.into_rest();
        let rest = rest.len();
        self.held.keep(rest);
        let delta = match self.kind {
            BlockKind::Reasoning => BlockDelta::Reasoning,
            BlockKind::Refusal => BlockDelta::Refusal,
            _ => BlockDelta::Text,
        };
        if !emitted.is_empty() {
            out.push_delta(block, delta(emitted.as_str().into()));
        }
        emitted.clear();
        if let Some(EarlyEnd { reason, last }) = end {
            out.close(block);
            if let Some(last) = last {
                out.add(block, last);
            }
            out.end_answer(reason);
        }
    }
}

fn text_of(delta: &BlockDelta) -> Option<&str> {
    match delta {
        BlockDelta::Text(text) | BlockDelta::Reasoning(text) | BlockDelta::Refusal(text) => Some(text),
        _ => None,
    }
}
