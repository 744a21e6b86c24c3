//! Models of [rig](rig_core) as leaves of an advisor chain.
//!
//! [`RigModel`] is a [`ChatModel`](advisor_core::ChatModel) over a completion model that the caller has configured. Its
//! provider, key, address and HTTP client stay as they are.

mod convert;
mod error;
mod model;
mod request;

pub use model::RigModel;

/// Tests the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
