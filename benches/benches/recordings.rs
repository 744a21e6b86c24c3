//! Counts the instructions of an event of a recorded answer, after its first quarter: `cargo bench -p
//! advisor-benches --bench recordings -- FOLDER`. The default folder is that of `ADVISOR_RECORDINGS`, or the
//! one beside the project.
//!
//! Prints a table of every Chat Completions recording of 60 events or more. More than 5,000 instructions an
//! event are a failure, except as listed below. The counts are those of the whole path from bytes to chunks, by
//! valgrind. They include the end of the answer.

#![allow(
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints its result and fails by panicking"
)]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use advisor_benches::{Recording, Replay, instructions, is_required};

/// The fewest events that a recording in the table has.
const FEWEST: usize = 60;
/// The most instructions that an event may take.
const MOST: u64 = 5_000;
/// Recordings whose events may take more: calls and forms that no other event has, and large results of the server's own
/// tools.
const DEARER: [(&str, u64); 2] = [
    ("avian-moonshotai-kimi-k2-5-reasoning-content-parallel-tools-01", 5_500),
    ("groq-groq-compound-executed-tools-reasoning-01", 5_500),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let [run, folder, name] = arguments.as_slice()
        && run == "--run"
    {
        let recordings = Recording::all_in(Path::new(folder)).unwrap();
        let recording = recordings.into_iter().find(|recording| recording.name == *name).unwrap();
        // Values that are made once per process are not counted.
        recording.replay().finish();
        measured(recording.replay());
        return ExitCode::SUCCESS;
    }
    let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/recordings");
    let named = arguments.first().cloned().or_else(|| std::env::var("ADVISOR_RECORDINGS").ok());
    let folder = named.map_or_else(beside, PathBuf::from);
    if !folder.is_dir() {
        println!("no recordings in {}: give their folder", folder.display());
        return required("ADVISOR_REQUIRE_RECORDINGS");
    }
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("instructions are not counted: valgrind is not installed");
        return required("ADVISOR_REQUIRE_VALGRIND");
    }
    if table(&folder) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs the work that callgrind counts, and nothing else.
#[inline(never)]
fn measured(replay: Replay) {
    replay.finish();
}

/// Prints the table; false if a recording costs too much.
fn table(folder: &Path) -> bool {
    let mut recordings = Recording::all_in(folder).unwrap();
    recordings.retain(|recording| recording.events >= FEWEST);
    println!("{:>7} {:>13}", "events", "instructions");
    let mut passes = true;
    for recording in &recordings {
        let counted = (recording.events - recording.learned) as u64;
        let arguments = [OsStr::new("--run"), folder.as_os_str(), OsStr::new(&recording.name)];
        let each = instructions("recordings::measured", &arguments) / counted;
        let most = DEARER.iter().find(|(name, _)| *name == recording.name).map_or(MOST, |(_, most)| *most);
        passes &= each <= most;
        let remark = if each > most { "  TOO MANY" } else { "" };
        println!("{:>7} {each:>13}  {}{remark}", recording.events, recording.name);
    }
    println!("{} recordings", recordings.len());
    passes
}

fn required(variable: &str) -> ExitCode {
    if is_required(variable) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
