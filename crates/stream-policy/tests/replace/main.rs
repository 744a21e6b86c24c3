//! Replacement of words and patterns, at every split of the text.
//!
//! | scenario of string replacement | test |
//! | --- | --- |
//! | a pattern across two chunks, one character at a time, at the end of the stream; several patterns | `words::law_s5_words_are_replaced_at_every_split` |
//! | patterns of one character are not held back | `words::law_s2_only_beginnings_of_words_are_held_back` |
//! | flushed once at the end; reset for each block | `words::law_s4_no_word_spans_two_blocks` |
//! | capital variants | `words::letter_case_is_kept` |
//! | characters with a meaning in patterns are literal; counts are right | `words::law_s5_words_are_replaced_at_every_split` |
//! | reasoning and arguments are untouched | `words::chosen_kinds_are_edited`; by default reasoning is edited, too |
//! | the original event is not changed | no meaning here: chunks are values |
//! | requests: texts, blocks, results; the system message is untouched | no meaning here: policies are about answers. `ChatRequest::map_user_text` edits what a user writes |
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod common;
mod patterns;
mod words;
