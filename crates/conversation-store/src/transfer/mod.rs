//! Export and import of conversations as JSON Lines, for any store.

pub(crate) mod export;
pub(crate) mod import;
