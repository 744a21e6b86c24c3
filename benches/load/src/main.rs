//! Measures the server under 2,000 concurrent streams, beside a bare axum handler that sends the same bytes.
//!
//! Each stream has 20 chunks a second for ten seconds. The chain is a model and a memory in memory; its client speaks
//! Chat Completions over loopback. Chain, bare handler and client are separate processes of this program. The two
//! servers alternate, so that other work of the machine affects both.
//!
//! Run it with `cargo bench -p advisor-load`; it takes a minute and a quarter. It fails if a stream or a chunk is lost,
//! or if the chain takes more than twice the CPU time of the bare handler. With `-- --smoke` it has 50 streams of two
//! seconds, and only a loss is a failure.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a benchmark prints its result and fails by panicking"
)]

mod client;
mod process;
mod report;
mod servers;

use std::process::ExitCode;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::process::ServerProcess;
use crate::report::{Report, Round};
use crate::servers::Program;

/// The amount of work.
#[derive(Debug, Clone, Copy)]
struct Load {
    streams: usize,
    /// The chunks of each stream.
    chunks: usize,
    /// The number of times that each server has the streams.
    rounds: usize,
}

const FULL: Load = Load { streams: 2_000, chunks: 200, rounds: 3 };
const SMOKE: Load = Load { streams: 50, chunks: 40, rounds: 1 };

/// The most CPU time of the chain, in multiples of that of the bare handler.
const MOST_TIMES: f64 = 2.0;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    allow_many_files();
    match words.as_slice() {
        ["serve", program] => {
            servers::run(Program::named(program));
            ExitCode::SUCCESS
        }
        ["--smoke"] => exit_code(measure(SMOKE).has_all()),
        [] => {
            let report = measure(FULL);
            exit_code(report.has_all() && report.times() <= MOST_TIMES)
        }
        _ => panic!("the only argument is `--smoke`, not {words:?}"),
    }
}

fn exit_code(passes: bool) -> ExitCode {
    if passes { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn measure(load: Load) -> Report {
    let round = || Round { chain: one(Program::Chain, load), bare: one(Program::Bare, load) };
    let report = Report::new(load, (0..load.rounds).map(|_| round()).collect());
    print!("{report}");
    report
}

/// Runs one server, and reads all streams from it.
fn one(program: Program, load: Load) -> report::Measured {
    let server = ServerProcess::start(program);
    // What a process makes once does not count.
    client::read(server.address(), Load { streams: 1, chunks: 1, rounds: 1 });
    let before = server.usage();
    let read = client::read(server.address(), load);
    report::Measured { read, before, after: server.usage() }
}

/// Lets this process, and those that it starts, open as many files as it may: each connection is one.
fn allow_many_files() {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, most, most).unwrap();
    assert!(most > FULL.streams as u64 + 100, "{most} open files are not enough: raise `ulimit -Hn`");
}
