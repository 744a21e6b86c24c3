//! `peak_kib` and `resident_kib`: the memory of a process, as Linux reports it.

use std::fs;

/// The most memory that this process ever had resident, in KiB.
///
/// Not `ru_maxrss`: that one is inherited from a parent that was larger.
#[must_use]
pub fn peak_kib() -> u64 {
    field("self", "VmHWM:").expect("Linux tells every process its own peak")
}

/// Returns the resident memory of `process`, a number or `self`, in KiB; `None` once it has ended.
#[must_use]
pub fn resident_kib(process: &str) -> Option<u64> {
    field(process, "VmRSS:")
}

fn field(process: &str, name: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}
