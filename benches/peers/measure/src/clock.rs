//! `monotonic_ns`: a clock that all processes of the machine share.

use nix::time::{ClockId, clock_gettime};

/// Nanoseconds of a clock that all processes of the machine share.
#[must_use]
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("the clock is always there");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}
