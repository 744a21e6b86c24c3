//! Turns that clients reach at another process than the one that runs them.

mod contract;
mod faults;
pub(crate) mod in_memory;
pub(crate) mod processes;
mod redis;

mod resumed;
mod stopped;
mod submitted_again;
