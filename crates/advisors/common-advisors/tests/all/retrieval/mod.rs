//! Retrieval of documents and of past turns.

mod documents;
mod past_turns;
