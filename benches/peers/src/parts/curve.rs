//! Measures the memory of a program at even intervals, from its start to its end.

use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use peer_measure::resident_kib;

/// The time between two measurements of memory.
const STEP: Duration = Duration::from_millis(2);
/// The number of measurements in the output.
const SHOWN: usize = 16;

/// Returns the resident memory of a program in MiB, at even intervals from its start to its end.
pub(super) fn of(mut command: Command) -> String {
    let mut child = command.spawn().expect("a client can be started");
    let process = child.id().to_string();
    let mut seen = Vec::new();
    while child.try_wait().expect("a child can be waited for").is_none() {
        // A process that has ended and is not yet waited for has none.
        seen.extend(resident_kib(&process));
        sleep(STEP);
    }
    let last = seen.len().saturating_sub(1);
    let shown = (0..SHOWN).filter_map(|index| seen.get(last * index / (SHOWN - 1)));
    shown.map(|kib| format!("{:.1}", *kib as f64 / 1024.0)).collect::<Vec<_>>().join(", ")
}
