//! `Edited`: the layer that polls source and editor, and ends rounds once the editor is done.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures::stream::Stream;
use message_aggregator::{ChatResponse, Chunk, FinishReason, Message};

use super::answers::EditedAnswers;
use super::blocks::EditedBlocks;
use super::output::Stop;
use super::{ChunkEditor, EditedChunks};
use crate::stream::usage_so_far::UsageSoFar;
use crate::{ChunkStream, Error, Result, Turn, drop_caught};

/// The layer around a stream that runs an editor.
pub(super) struct Edited<E> {
    /// `None` when the editor has ended the answer.
    inner: Option<ChunkStream>,
    editor: E,
    turn: Arc<Turn>,
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
    pub(super) fn new(inner: ChunkStream, editor: E, turn: Arc<Turn>) -> Self {
        Self {
            inner: Some(inner),
            editor,
            blocks: EditedBlocks::new(turn.call_id_prefix()),
            turn,
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
        let mut out = EditedChunks {
            blocks: &mut self.blocks,
            ready: &mut self.ready,
            turn: &self.turn,
            stop: &mut stop,
        };
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
                self.blocks.complete(round);
                self.run(|editor, out| editor.edit(Chunk::RoundCompleted(response), out));
            }
            _ => {}
        }
    }

    /// Ends the answer with the output so far.
    fn end_answer(&mut self, reason: FinishReason) {
        drop_caught(self.inner.take());
        self.blocks.close_all(&mut self.ready);
        let response = match self.ending.take() {
            Some(Chunk::Completed(response)) => self.edited_response(&response).with_finish(reason),
            _ => {
                let empty = || Message::assistant_blocks(Vec::new());
                let shown = self.blocks.answer(self.round, &reason);
                let response = shown.unwrap_or_else(|| ChatResponse::new(self.round, empty(), reason));
                response.with_usage(self.usage.total())
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
        self.answers.edited_response(response, &self.blocks, &self.turn)
    }
}
