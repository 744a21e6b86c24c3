//! `Meter`: the CPU time and the wall time of this process from a start on.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

use crate::monotonic_ns;

/// The resources that this process has used so far.
pub(crate) struct Meter {
    cpu_ns: u64,
    wall_ns: u64,
}

impl Meter {
    pub(crate) fn start() -> Self {
        Self { cpu_ns: cpu_ns(), wall_ns: monotonic_ns() }
    }

    /// CPU time since the start, user and kernel.
    pub(crate) fn cpu_ns(&self) -> u64 {
        cpu_ns() - self.cpu_ns
    }

    pub(crate) fn wall_ns(&self) -> u64 {
        monotonic_ns() - self.wall_ns
    }
}

fn cpu_ns() -> u64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("a process may ask for its own usage");
    nanoseconds(usage.user_time()) + nanoseconds(usage.system_time())
}

fn nanoseconds(time: TimeVal) -> u64 {
    time.tv_sec() as u64 * 1_000_000_000 + time.tv_usec() as u64 * 1_000
}
