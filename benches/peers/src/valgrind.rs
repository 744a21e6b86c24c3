//! Counts that are the same on a busy machine. The programs are those whose time is measured: nothing is built
//! into them for counting.

use std::path::Path;
use std::process::Command;

/// The version that is installed, if one is.
pub(crate) fn version() -> Option<String> {
    let output = Command::new("valgrind").arg("--version").output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Instructions of one run of a program.
pub(crate) fn instructions(program: &Path, arguments: &[String]) -> u64 {
    let report = run(&["--tool=callgrind", "--callgrind-out-file=/dev/null"], program, arguments);
    number_after(&report, "Collected : ").unwrap_or_else(|| panic!("no count of instructions:\n{report}"))
}

/// Allocations of one run of a program, and their bytes.
pub(crate) fn allocations(program: &Path, arguments: &[String]) -> (u64, u64) {
    let report = run(&["--undef-value-errors=no", "--leak-check=no"], program, arguments);
    let usage = number_after(&report, "total heap usage: ").zip(number_after(&report, " frees, "));
    usage.unwrap_or_else(|| panic!("no count of allocations:\n{report}"))
}

fn run(options: &[&str], program: &Path, arguments: &[String]) -> String {
    let output = Command::new("valgrind")
        .args(options)
        .arg(program)
        .args(arguments)
        .output()
        .expect("valgrind is installed");
    let report = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{} failed under valgrind:\n{report}", program.display());
    report
}

fn number_after(report: &str, label: &str) -> Option<u64> {
    let (_, rest) = report.split_once(label)?;
    let digits = rest.split(|c: char| !c.is_ascii_digit() && c != ',').next()?;
    digits.replace(',', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_with_their_commas() {
        let report = "==1==   total heap usage: 1,234 allocs, 1,230 frees, 56,789 bytes allocated\n";
        assert_eq!(number_after(report, "total heap usage: "), Some(1234));
        assert_eq!(number_after(report, " frees, "), Some(56_789));
        assert_eq!(number_after("==1== Collected : 1700\n", "Collected : "), Some(1700));
    }
}
