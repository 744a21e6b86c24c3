//! Calls that wait for an approval, and the decisions of users about them.

pub(super) mod decisions;
pub(super) mod waiting;
