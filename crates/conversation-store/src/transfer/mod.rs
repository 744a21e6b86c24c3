//! Conversations as JSON Lines, on top of any store.

pub(crate) mod export;
pub(crate) mod import;
