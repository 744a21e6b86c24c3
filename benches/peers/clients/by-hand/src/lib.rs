//! What the clients made by hand share.

pub mod lines;
pub mod wire;
