//! Guards on input and on output: at every split of the text, and in small chains.

mod blocks;
mod input;
mod output;
