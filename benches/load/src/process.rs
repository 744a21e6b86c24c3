//! A server in a separate process, and the resources that it uses.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::servers::Program;

/// A server, which ends when this value is dropped, or when the driver is killed: its standard input then ends.
pub(crate) struct ServerProcess {
    child: Child,
    address: SocketAddr,
}

/// The resources that a process has used so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Usage {
    /// User and kernel time.
    pub(crate) cpu: Duration,
    /// Resident memory, now and at most.
    pub(crate) now_kib: u64,
    pub(crate) peak_kib: u64,
}

impl ServerProcess {
    pub(crate) fn start(program: Program) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["serve", program.name()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        Self { child, address: address.trim().parse().unwrap() }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn usage(&self) -> Usage {
        let read = |file: &str| std::fs::read_to_string(format!("/proc/{}/{file}", self.child.id())).unwrap();
        let (stat, status) = (read("stat"), read("status"));
        // The second field is the program's name, which may have spaces. Then field 14 is user time, field 15 kernel
        // time, in ticks of a hundredth of a second.
        let fields = stat.rsplit_once(") ").unwrap().1.split(' ');
        let ticks: u64 = fields.skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum();
        let kib = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.trim_matches(|letter: char| !letter.is_ascii_digit()).parse().unwrap()
        };
        Usage { cpu: Duration::from_millis(ticks * 10), now_kib: kib("VmRSS:"), peak_kib: kib("VmHWM:") }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // There is nothing to be done about a server that has ended otherwise.
        let _ = self.child.wait();
    }
}
