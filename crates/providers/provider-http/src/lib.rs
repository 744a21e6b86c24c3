//! Shared parts of HTTP providers of language models: transport, timeouts, retries, framing of streams,
//! redaction.
//!
#![doc = include_str!("../README.md")]
//!
//! A [`Server`](server::Server) has the address, the key and the headers, and makes a [`Call`](server::Call) of a
//! request body. It does what all providers share:
//!
//! - sends the call with a [`Transport`](transport::Transport) under [`Timeouts`](timeouts::Timeouts), and retries
//!   according to a [`Backoff`](backoff::Backoff);
//! - decodes the answer with an [`AnswerDecoder`](answer::AnswerDecoder), which knows event streams and lines of JSON;
//! - types every [`failure`], and passes text from a server through [`Redaction`](redaction::Redaction) before it
//!   appears in errors and logs.
//!
//! # Features
//! One TLS backend is enough. Of several, `native-tls` takes precedence over `rustls-aws-lc`, and that over
//! `rustls-ring`. Without one, only `http://` works.
//!
//! | feature | TLS backend | by default |
//! | --- | --- | --- |
//! | `rustls-ring` | rustls with ring | yes |
//! | `rustls-aws-lc` | rustls with aws-lc | no |
//! | `native-tls` | that of the operating system | no |

pub mod answer;
pub mod backoff;
mod citation;
mod error;
pub mod failure;
mod joined_text;
pub mod json;
mod local;
pub mod media;
pub mod names;
mod path_segment;
pub mod recording;
pub mod redaction;
pub mod server;
pub mod sse;
pub mod timeouts;
mod tool_result;
pub mod transport;
pub mod written;

pub use citation::citation_of;
pub use joined_text::joined_text;
pub use tool_result::parts_of_result;
