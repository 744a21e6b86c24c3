//! `WithEnds`: writes how decided calls end, in front of the turn that continues.

use std::mem::replace;
use std::sync::{Arc, OnceLock};

use advisor_core::{Chunk, ClientSideCall, ConversationKey, Text, ToolResult};
use advisor_sse::{ApprovalId, Encoder, Failure, Frames};
use futures::{StreamExt, stream};
use tracing::warn;

use super::Question;
use super::answers::{AnsweredCall, stored_results};
use crate::ChatServer;
use crate::relay::reader::TurnReading;

/// An encoder of a protocol whose clients show how the decided calls of an earlier turn end.
pub(in crate::routes) trait ShowsEnds: Encoder {
    /// Writes the end of a call, by the id under which the client knows it.
    fn show_end(&mut self, call: &str, result: &ToolResult, frames: &mut Frames);

    /// Asks again for the approval of a call of this tool, at the end of the turn. By default, the client keeps its own
    /// request.
    fn ask_again(&mut self, _approval: &ApprovalId, _tool: &Text) {}
}

/// What memory has of the decided calls.
#[derive(Default)]
struct Stored {
    /// The results that begin the turn. They are known once it has a chunk.
    results: OnceLock<Vec<(String, ToolResult)>>,
    /// The calls that wait at the end of a turn without results: an advisor outside memory has answered it.
    waiting: OnceLock<Vec<ClientSideCall>>,
}

/// Writes the ends of decided calls in front of a turn's first chunk. At its end, it asks again for those that still wait.
pub(in crate::routes) struct WithEnds<E> {
    encoder: E,
    conversation: ConversationKey,
    calls: Vec<AnsweredCall>,
    ends: Ends,
    stored: Arc<Stored>,
}

/// Whether the ends of the calls are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ends {
    ToShow,
    Shown,
}

impl<E: ShowsEnds> WithEnds<E> {
    /// Creates the encoder of a turn that decides these calls. The returned turn loads their results.
    pub(in crate::routes) fn new(
        encoder: E,
        calls: Vec<AnsweredCall>,
        turn: TurnReading,
        server: &ChatServer,
        question: &Question,
    ) -> (Self, TurnReading) {
        let stored = Arc::<Stored>::default();
        let (ends, turn) = match calls.is_empty() {
            true => (Ends::Shown, turn),
            false => (Ends::ToShow, loading(turn, &stored, server, question)),
        };
        let conversation = question.conversation.clone();
        (Self { encoder, conversation, calls, ends, stored }, turn)
    }

    fn show_ends(&mut self, frames: &mut Frames) {
        if replace(&mut self.ends, Ends::Shown) == Ends::Shown {
            return;
        }
        for (id, result) in self.stored.results.get().into_iter().flatten() {
            if let Some(call) = self.calls.iter().find(|call| call.stored_id == *id) {
                self.encoder.show_end(&call.id, result, frames);
            }
        }
    }

    fn ask_again(&mut self) {
        let waiting = self.stored.waiting.get().map(Vec::as_slice).unwrap_or_default();
        for AnsweredCall { approval, tool, .. } in &self.calls {
            if waiting.iter().any(|open| !open.started && approval.names(&self.conversation, open)) {
                self.encoder.ask_again(approval, tool);
            }
        }
    }
}

/// Returns the turn, which loads the results before its first item, and before its end what still waits.
fn loading(
    mut turn: TurnReading,
    stored: &Arc<Stored>,
    server: &ChatServer,
    question: &Question,
) -> TurnReading {
    let (loaded, of, (conversation, id)) = (Arc::clone(stored), server.clone(), question.key());
    let loading = async move {
        let first = turn.next().await;
        match stored_results(&of, &conversation, &id).await {
            Ok(results) => drop(loaded.results.set(results)),
            Err(error) => warn!(%error, "the ends of decided calls are not shown: they cannot be loaded"),
        }
        stream::iter(first).chain(turn)
    };
    let (stored, server, conversation) = (Arc::clone(stored), server.clone(), question.conversation.clone());
    let turn = stream::once(loading).flatten().then(move |item| {
        let is_end = matches!(&item, Ok(chunk) if chunk.completed().is_some());
        let has_none = stored.results.get().is_some_and(Vec::is_empty);
        let at_end =
            (is_end && has_none).then(|| (Arc::clone(&stored), server.clone(), conversation.clone()));
        async move {
            if let Some((stored, server, conversation)) = at_end {
                match server.memory().client_side_calls(&conversation).await {
                    Ok(waiting) => drop(stored.waiting.set(waiting)),
                    Err(error) => {
                        warn!(%error, "the calls that still wait are not shown: they cannot be loaded")
                    }
                }
            }
            item
        }
    });
    turn.boxed()
}

impl<E: ShowsEnds> Encoder for WithEnds<E> {
    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        self.encoder.headers()
    }

    fn begin(&mut self, frames: &mut Frames) {
        self.encoder.begin(frames);
    }

    fn chunk(&mut self, chunk: &Chunk, frames: &mut Frames) {
        self.show_ends(frames);
        if chunk.completed().is_some() {
            self.ask_again();
        }
        self.encoder.chunk(chunk, frames);
    }

    fn failure(&mut self, failure: &Failure, frames: &mut Frames) {
        self.show_ends(frames);
        self.encoder.failure(failure, frames);
    }

    fn keep_alive(&self) -> &'static [u8] {
        self.encoder.keep_alive()
    }
}
