use std::mem::take;
use std::sync::{Arc, OnceLock};

use advisor_core::{Chunk, ToolResult};
use advisor_sse::{Encoder, Failure, Frames};
use futures::{StreamExt, stream};
use tracing::warn;

use super::Question;
use super::answers::{AnsweredCall, SentVerdict, stored_results};
use crate::ChatServer;
use crate::relay::reader::TurnReading;

/// An encoder of a protocol whose clients show how the decided calls of an earlier turn end.
pub(in crate::routes) trait ShowsEnds: Encoder {
    /// Writes the end of a call, by the id under which the client knows it.
    fn show_end(&mut self, call: &str, verdict: &SentVerdict, result: &ToolResult, frames: &mut Frames);
}

/// The results that begin a turn. They are known once it has a chunk.
type Results = Arc<OnceLock<Vec<(String, ToolResult)>>>;

/// Writes the ends of decided calls in front of a turn's first chunk.
pub(in crate::routes) struct WithEnds<E> {
    encoder: E,
    /// The calls whose ends are not written.
    calls: Vec<AnsweredCall>,
    results: Results,
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
        let results = Results::default();
        let turn = match calls.is_empty() {
            true => turn,
            false => loading(turn, &results, server, question),
        };
        (Self { encoder, calls, results }, turn)
    }

    fn show_ends(&mut self, frames: &mut Frames) {
        let calls = take(&mut self.calls);
        for (id, result) in self.results.get().into_iter().flatten() {
            if let Some(call) = calls.iter().find(|call| call.stored_id == *id) {
                self.encoder.show_end(&call.id, &call.verdict, result, frames);
            }
        }
    }
}

/// Returns the turn, which loads the results before its first item.
fn loading(
    mut turn: TurnReading,
    results: &Results,
    server: &ChatServer,
    question: &Question,
) -> TurnReading {
    let (results, server, (conversation, id)) = (Arc::clone(results), server.clone(), question.key());
    let loading = async move {
        let first = turn.next().await;
        match stored_results(&server, &conversation, &id).await {
            Ok(stored) => drop(results.set(stored)),
            Err(error) => warn!(%error, "the ends of decided calls are not shown: they cannot be loaded"),
        }
        stream::iter(first).chain(turn)
    };
    stream::once(loading).flatten().boxed()
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
