//! Replacement of words and patterns, at every split of the text.
//!
//! | scenario of string replacement | test |
//! | --- | --- |
//! | a pattern across two chunks, one character at a time, at the end of the stream; several patterns | `words::law_s5_words_are_replaced_at_every_split` |
//! | patterns of one character are not held back | `words::law_s2_only_beginnings_of_words_are_held_back` |
//! | flushed once at the end; reset for each block | `words::law_s4_no_word_spans_two_blocks` |
//! | capital variants | `words::letter_case_may_be_ignored` |
//! | characters with a meaning in patterns are literal; counts are right | `words::law_s5_words_are_replaced_at_every_split` |
//! | reasoning and arguments are untouched | `words::chosen_kinds_are_edited`; by default reasoning is edited, too |
//! | the original event is not changed | no meaning here: chunks are values |
//! | requests: texts and blocks; results and the system message are untouched | `requests::user_text_of_requests_is_edited_by_its_own_method`; policies are about answers |
//! | requests: results of tools | `Message::map_text`: `message-aggregator`, `map_text::texts_change_and_everything_else_stays` |

mod common;
mod patterns;
mod requests;
mod words;
