//! Counts of instructions, by running the program again under callgrind.
//!
//! `gungraun` needs a runner of exactly its version, which is installed separately, and counts whole calls.
//! These benchmarks count one more of something: the difference of a long run and a short one.

use std::ffi::OsStr;
use std::process::Command;

/// Returns the number of instructions in `function` and below it, in a run of this program with these arguments.
///
/// # Panics
/// If callgrind cannot run the program, or counts nothing.
pub fn instructions(function: &str, arguments: &[&OsStr]) -> u64 {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(format!("--toggle-collect={function}"))
        .arg(std::env::current_exe().unwrap())
        .args(arguments)
        .output()
        .unwrap();
    let report = String::from_utf8_lossy(&output.stderr);
    let count = report.lines().find_map(|line| line.split_once("Collected : "));
    let count = count.and_then(|(_, count)| count.trim().parse().ok());
    count.filter(|count| *count > 0).unwrap_or_else(|| panic!("nothing was counted: {report}"))
}

/// Returns whether an environment variable makes a missing tool a failure.
pub fn is_required(variable: &str) -> bool {
    std::env::var(variable).is_ok_and(|required| required == "1")
}
