//! The model against a server: real connections where the network matters, a scripted transport where the clock does.

mod answers;
mod clocks;
mod common;
mod connections;
mod ends;
mod failures;
mod recordings;
mod retries;
mod waits;
