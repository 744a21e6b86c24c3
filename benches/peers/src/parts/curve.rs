use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use peer_measure::resident_kib;

/// How long memory is left alone between two looks at it.
const STEP: Duration = Duration::from_millis(2);
/// How many of the looks are shown.
const SHOWN: usize = 16;

/// What a program has resident over time, at even distances from its start to its end, in MiB.
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
