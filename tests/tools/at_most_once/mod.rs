//! Law T5 with memory: tools that must not run twice, through drops, crashes, failing stores and every exit of a turn.

mod exits;
mod faults;
mod stops;
mod submitted_again;
mod two_runs;
mod window;
mod world;
