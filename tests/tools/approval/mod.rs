//! Calls that a person approves: suspended in one process, decided and finished in another.

mod bounds;
mod decisions;
mod memory;
mod process;
mod tools;
