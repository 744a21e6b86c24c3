//! Replacement of words and patterns, at every split of the text.

mod common;
mod patterns;
mod words;
