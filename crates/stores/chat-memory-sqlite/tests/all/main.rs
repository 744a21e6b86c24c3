//! The store through its public interface, on files and in memory.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod chain;
mod conformance;
mod crash_points;
mod damaged_pages;
mod opening;
mod replaced;
mod rows;
mod support;
mod writers;
