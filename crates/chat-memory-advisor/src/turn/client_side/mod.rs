//! The calls that a turn left to its caller, and the turn that continues after them.

pub(crate) mod decided;
pub(crate) mod decided_results;
pub(crate) mod last_turn;
pub(crate) mod starts;
