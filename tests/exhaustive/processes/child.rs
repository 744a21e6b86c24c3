//! A child process of the test: its start, its reports and its end.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child as Process, ChildStdin, ChildStdout, Command, Stdio};

use advisor_tests::prelude::*;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use crate::processes::{race, turn};

/// The job of a child.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Job {
    Turn(turn::Job),
    Race(race::Job),
}

/// A report of a child. Each line is written before the next action of the child.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Report {
    /// It is ready, and waits for the command to begin.
    Ready,
    /// The store has acknowledged these entries; the version is the number of the last one.
    Acknowledged(Vec<Entry>),
    /// The model was sent these messages.
    Asked(Vec<Message>),
    /// The reader of a turn was shown this text of a round.
    Shown { turn: String, round: u32, text: String },
    /// The reader learned that a round has ended.
    RoundEnded { turn: String, round: u32 },
    /// The reader was given the answer.
    Completed { turn: String, text: String },
    /// The reader was given an error of this kind.
    Failed { turn: String, kind: String },
    /// The reader has left, and the turn was closed with its shown text.
    Closed { turn: String },
    /// The reader has left, and the turn has continued to its end.
    Finished { turn: String },
    /// Another turn holds the conversation that it has asked for.
    Held,
    /// It is at the point at which it is to be killed.
    At { point: usize, place: String },
    /// It has come to its end, after these points.
    Over { places: Vec<String> },
}

/// A child that runs. It is killed when it is dropped.
pub(crate) struct Child {
    process: Process,
    /// A waiting child ends when this closes, so that none is left if the test itself is killed.
    stdin: ChildStdin,
    reports: Option<Reports>,
}

/// The reports of a child, until it has ended.
pub(crate) struct Reports(BufReader<ChildStdout>);

/// The signal that ends a killed process, unlike one that aborted.
const SIGKILL: i32 = 9;
const VARIABLE: &str = "ADVISOR_TEST_CHILD";
/// The beginning of our lines, which tells them from those of the test harness.
const MARK: char = '\u{1}';
/// Far beyond the time of any job, so that a hanging child fails the test.
const LONGEST: Duration = Duration::from_secs(300);

impl Child {
    pub(crate) fn begin(job: &Job) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "processes::child::the_child", "--nocapture", "--test-threads=1"])
            .env(VARIABLE, serde_json::to_string(job).unwrap())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let (stdin, stdout) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        Self { process, stdin, reports: Some(Reports(BufReader::new(stdout))) }
    }

    /// Allows the child to begin its work this many times.
    pub(crate) fn go(&mut self, times: usize) {
        self.stdin.write_all("go\n".repeat(times).as_bytes()).unwrap();
    }

    /// Returns the next report, or `None` if the child has ended.
    pub(crate) fn next(&mut self) -> Option<Report> {
        self.reports.as_mut().unwrap().next()
    }

    /// Takes the reports, for another reader.
    pub(crate) fn take_reports(&mut self) -> Reports {
        self.reports.take().unwrap()
    }

    /// Kills the child. Returns whether it was still running.
    pub(crate) fn kill(&mut self) -> bool {
        self.process.kill().unwrap();
        let status = self.process.wait().unwrap();
        let killed = status.signal() == Some(SIGKILL);
        assert!(killed || status.success(), "it had failed: {status}");
        killed
    }

    /// Returns whether the child ended by itself and without an error.
    pub(crate) fn ended_well(&mut self) -> bool {
        self.process.wait().unwrap().success()
    }
}

impl Iterator for Reports {
    type Item = Report;

    fn next(&mut self) -> Option<Report> {
        let mut line = String::new();
        loop {
            line.clear();
            if self.0.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            // The last line of a child that was killed may be a part of one.
            if let Some((_, report)) = line.split_once(MARK)
                && line.ends_with('\n')
            {
                return Some(serde_json::from_str(report).unwrap_or_else(|error| panic!("{error}: {line}")));
            }
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Runs the job of a child. In the test program itself there is no job.
#[test]
fn the_child() {
    let Ok(job) = std::env::var(VARIABLE) else { return };
    let job = serde_json::from_str(&job).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let work = async {
            match job {
                Job::Turn(job) => turn::run(job).await,
                Job::Race(job) => race::run(job).await,
            }
        };
        timeout(LONGEST, work).await.expect("the child hangs");
    });
}

/// Sends a report to the parent.
pub(crate) fn tell(report: &Report) {
    let line = format!("{MARK}{}\n", serde_json::to_string(report).unwrap());
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(line.as_bytes()).unwrap();
    stdout.flush().unwrap();
}

/// Waits until the child is killed or may continue. Ends when the parent is gone.
pub(crate) fn stand() {
    if !begun_when_told() {
        std::process::exit(1);
    }
}

/// Waits until the parent lets it begin. Gives whether the parent is still there.
pub(crate) fn begun_when_told() -> bool {
    std::io::stdin().read_line(&mut String::new()).unwrap() > 0
}
