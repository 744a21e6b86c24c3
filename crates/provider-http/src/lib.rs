//! Building blocks that HTTP providers of language models share. Nothing here is specific to one vendor.
//!
//! A provider encodes a request and sends it with a [`Transport`](transport::Transport) under its
//! [`Timeouts`](timeouts::Timeouts). It retries according to its [`Backoff`](backoff::Backoff). It decodes the
//! answer with [`SseDecoder`](sse::SseDecoder), and with [`FastPath`](fast_path::FastPath) for events that have
//! the form of an earlier one. Text from a server passes [`Redaction`](redaction::Redaction) before it appears in
//! errors and logs.
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

pub mod backoff;
pub mod error;
pub mod fast_path;
pub mod redaction;
pub mod sse;
pub mod timeouts;
pub mod transport;

/// Tests the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
