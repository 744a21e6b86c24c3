//! Decodes bodies with a wire format of `provider-http`: in any pieces, with and without the fast path.
//!
//! A wire format is correct if every way to cut a body gives the same deltas, also with the fast path. These
//! functions read a body in one way; [`assert_decoded_as_parsed`] compares several.
//!
//! ```
//! use std::collections::VecDeque;
//!
//! use advisor_core::{AggregatorSettings, Delta, FinishReason};
//! use advisor_test_support::decoding::{assert_decoded_as_parsed, fast_events, read_answer};
//! use provider_http::answer::{AnswerDecoder, AnswerEvent, Meaning, WireFormat};
//! use provider_http::fast_path::{Field, Framing};
//! use provider_http::redaction::Redaction;
//! use provider_http::sse::SseLimits;
//!
//! /// A format of lines: `{"say":"text"}` and `{"over":true}`.
//! #[derive(Debug)]
//! struct Lines;
//!
//! impl WireFormat for Lines {
//!     const FRAMING: Framing = Framing::Lines;
//!     const FIELDS: &'static Field = &Field::Object(&[("say", Field::Text), ("over", Field::Read)]);
//!
//!     fn read(&mut self, event: AnswerEvent<'_>, deltas: &mut VecDeque<Delta>) -> serde_json::Result<Meaning> {
//!         let event: serde_json::Value = serde_json::from_str(event.data)?;
//!         deltas.extend(event["say"].as_str().map(Delta::text));
//!         deltas.extend(event["over"].as_bool().map(|_| Delta::finish(FinishReason::Stop)));
//!         Ok(Meaning::Piece)
//!     }
//! }
//!
//! let decoder = || AnswerDecoder::new(Lines, SseLimits::default(), Redaction::default());
//! let body = ["{\"say\":\"ha\"}\n".repeat(20), "{\"over\":true}\n".to_owned()].concat();
//! assert_decoded_as_parsed(decoder, body.as_bytes(), "laughter");
//! assert!(fast_events(Lines, body.as_bytes()) > 10);
//! let read = read_answer(decoder(), AggregatorSettings::default(), &[body.as_bytes()]);
//! assert_eq!(read.response.unwrap().text(), "ha".repeat(20));
//! ```

#![allow(clippy::panic, reason = "a comparison fails by panicking")]

mod answer;
mod counting;
mod deltas;
#[cfg(test)]
mod tests;

pub use answer::{ReadAnswer, read_answer};
pub use counting::fast_events;
pub use deltas::{Decoded, assert_decoded_as_parsed, decoded};
