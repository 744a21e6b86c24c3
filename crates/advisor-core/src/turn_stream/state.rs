//! The states of a turn.

use futures::future::BoxFuture;
use message_aggregator::{ChatResponse, Chunk};

use crate::turn_stream::beginning::Beginning;
use crate::{ChunkStream, Error, Result, TurnEnd};

pub(super) enum State {
    /// Not started. An error here was found when the turn was built.
    Waiting(Result<Box<Beginning>>),
    Opening(BoxFuture<'static, Result<ChunkStream>>),
    Live {
        stream: ChunkStream,
        /// A chunk that was polled to learn that the turn has started. It is not delivered yet.
        first: Option<Chunk>,
    },
    /// The end is being recorded; the caller receives the last item afterwards.
    Ending(BoxFuture<'static, Result<()>>, Box<Ending>),
    /// The turn has ended; its last item is not delivered yet.
    Last(Box<Chunk>),
    Ended,
}

pub(super) struct Ending {
    /// The end that is being recorded; `None` if the turn continues without this stream.
    pub(super) end: Option<TurnEnd>,
    pub(super) last: LastItem,
}

pub(super) enum LastItem {
    /// The answer, if its end could be recorded.
    Completed(ChatResponse),
    /// The error, whether or not the end could be recorded.
    Failed(Error),
}
