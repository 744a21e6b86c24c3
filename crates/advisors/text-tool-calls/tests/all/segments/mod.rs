//! The segment layer: handlers, their ends and callbacks, and the JSON form of events.

mod common;
mod ends;
mod native;
mod parsing;
