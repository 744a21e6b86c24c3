//! The stream of an answer: its chunks, and the work that runs before outer advisors learn that it is complete.

pub(crate) mod attempts;
pub(crate) mod chunk_stream;
pub(crate) mod edit;
pub(crate) mod item;
