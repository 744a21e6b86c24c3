//! Reads a body and aggregates it.

use std::collections::VecDeque;

use advisor_core::{AggregatorSettings, ChatResponse, Chunk, Error, MessageAggregator, Result};
use bytes::Bytes;
use provider_http::answer::{AnswerDecoder, End, WireFormat};

/// A body that was read and aggregated.
#[derive(Debug)]
#[non_exhaustive]
pub struct ReadAnswer {
    /// The chunks of the answer.
    pub chunks: Vec<Chunk>,
    /// The response; or the error, with the part of the answer before it.
    pub response: Result<ChatResponse>,
    /// The progress of the answer when its body ended, or when it failed.
    pub end: End,
}

impl ReadAnswer {
    /// Checks that another way to read the body has the same outcome.
    ///
    /// That is an equal response, or an error of the same kind, text and partial answer.
    ///
    /// # Panics
    /// If not. The message begins with `how`.
    #[track_caller]
    pub fn assert_same(&self, other: &Self, how: &str) {
        match (&self.response, &other.response) {
            (Ok(one), Ok(other)) => assert_eq!(other, one, "{how}"),
            (Err(one), Err(other)) => {
                assert_eq!((other.kind(), other.to_string()), (one.kind(), one.to_string()), "{how}");
                assert_eq!(other.partial(), one.partial(), "{how}");
            }
            (one, other) => panic!("{how}: {other:?} in place of {one:?}"),
        }
    }
}

/// Reads a body that arrives in these pieces, and aggregates its deltas.
pub fn read_answer<W: WireFormat>(
    mut decoder: AnswerDecoder<W>,
    settings: AggregatorSettings,
    pieces: &[&[u8]],
) -> ReadAnswer {
    let mut aggregator = MessageAggregator::with_settings(1, settings);
    let mut chunks = VecDeque::new();
    let mut end = None;
    let mut read = || {
        for piece in pieces {
            decoder.push(Bytes::copy_from_slice(piece));
            take(&mut decoder, &mut aggregator, &mut chunks)?;
        }
        end = Some(decoder.end());
        decoder.finish();
        take(&mut decoder, &mut aggregator, &mut chunks)
    };
    let response = match read() {
        Ok(()) => aggregator.finish(&mut chunks).map_err(Error::from),
        Err(error) => Err(error.or_partial(aggregator.partial())),
    };
    ReadAnswer { chunks: chunks.into(), response, end: end.unwrap_or_else(|| decoder.end()) }
}

/// Takes the deltas so far.
fn take<W: WireFormat>(
    decoder: &mut AnswerDecoder<W>,
    aggregator: &mut MessageAggregator,
    chunks: &mut VecDeque<Chunk>,
) -> Result<()> {
    while let Some(delta) = decoder.next() {
        aggregator.push(delta?, chunks)?;
    }
    Ok(())
}
