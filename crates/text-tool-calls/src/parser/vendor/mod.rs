//! The markups that models of one vendor write.

pub(super) mod deepseek;
mod list;
pub(super) mod tokens;
