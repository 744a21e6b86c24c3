//! Tags and entities.

pub(crate) mod entities;
pub(super) mod tag;
