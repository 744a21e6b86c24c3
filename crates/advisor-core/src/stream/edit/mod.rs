//! `ChunkStream::edit_with` and `end_when`: an editor (`ChunkEditor`) with its output (`EditedChunks`), the layer that
//! runs it, and the answers that it changed.

mod blocks;
mod text;

pub use text::{HoldBack, PendingText};

use std::collections::VecDeque;
use std::iter::from_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use self::blocks::EditedBlocks;
use futures::stream::Stream;
use message_aggregator::{
    Block, BlockDelta, BlockHead, BlockId, ChatResponse, Chunk, Finish, FinishReason, Message, MessageList,
    ToolCall, ToolResult, Usage,
};

use crate::stream::chunk_stream::TurnOfStream;
use crate::{ChunkStream, Error, ErrorKind, Result, drop_caught};

impl ChunkStream {
    /// Passes every chunk but `Completed` through an editor: a closure that changes chunks, or a [`ChunkEditor`] that may
    /// also wait.
    ///
    /// The output is consistent (law S4). A block whose deltas were changed, held back or left out gets the
    /// emitted content everywhere. This covers its closing chunk, the response of its round, the final transcript
    /// of the turn, and the partial answer and history of an error. A changed block loses its provider data, which
    /// is only valid for the original. A block that was never opened in the output is left out, and so are the
    /// results of a call whose block was. Answers that the editor never saw, such as rounds that the tool loop does
    /// not show, stay unchanged. The output is also well-formed (law S3): see [`EditedChunks`]. So held-back content must
    /// be emitted before its block closes. [`edit_text`](Self::edit_text) does that for text.
    ///
    /// The finish reason becomes `ToolCalls` if calls were added to an answer without any, and `Stop` if all calls were
    /// removed. A reason that [vetoes](crate::FinishReason::vetoes_calls) calls, and `Paused`, stay.
    ///
    /// An advisor that makes a stream of its own adds editors to the stream that it returns. One inside of another stream,
    /// or one that was polled before, belongs to no turn, so its answers are none of the turn.
    ///
    /// An editor that adds calls belongs inside the tool loop, in [`Phase::ModelCall`](crate::Phase::ModelCall): there
    /// they run. Outside it, a call added to the last answer is for the caller, and any other one has an error
    /// result.
    ///
    /// # Example
    /// ```
    /// use advisor_core::{
    ///     Block, BlockDelta, BlockKind, ChatResponse, Chunk, ChunkStream, EditedChunks, FinishReason, Message, ToolCall,
    /// };
    /// use futures::StreamExt;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> advisor_core::Result<()> {
    /// let blocks = vec![Block::text("Let me look."), Block::from(ToolCall::new("c1", "look", "{}"))];
    /// let answer = ChatResponse::new(1, Message::assistant_blocks(blocks), FinishReason::ToolCalls);
    /// let mut left_out = None;
    /// let mut edited = ChunkStream::answer(answer).edit_with(move |chunk: Chunk, out: &mut EditedChunks<'_>| match chunk {
    ///     Chunk::Delta { block, delta: BlockDelta::Text(text) } => {
    ///         out.push(Chunk::Delta { block, delta: BlockDelta::Text(text.to_uppercase().into()) });
    ///     }
    ///     Chunk::Opened { block, head } if head.kind == BlockKind::ToolCall => {
    ///         out.add(block, Block::text(" I may not use tools."));
    ///         left_out = Some(block);
    ///     }
    ///     chunk if left_out.is_some() && chunk.block() == left_out => {}
    ///     chunk => out.push(chunk),
    /// });
    /// while let Some(chunk) = edited.next().await {
    ///     if let Some(response) = chunk?.completed() {
    ///         assert_eq!(response.text(), "LET ME LOOK. I may not use tools.");
    ///         assert_eq!(response.finish.reason, FinishReason::Stop);
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    pub fn edit_with(mut self, editor: impl ChunkEditor) -> Self {
        let turn = self.turn.get_or_insert_with(|| TurnOfStream::Later(Arc::default())).clone();
        self.inside(|inner| Self::new(Edited::new(inner, editor, turn)))
    }

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
    ///         assert_eq!((response.text().as_str(), &response.finish.reason), ("", &FinishReason::ContentFilter));
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    pub fn end_when(self, mut end: impl FnMut(&Chunk) -> Option<FinishReason> + Send + 'static) -> Self {
        self.edit_with(move |chunk: Chunk, out: &mut EditedChunks<'_>| match end(&chunk) {
            None => out.push(chunk),
            Some(reason) => out.end_answer(reason),
        })
    }
}

/// An editor of the chunks of one stream: it changes, adds and removes blocks, and may wait for decisions.
///
/// [`ChunkStream::edit_with`](crate::ChunkStream::edit_with) runs it. A closure is an editor that does not wait.
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

impl<F: FnMut(Chunk, &mut EditedChunks<'_>) + Send + 'static> ChunkEditor for F {
    fn edit(&mut self, chunk: Chunk, out: &mut EditedChunks<'_>) {
        self(chunk, out);
    }
}

/// The output of a [`ChunkEditor`](crate::ChunkEditor).
///
/// It keeps the output of every editor well-formed (law S3). It leaves out:
/// - chunks of a block that is not open, and of a round that has ended;
/// - deltas of another kind than their block;
/// - blocks that neither the answer has nor [`open`](Self::open) has made;
/// - the ends of rounds and answers that did not come from the inner stream.
///
/// Blocks that are left open close before their round ends. A call that closes so is incomplete, unless the model
/// completed it.
#[derive(Debug)]
pub struct EditedChunks<'a> {
    blocks: &'a mut EditedBlocks,
    ready: &'a mut VecDeque<Chunk>,
    stop: &'a mut Option<Stop>,
}

/// The reason why an editor stops its stream.
#[derive(Debug)]
enum Stop {
    Ended(FinishReason),
    Failed(Error),
}

impl EditedChunks<'_> {
    /// Emits a chunk.
    ///
    /// A block of the model that is not emitted is left out of the answer. It may be opened as another kind, which
    /// replaces it in its place. A block that is closed with provider data keeps it, if its content equals the
    /// emitted content.
    pub fn push(&mut self, chunk: Chunk) {
        if self.stop.is_none() {
            self.blocks.let_out(chunk, self.ready);
        }
    }

    /// Opens a block of the editor's own, and returns its id. The block comes after the block `after` and all
    /// blocks that were added there before.
    ///
    /// `after` is any block of the round, also one that is left out. Without one,
    /// [`BlockId::new`]`(round, 0)` is the beginning of the round.
    ///
    /// A call without an id, or with that of another call, gets a new id. Inside the tool loop a complete call
    /// is run like those of the model.
    ///
    /// One block of the model has room for 65,535 added blocks after it. One more ends the stream with an error of kind [`TooLarge`](ErrorKind::TooLarge).
    pub fn open(&mut self, after: BlockId, head: BlockHead) -> BlockId {
        let Some(block) = self.blocks.turn.get().next_part(after).filter(|_| self.stop.is_none()) else {
            let error = Error::new(ErrorKind::TooLarge, "an editor added too many blocks after one block");
            self.stop.get_or_insert(Stop::Failed(error));
            // Nothing more is emitted, so it names no block.
            return after;
        };
        self.blocks.open_added(block, head, self.ready);
        block
    }

    /// Closes an open block with the content that was emitted. A call is then complete, unless that of the model is
    /// not.
    pub fn close(&mut self, block: BlockId) {
        if self.stop.is_none() {
            self.blocks.close(block, self.ready);
        }
    }

    /// Adds a whole block after `after`, as [`open`](Self::open) does, and returns its id.
    pub fn add(&mut self, after: BlockId, content: Block) -> BlockId {
        let block = self.open(after, BlockHead::from_block(&content));
        if let Some(delta) = BlockDelta::from_content(content.content()) {
            self.push(Chunk::Delta { block, delta });
        }
        self.push(Chunk::Closed { block, content });
        block
    }

    /// Ends the answer after the chunks emitted so far, as [`ChunkStream::end_when`](crate::ChunkStream::end_when)
    /// does: open blocks close, the source is dropped, and `Completed` follows with this reason. Nothing is emitted
    /// after that.
    pub fn end_answer(&mut self, reason: FinishReason) {
        self.stop.get_or_insert(Stop::Ended(reason));
    }

    /// Fails the stream with this error after the chunks emitted so far. Nothing is emitted after that.
    ///
    /// The error gets the output of the round so far as its partial answer.
    pub fn fail(&mut self, error: Error) {
        self.stop.get_or_insert(Stop::Failed(error));
    }
}

/// The layer around a stream that runs an editor.
struct Edited<E> {
    /// `None` when the editor has ended the answer.
    inner: Option<ChunkStream>,
    editor: E,
    blocks: EditedBlocks,
    answers: EditedAnswers,
    usage: UsageSoFar,
    /// The round of the last chunk.
    round: u32,
    ready: VecDeque<Chunk>,
    /// The end of a round or of the answer, while the editor may wait.
    ending: Option<Chunk>,
    /// An error of the editor, returned after the chunks.
    failure: Option<Error>,
}

// The editor is never pinned.
impl<E> Unpin for Edited<E> {}

impl<E: ChunkEditor> Stream for Edited<E> {
    type Item = Result<Chunk>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = Pin::into_inner(self);
        loop {
            if let Some(chunk) = this.ready.pop_front() {
                return Poll::Ready(Some(Ok(chunk)));
            }
            if let Some(error) = this.failure.take() {
                return Poll::Ready(Some(Err(this.failed(error))));
            }
            // Also before a chunk that is ready: a fast source must not keep the editor's work from running.
            let polled = this.poll_editor(cx);
            if !this.ready.is_empty() || this.failure.is_some() {
                continue;
            }
            if this.ending.is_some() {
                ready!(polled);
                this.end_round();
                continue;
            }
            let Some(inner) = &mut this.inner else { return Poll::Ready(None) };
            match ready!(Pin::new(inner).poll_next(cx)) {
                Some(Ok(chunk)) => this.take(chunk),
                Some(Err(error)) => return Poll::Ready(Some(Err(this.edited_error(error)))),
                None => return Poll::Ready(None),
            }
        }
    }
}

impl<E: ChunkEditor> Edited<E> {
    fn new(inner: ChunkStream, editor: E, turn: TurnOfStream) -> Self {
        Self {
            inner: Some(inner),
            editor,
            blocks: EditedBlocks::new(turn),
            answers: EditedAnswers::default(),
            usage: UsageSoFar::default(),
            round: 0,
            ready: VecDeque::new(),
            ending: None,
            failure: None,
        }
    }

    fn take(&mut self, chunk: Chunk) {
        self.round = chunk.round();
        self.usage.note(&chunk);
        match &chunk {
            Chunk::Completed(response) | Chunk::RoundCompleted(response) => {
                let response = response.clone();
                self.ending = Some(chunk);
                self.run(|editor, out| editor.end(&response, out));
            }
            _ => {
                self.blocks.arrive(&chunk);
                self.run(|editor, out| editor.edit(chunk, out));
            }
        }
    }

    fn poll_editor(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let polled = self.run(|editor, out| editor.poll_pending(cx, out));
        polled.map(|outcome| {
            if let Err(error) = outcome {
                self.failure.get_or_insert(error);
            }
        })
    }

    fn run<R>(&mut self, edit: impl FnOnce(&mut E, &mut EditedChunks<'_>) -> R) -> R {
        let mut stop = None;
        let mut out = EditedChunks { blocks: &mut self.blocks, ready: &mut self.ready, stop: &mut stop };
        let result = edit(&mut self.editor, &mut out);
        match stop {
            Some(Stop::Ended(reason)) => self.end_answer(reason),
            Some(Stop::Failed(error)) => self.failure = Some(error),
            None => {}
        }
        result
    }

    fn end_round(&mut self) {
        match self.ending.take() {
            // The editor can neither change nor withhold the end.
            Some(Chunk::Completed(response)) => {
                self.blocks.close_all(&mut self.ready);
                let response = self.edited_response(&response);
                self.ready.push_back(Chunk::Completed(response));
            }
            Some(Chunk::RoundCompleted(response)) => {
                let round = response.round();
                self.blocks.close_until(round, &mut self.ready);
                let response = self.edited_response(&response);
                self.blocks.forget(round);
                self.blocks.completing = Some(round);
                self.run(|editor, out| editor.edit(Chunk::RoundCompleted(response), out));
            }
            _ => {}
        }
    }

    /// Ends the answer with the output so far.
    fn end_answer(&mut self, reason: FinishReason) {
        drop_caught(self.inner.take());
        self.blocks.cut_calls();
        self.blocks.close_all(&mut self.ready);
        let response = match self.ending.take() {
            Some(Chunk::Completed(response)) => self.edited_response(&response).with_finish(reason),
            _ => {
                let empty = || Message::assistant_blocks(Vec::new());
                let shown = self.blocks.answer(self.round, &reason);
                let mut response = shown.unwrap_or_else(|| ChatResponse::new(self.round, empty(), reason));
                response.usage = self.usage.total();
                response
            }
        };
        self.ready.push_back(Chunk::Completed(response));
    }

    /// Returns an error of the editor, with the output of the round so far.
    fn failed(&mut self, error: Error) -> Error {
        let partial = match self.ending.take() {
            Some(Chunk::Completed(response) | Chunk::RoundCompleted(response)) => {
                Some(self.edited_response(&response))
            }
            _ => self.blocks.answer(self.round, &FinishReason::Interrupted),
        };
        error.with_seen(partial, None)
    }

    fn edited_error(&mut self, error: Error) -> Error {
        let partial = error.partial().map(|partial| self.edited_response(partial));
        let history = error.history().map(|history| self.answers.edited_messages(history));
        error.with_seen(partial, history)
    }

    fn edited_response(&mut self, response: &ChatResponse) -> ChatResponse {
        self.answers.edited_response(response, &self.blocks)
    }
}

/// The token counts of the rounds that a stream has shown, for an answer that ends early.
#[derive(Debug, Default)]
struct UsageSoFar {
    /// Of the completed rounds.
    completed: Option<Usage>,
    /// Of the current round, as far as known.
    running: Option<Usage>,
}

impl UsageSoFar {
    fn note(&mut self, chunk: &Chunk) {
        match chunk {
            Chunk::RoundCompleted(response) => {
                self.running = response.usage;
                self.completed = self.total();
                self.running = None;
            }
            Chunk::Usage { usage, .. } => self.running.get_or_insert_default().merge(usage),
            _ => {}
        }
    }

    fn total(&self) -> Option<Usage> {
        let mut total = self.completed;
        if let Some(running) = &self.running {
            total.get_or_insert_default().add(running);
        }
        total
    }
}

/// The answers that an editor changed: each original message with the emitted one.
#[derive(Default)]
struct EditedAnswers(Vec<(Message, ChatResponse)>);

impl EditedAnswers {
    /// Returns the response as emitted, including its transcript. A changed answer is an answer of the turn if the
    /// original is one.
    fn edited_response(&mut self, response: &ChatResponse, blocks: &EditedBlocks) -> ChatResponse {
        let original = response.message();
        if self.edited(original).is_none()
            && let Some(edited) = blocks.edited_answer(response)
        {
            let message = blocks.turn.get().stable_replacement(original, edited.message().clone());
            self.0.push((original.clone(), edited.with_message(message)));
        }
        if self.0.is_empty() {
            return response.clone();
        }
        let transcript = self.edited_messages(&response.transcript);
        let mut response = response.clone();
        if let Some(edited) = self.edited(original) {
            let finish = edited_finish(&response, edited.message());
            let blocks = edited.blocks().map(|(id, block)| (id, block.clone()));
            response = response.with_blocks(blocks).with_message(edited.message().clone());
            response.finish = finish;
        }
        response.transcript = transcript;
        response
    }

    /// Returns the messages with every answer as emitted. Changed answers that have become empty are left out, and
    /// so are results of removed calls. A call that was added to an answer and never ran has an error result.
    fn edited_messages(&self, messages: &MessageList) -> MessageList {
        let mut list = MessageList::default();
        let mut messages = messages.iter().peekable();
        while let Some(message) = messages.next() {
            let Some(edited) = self.edited(message).map(ChatResponse::message) else {
                list.push(message.clone());
                continue;
            };
            if !edited.is_empty_answer() {
                list.push(edited.clone());
            }
            let results: Vec<_> =
                from_fn(|| messages.next_if(|message| message.tool_result().is_some())).collect();
            // The calls of the last answer are for the caller.
            let is_last = results.is_empty() && messages.peek().is_none();
            for call in edited.tool_calls().filter(|_| !is_last) {
                let is_of_call =
                    |result: &&&Message| result.tool_result().is_some_and(|result| result.call_id == call.id);
                match results.iter().find(is_of_call) {
                    Some(result) => list.push((*result).clone()),
                    // It is for the caller, beside calls that ran.
                    None if message.tool_calls().any(|own| own.id == call.id) => {}
                    None => list.push(not_run(call)),
                }
            }
        }
        list
    }

    fn edited(&self, original: &Message) -> Option<&ChatResponse> {
        self.0.iter().find(|(message, _)| message.is_same(original)).map(|(_, edited)| edited)
    }
}

/// Returns the result of a call that an editor outside the tool loop added to an answer.
fn not_run(call: &ToolCall) -> Message {
    Message::tool(ToolResult::error(call, "not started: the call was added outside the tool loop"))
}

/// Returns the reason for the end of a response that an editor changed to `edited`.
///
/// Calls that were added are a reason to wait for results, and calls that were all removed are none. A reason that
/// vetoes calls, or asks for another request, stays.
fn edited_finish(response: &ChatResponse, edited: &Message) -> Finish {
    use FinishReason::{Empty, Other, Stop, ToolCalls};
    let has_calls = |message: &Message| message.tool_calls().next().is_some();
    let mut finish = response.finish.clone();
    finish.reason = match (finish.reason, has_calls(response.message()), has_calls(edited)) {
        (Stop | Empty | Other(_), false, true) => ToolCalls,
        (ToolCalls, true, false) => Stop,
        (Empty, false, false) if !edited.blocks().is_empty() => Stop,
        (reason, ..) => reason,
    };
    finish
}
