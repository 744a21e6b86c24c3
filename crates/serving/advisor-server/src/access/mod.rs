//! Who may ask, and how much.

pub(crate) mod limits;
pub(crate) mod origins;
pub(crate) mod tokens;
