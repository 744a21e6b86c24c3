//! Code that the hand-written clients share.

pub mod lines;
pub mod wire;
