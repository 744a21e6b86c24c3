//! Describes the machine, and assigns its cores.

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

/// Returns the load averages of the last one, five and fifteen minutes.
pub(crate) fn load() -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

/// Returns the number of cores and the processor's name.
pub(crate) fn processor() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let mut models = info.lines().filter_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let name = models.next().map_or("unknown", |(_, name)| name);
    format!("{} × {name}", models.count() + 1)
}
