//! Suites for authors of advisors, stores and providers of language models: the laws of a chain, faults at
//! every await point.
//!
#![doc = include_str!("../README.md")]
//!
//! A suite panics at what it finds, with the reason and the events. The crate that uses one needs tokio with `macros` and
//! `rt`.
//!
//! # Speed
//! The suites try thousands of cases. Unoptimised, they take several times as long. Put these lines into the `Cargo.toml`
//! of your workspace, except for packages that your tests do not use:
//!
//! ```toml
//! [profile.dev.package]
//! advisor-conformance.opt-level = 1
//! advisor-core.opt-level = 1
//! advisor-testkit.opt-level = 1
//! chat-memory-advisor.opt-level = 1
//! conversation-store.opt-level = 1
//! message-aggregator.opt-level = 1
//! tool-call-advisor.opt-level = 1
//! dashmap.opt-level = 1
//! futures-util.opt-level = 1
//! serde_json.opt-level = 1
//! tokio.opt-level = 1
//! ```

#![allow(missing_debug_implementations, reason = "nobody prints the parts of a suite")]

#[cfg(feature = "advisor")]
pub mod advisor;
#[cfg(feature = "crash")]
pub mod crash;
#[cfg(feature = "provider")]
pub mod provider;
#[cfg(any(feature = "advisor", feature = "provider"))]
mod run;
#[cfg(any(feature = "advisor", feature = "crash"))]
mod sent;
#[cfg(feature = "store")]
pub mod store;
#[cfg(feature = "vectors")]
pub mod vectors;
