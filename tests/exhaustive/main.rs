//! Every point and every schedule: faults, orders of tasks, killed processes, and operations in any order.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod advisor_conformance;
mod crash_advisors;
mod crash_points;
mod processes;
mod schedules;
mod state_machine;
