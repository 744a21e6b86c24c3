//! Models of [async-openai](async_openai) as leaves of an advisor chain.
//!
//! [`AsyncOpenAiModel`] is a [`ChatModel`](advisor_core::ChatModel) over a client that the caller has configured:
//! its address, key, HTTP client, middleware and retries stay as they are.
//!
//! # Features
//! `byot` sends the extra fields of options and reads reasoning. It turns on the feature of the same name of
//! async-openai. That one also changes the client's own `create_stream`, which then needs `stream: true` in its
//! request.

mod convert;
mod error;
mod model;
mod request;

pub use model::AsyncOpenAiModel;

/// Tests the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
