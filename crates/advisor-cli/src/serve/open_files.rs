//! Raises the limit of open files, and bounds the connections by it.

use std::io::Write;

use advisor_server::ServerLimits;

/// The part of the open files that is not for connections of clients: connections to the model, and the file of memory.
const RESERVE: usize = 4;

/// The files that are neither: those of memory and of tools.
const OWN: usize = 64;

/// Returns limits whose connections and turns leave files for one another and for other things, after raising the number of
/// files that the process may open.
pub(super) fn within_open_files(mut limits: ServerLimits) -> ServerLimits {
    let with_reserve = limits.open_connections.saturating_mul(RESERVE) / (RESERVE - 1) + RESERVE;
    let with_turns = limits.open_connections.saturating_add(limits.running_turns).saturating_add(OWN);
    let Some(files) = raised_to(with_reserve.max(with_turns)) else { return limits };
    let connections = connections(files).min(limits.open_connections);
    // Each has a connection to the model, also after its client has gone.
    let turns = turns(files, connections).min(limits.running_turns);
    if connections < limits.open_connections || turns < limits.running_turns {
        // A closed standard error does not stop the server.
        drop(writeln!(
            std::io::stderr(),
            "{connections} connections and {turns} turns are served at once: the process may open {files} files (`ulimit -Hn`)"
        ));
    }
    (limits.open_connections, limits.running_turns) = (connections, turns);
    limits
}

/// Returns the turns of a process that may open this many files, beside these connections.
fn turns(files: usize, connections: usize) -> usize {
    files.saturating_sub(connections).saturating_sub(OWN.min(files / (2 * RESERVE))).max(1)
}

/// Returns the connections of a process that may open this many files.
fn connections(files: usize) -> usize {
    files.saturating_sub(files / RESERVE).max(1)
}

/// Raises the number of files that the process may open, at most to the hard limit, and returns it if it is known.
#[cfg(unix)]
fn raised_to(wanted: usize) -> Option<usize> {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    let wanted = u64::try_from(wanted).ok()?.min(hard);
    let raised = highest(soft, wanted, |files| setrlimit(Resource::RLIMIT_NOFILE, files, hard).is_ok());
    Some(usize::try_from(raised).unwrap_or(usize::MAX))
}

/// Sets the highest number up to `wanted` that the system accepts, or leaves the soft limit, and returns it. macOS refuses
/// numbers below the hard limit, too.
#[cfg(unix)]
fn highest(soft: u64, wanted: u64, mut set: impl FnMut(u64) -> bool) -> u64 {
    let lower = |files: &u64| Some(files - (files / 8).max(1));
    let mut numbers = std::iter::successors(Some(wanted), lower).take_while(|files| *files > soft);
    numbers.find(|files| set(*files)).unwrap_or(soft)
}

#[cfg(not(unix))]
fn raised_to(_: usize) -> Option<usize> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn lower_number_is_set_if_the_system_refuses() {
        let set = |most| highest(256, 10_926, |files| files <= most);
        assert_eq!([set(20_000), set(10_240), set(300), set(0)], [10_926, 9_561, 264, 256]);
        assert_eq!(highest(1_024, 100, |_| panic!("the soft limit is high enough")), 1_024);
    }

    #[test]
    fn a_quarter_of_the_files_is_no_connection() {
        for (files, most) in [(1_024, 768), (64, 48), (4, 3), (1, 1), (0, 1)] {
            assert_eq!(connections(files), most, "{files}");
        }
        for (files, most) in [(1_024, 192), (64, 8), (4, 1), (0, 1)] {
            assert_eq!(turns(files, connections(files)), most, "{files}");
        }
        let default = ServerLimits::default().open_connections;
        assert!(connections(default * 4 / 3 + 4) >= default);
        let mut lower = ServerLimits::default();
        lower.open_connections = 5;
        assert_eq!(within_open_files(lower).open_connections, 5, "a lower bound stays");
    }
}
