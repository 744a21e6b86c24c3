use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use advisor_core::{BlockDelta, Chunk, Result, TurnStream};
use futures::stream::{FusedStream, Stream};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::OutputFormat;
use crate::json_text::first_object;
use crate::partial_json::partial_json;
use crate::value_of::value_of;

/// The value of a turn while the model writes it, created by [`Entity::stream`](crate::Entity::stream).
///
/// # Ordering
/// Partial values come first, each with more content than the one before. The whole value is the last item. If an
/// answer is rejected, partial values start again from nothing. All of them are read from the first object in the
/// answer. Servers require an object around a value of another type, such as a list. If the model leaves it out,
/// no partial values come.
///
/// # Cancellation
/// Dropping it drops the turn.
///
/// # Errors
/// Those of the turn. Nothing follows an error.
#[must_use = "streams do nothing unless polled"]
pub struct EntityStream<T> {
    turn: Option<TurnStream>,
    format: OutputFormat,
    /// The text of the running round.
    text: String,
    /// The round of the text; `None` before its first piece.
    round: Option<u32>,
    /// Length of the text at the last attempt to read a partial value.
    read: usize,
    last: Option<Value>,
    value: PhantomData<fn() -> T>,
}

/// An item of an [`EntityStream`].
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::exhaustive_enums, reason = "a value is whole or it is not")]
pub enum Partial<T> {
    /// The value received so far: strings may be incomplete, and missing parts are absent.
    Value(Value),
    /// The whole value.
    Complete(T),
}

impl<T: DeserializeOwned> EntityStream<T> {
    pub(crate) fn new(turn: TurnStream, format: OutputFormat) -> Self {
        Self {
            turn: Some(turn),
            format,
            text: String::new(),
            round: None,
            read: 0,
            last: None,
            value: PhantomData,
        }
    }

    fn take(&mut self, chunk: &Chunk) -> Option<Value> {
        match chunk {
            Chunk::AttemptRestarted { .. } | Chunk::RoundCompleted(_) => self.begin(None),
            Chunk::Delta { block, delta: BlockDelta::Text(text) } => {
                if self.round != Some(block.round) {
                    self.begin(Some(block.round));
                }
                self.text.push_str(text);
                return self.partial();
            }
            _ => {}
        }
        None
    }

    fn begin(&mut self, round: Option<u32>) {
        (self.round, self.read, self.last) = (round, 0, None);
        self.text.clear();
    }

    /// Returns the value so far, if it has changed. It is read only after the text has grown by a fiftieth, so
    /// that a long answer is not parsed for every delta.
    fn partial(&mut self) -> Option<Value> {
        if self.text.len() < self.read + self.read / 50 {
            return None;
        }
        self.read = self.text.len();
        let value = self.format.unwrapped(&partial_json(first_object(&self.text)?)?)?;
        if self.last.as_ref() == Some(&value) {
            return None;
        }
        self.last.insert(value).clone().into()
    }
}

impl<T: DeserializeOwned> Stream for EntityStream<T> {
    type Item = Result<Partial<T>>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            let Some(turn) = &mut this.turn else { return Poll::Ready(None) };
            let last = match ready!(Pin::new(turn).poll_next(cx)) {
                Some(Ok(Chunk::Completed(response))) => {
                    Some(value_of(&this.format, &response).map(Partial::Complete))
                }
                Some(Ok(chunk)) => match this.take(&chunk) {
                    Some(value) => return Poll::Ready(Some(Ok(Partial::Value(value)))),
                    None => continue,
                },
                Some(Err(error)) => Some(Err(error)),
                None => None,
            };
            this.turn = None;
            return Poll::Ready(last);
        }
    }
}

impl<T> fmt::Debug for EntityStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EntityStream")
            .field("turn", &self.turn)
            .field("format", &self.format)
            .finish_non_exhaustive()
    }
}

impl<T: DeserializeOwned> FusedStream for EntityStream<T> {
    fn is_terminated(&self) -> bool {
        self.turn.is_none()
    }
}
