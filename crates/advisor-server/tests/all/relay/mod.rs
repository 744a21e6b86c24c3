//! Turns that clients reach at another process than the one that runs them.

mod contract;
mod faults;
mod processes;
mod redis;

mod resumed;
mod stopped;
mod submitted_again;
