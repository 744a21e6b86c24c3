//! What the machine is, and which of its cores runs what.

use std::fs;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::Pid;

/// Has this process, and those that it starts from now on, run on one core; false if it cannot.
pub(crate) fn pin(core: usize) -> bool {
    let mut cores = CpuSet::new();
    cores.set(core).and_then(|()| sched_setaffinity(Pid::from_raw(0), &cores)).is_ok()
}

/// Has this process, and those that it starts, open as many files as it may: each connection is one.
pub(crate) fn allow_many_files() {
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        // Where it stays as it is, the first stream too many says so.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}

/// How many processes wanted to run in the last minute, five and fifteen.
pub(crate) fn load() -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

/// How many cores, and which.
pub(crate) fn processor() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let mut models = info.lines().filter_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let name = models.next().map_or("unknown", |(_, name)| name);
    format!("{} × {name}", models.count() + 1)
}
