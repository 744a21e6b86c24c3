//! The stream of an answer: chunks, and the work that is done before anybody outside learns that it is complete.

pub(crate) mod batches;
pub(crate) mod chunk_stream;
pub(crate) mod edit;
pub(crate) mod end_when;
pub(crate) mod from_deltas;
pub(crate) mod in_span;
