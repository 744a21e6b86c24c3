//! Law T5 with memory: tools that must not run twice, through drops, crashes and turns that are submitted again. Stores that
//! fail, pairs of stops and every exit of a turn are told at the await points, in the program `exhaustive`.

mod stops;
mod submitted_again;
mod two_runs;
mod window;
mod world;
