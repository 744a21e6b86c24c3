//! Decodes bodies with a wire format of `provider-http`, in any pieces.
//!
//! A wire format is correct if every way to cut a body gives the same deltas. These
//! functions read a body in one way; [`assert_same_at_any_split`] compares several.
//!
//! ```
//! use std::collections::VecDeque;
//!
//! use advisor_core::{AggregatorSettings, Delta, FinishReason};
//! use advisor_test_support::decoding::{assert_same_at_any_split, read_answer};
//! use provider_http::answer::{AnswerDecoder, AnswerEvent, Framing, Meaning, WireFormat};
//! use provider_http::redaction::Redaction;
//! use provider_http::sse::SseLimits;
//!
//! /// A format of lines: `{"say":"text"}` and `{"over":true}`.
//! #[derive(Debug)]
//! struct Lines;
//!
//! impl WireFormat for Lines {
//!     const FRAMING: Framing = Framing::Lines;
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
//! assert_same_at_any_split(decoder, body.as_bytes(), "laughter");
//! let read = read_answer(decoder(), AggregatorSettings::default(), &[body.as_bytes()]);
//! assert_eq!(read.response.unwrap().text(), "ha".repeat(20));
//! ```

#![allow(clippy::panic, reason = "a comparison fails by panicking")]

mod answer;
mod deltas;
#[cfg(test)]
mod tests;

pub use answer::{ReadAnswer, read_answer};
pub use deltas::{Decoded, assert_same_at_any_split, decoded};
