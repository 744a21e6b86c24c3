//! Advisors that select tools.

mod index;
pub(crate) mod only_tools;
pub(crate) mod search;
