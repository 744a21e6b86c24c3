//! Conversation memory in one SQLite file, for advisor chains: acknowledged appends are on the disk.
//!
#![doc = include_str!("../README.md")]

mod append;
mod connection_queue;
mod conversations;
mod failure;
mod file;
mod load;
mod log;
mod store;

pub use file::{FileReplaced, OpenError};
pub use store::SqliteStore;
