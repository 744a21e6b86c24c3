//! What providers of language models over HTTP share, and nothing that one vendor has.
//!
//! A provider turns a request into bytes, sends them with a [`Transport`](transport::Transport) under its
//! [`Timeouts`](timeouts::Timeouts), asks again as its [`Backoff`](backoff::Backoff) says, and takes the bytes of the answer
//! apart: [`SseDecoder`](sse::SseDecoder), and [`FastPath`](fast_path::FastPath) for events that look like one before. What a server says goes into errors and logs through
//! [`Redaction`](redaction::Redaction).
//!
//! # Features
//! One TLS backend is enough. With several, `native-tls` goes before `rustls-aws-lc` before `rustls-ring`; with none, only
//! `http://` works.
//!
//! | feature | what it brings | by default |
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

/// The README's examples are tests, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
