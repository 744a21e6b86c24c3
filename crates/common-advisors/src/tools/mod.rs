//! Advisors that select tools.

pub(crate) mod only_tools;
pub(crate) mod search;
