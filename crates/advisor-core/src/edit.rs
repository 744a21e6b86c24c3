use std::collections::{BTreeSet, VecDeque};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::stream::Stream;
use message_aggregator::{Block, BlockContent, BlockId, ChatResponse, Choice, Chunk, ChunkFold, Message};

use crate::{ChunkStream, Result};

impl ChunkStream {
    /// Passes every chunk through `edit`, which appends what is to come out instead, if anything.
    ///
    /// The responses stay true to what came out: a block whose deltas were changed, held back or left
    /// out has the content that was let through, on its closing chunk and in the response of its round.
    /// A changed block loses its provider data, which vouches for the original. A block that was never
    /// opened to the outside is left out. What is held back must be let out before its block closes.
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
        Self::new(Edited {
            inner: self,
            edit,
            seen: BTreeSet::new(),
            shown: ChunkFold::new(),
            edited: VecDeque::new(),
            ready: VecDeque::new(),
        })
    }
}

struct Edited<F> {
    inner: ChunkStream,
    edit: F,
    /// The blocks that opened on the inside.
    seen: BTreeSet<BlockId>,
    /// What the outside was shown.
    shown: ChunkFold,
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
                other => return Poll::Ready(other),
            }
        }
    }
}

impl<F: FnMut(Chunk, &mut VecDeque<Chunk>)> Edited<F> {
    fn take(&mut self, chunk: Chunk) {
        if let Chunk::Opened { block, .. } = &chunk {
            self.seen.insert(*block);
        }
        match chunk {
            // The end is not the editor's to change or to withhold; it may only let out what it held.
            Chunk::Completed(response) => {
                let after = Chunk::Completed(self.true_response(&response));
                self.ready.push_back(after);
            }
            Chunk::RoundCompleted(response) => {
                let response = self.true_response(&response);
                self.let_out(Chunk::RoundCompleted(response));
            }
            chunk => self.let_out(chunk),
        }
    }

    fn let_out(&mut self, chunk: Chunk) {
        (self.edit)(chunk, &mut self.edited);
        while let Some(chunk) = self.edited.pop_front() {
            if chunk.block().is_some_and(|block| !self.may_show(block, &chunk)) {
                continue;
            }
            let chunk = match chunk {
                Chunk::Closed { block, content } => {
                    Chunk::Closed { block, content: self.true_block(block, &content) }
                }
                chunk => chunk,
            };
            self.shown.push(&chunk);
            self.ready.push_back(chunk);
        }
    }

    /// Chunks of a block that never opened to the outside cannot come out.
    fn may_show(&self, block: BlockId, chunk: &Chunk) -> bool {
        matches!(chunk, Chunk::Opened { .. } | Chunk::Tool(_)) || self.shown.has_opened(block)
    }

    /// The block as the outside saw it; the original where nothing was changed.
    fn true_block(&self, id: BlockId, original: &Block) -> Block {
        let Some(shown) = self.shown.block(id) else {
            return original.clone();
        };
        let same = match (shown.content(), original.content()) {
            (BlockContent::ToolCall(shown), BlockContent::ToolCall(original)) => {
                shown.name == original.name && shown.arguments == original.arguments
            }
            (shown, original) => shown == original,
        };
        if same {
            return original.clone();
        }
        match (shown.content(), original.as_tool_call()) {
            (BlockContent::ToolCall(shown), Some(original)) => {
                let mut call = original.clone();
                call.name = shown.name.clone();
                call.arguments.clone_from(&shown.arguments);
                Block::from(call)
            }
            (content, _) => Block::new(content.clone()),
        }
    }

    fn true_response(&self, response: &ChatResponse) -> ChatResponse {
        let changed = |(id, block): (&BlockId, &Block)| {
            self.seen.contains(id) && (!self.shown.has_opened(*id) || self.true_block(*id, block) != *block)
        };
        let mut choices = response.choices().iter();
        if !choices.any(|choice| choice.block_ids.iter().zip(choice.message.blocks()).any(changed)) {
            return response.clone();
        }
        let choices = response.choices().iter().map(|choice| self.true_choice(choice)).collect();
        response.clone().with_choices(choices)
    }

    fn true_choice(&self, choice: &Choice) -> Choice {
        let (ids, blocks) = choice
            .block_ids
            .iter()
            .zip(choice.message.blocks())
            .filter(|(id, _)| !self.seen.contains(id) || self.shown.has_opened(**id))
            .map(|(id, block)| (*id, self.true_block(*id, block)))
            .unzip();
        Choice::new(choice.number, Message::assistant_blocks(blocks), ids, choice.finish.clone())
    }
}
