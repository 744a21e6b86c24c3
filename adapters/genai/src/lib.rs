//! Models of [genai] as leaves of an advisor chain.
//!
//! [`GenaiModel`] is a [`ChatModel`](advisor_core::ChatModel) over a client that the caller has configured: its
//! resolvers, keys, endpoints and default options stay as they are.

mod convert;
mod error;
mod model;
mod request;

pub use model::GenaiModel;

/// Tests the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
