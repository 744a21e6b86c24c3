//! What each case costs, in instructions and allocations: `cargo bench -p advisor-benches --bench counts`.
//!
//! Counts, not seconds: they are the same on a busy machine. A count is the difference between a longer and a shorter run,
//! over what lies between them, so that what is done once is left out. Instructions are counted by valgrind; with
//! `ADVISOR_REQUIRE_VALGRIND=1` it is a failure if they cannot be.
//!
//! `benches/baselines/` holds the counts of each compiler and valgrind that they were taken with. More than 3 % above them is a
//! failure; where nothing was taken with these, it says so. With `-- --save` the counts become the baseline. Other words
//! choose the cases that hold them: `-- "tool loop"`.

#![allow(
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a benchmark prints its result and fails by panicking"
)]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use advisor_benches::{Case, Work};

/// How much more than the baseline is a failure: a part of it, and so much at least, which chance may bring.
const MORE: f64 = 1.03;
const INSTRUCTIONS: f64 = 3.0;
const ALLOCATIONS: f64 = 0.01;

/// What one more of a case's units costs.
#[derive(Debug, Clone, Copy)]
struct Counts {
    instructions: f64,
    allocations: f64,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let [run, case, size] = arguments.as_slice()
        && run == "--run"
    {
        let case = advisor_benches::all().into_iter().find(|other| other.name == *case).unwrap();
        measured(case.work(size.parse().unwrap()));
        return ExitCode::SUCCESS;
    }
    let (save, wanted): (Vec<_>, Vec<_>) = arguments.into_iter().partition(|argument| argument == "--save");
    let Some(valgrind) = version("valgrind") else {
        println!("instructions are not counted: valgrind is not installed");
        let required = std::env::var("ADVISOR_REQUIRE_VALGRIND").is_ok_and(|required| required == "1");
        return if required { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    };
    let baseline = Baseline::read(&format!("{} {valgrind}", version("rustc").unwrap()));
    let chosen = |case: &Case| wanted.is_empty() || wanted.iter().any(|word| case.name.contains(word));
    let cases: Vec<_> = advisor_benches::all().into_iter().filter(chosen).collect();
    println!("{:<46} {:>14} {:>12}  {:<8} baseline", "", "instructions", "allocations", "each");
    let counted: Vec<_> =
        cases.iter().map(|case| (case.name.clone(), baseline.compare(case, count(case)))).collect();
    if !save.is_empty() {
        baseline.write(counted.iter().map(|(name, (counts, _))| (name.clone(), *counts)));
    } else if baseline.counts.is_empty() {
        println!("nothing to compare with: there are no counts of {}", baseline.file.display());
    }
    let worse = save.is_empty() && counted.iter().any(|(_, (_, worse))| *worse);
    if worse { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// What callgrind counts, and nothing else.
#[inline(never)]
fn measured(work: Work) {
    work();
}

#[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn count(case: &Case) -> Counts {
    let (short, long) = case.sizes;
    let each =
        |count: &dyn Fn(usize) -> u64| (count(long) as f64 - count(short) as f64) / (long - short) as f64;
    // What is made once per process is not counted.
    measured(case.work(1));
    let allocations = |size| {
        let work = case.work(size);
        allocation_counter::measure(|| measured(work)).count_total
    };
    Counts { instructions: each(&|size| instructions(&case.name, size)), allocations: each(&allocations) }
}

fn instructions(case: &str, size: usize) -> u64 {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=counts::measured"])
        .arg(std::env::current_exe().unwrap())
        .args(["--run", case, &size.to_string()])
        .output()
        .unwrap();
    let report = String::from_utf8_lossy(&output.stderr);
    let count = report.lines().find_map(|line| line.split_once("Collected : "));
    count.and_then(|(_, count)| count.trim().parse().ok()).unwrap_or_else(|| panic!("{report}"))
}

/// The first line of what a program says of its version; `None` if it is not there.
fn version(program: &str) -> Option<String> {
    let output = Command::new(program).arg("--version").output().ok()?;
    String::from_utf8_lossy(&output.stdout).lines().next().map(str::to_owned)
}

/// The counts that were taken before with the same tools.
struct Baseline {
    file: PathBuf,
    counts: BTreeMap<String, Counts>,
}

impl Baseline {
    fn read(tools: &str) -> Self {
        let word = |letter: char| if letter.is_ascii_alphanumeric() || letter == '.' { letter } else { '-' };
        let name: String = format!("{tools} {}", std::env::consts::ARCH).chars().map(word).collect();
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("baselines");
        let file = folder.join(format!("{}.tsv", name.replace("--", "-")));
        let lines = std::fs::read_to_string(&file).unwrap_or_default();
        Self { file, counts: lines.lines().filter_map(Self::line).collect() }
    }

    fn line(line: &str) -> Option<(String, Counts)> {
        let mut fields = line.split('\t');
        let name = fields.next()?.to_owned();
        let mut number = || fields.next()?.parse().ok();
        Some((name, Counts { instructions: number()?, allocations: number()? }))
    }

    /// Prints the counts beside those of the baseline, and tells whether they are worse.
    fn compare(&self, case: &Case, now: Counts) -> (Counts, bool) {
        let before = self.counts.get(&case.name);
        let is_worse = |now: f64, before: f64, chance: f64| now > before * MORE && now > before + chance;
        let worse = before.is_some_and(|before| {
            is_worse(now.instructions, before.instructions, INSTRUCTIONS)
                || is_worse(now.allocations, before.allocations, ALLOCATIONS)
        });
        let before = before.map(|before| format!("{:.0} {:.3}", before.instructions, before.allocations));
        let (Counts { instructions, allocations }, mark) = (now, if worse { "  WORSE" } else { "" });
        let before = before.unwrap_or_default();
        println!(
            "{:<46} {instructions:>14.0} {allocations:>12.3}  {:<8} {before}{mark}",
            case.name, case.unit
        );
        (now, worse)
    }

    /// Keeps these counts, and of the other cases what was known.
    fn write(mut self, counts: impl Iterator<Item = (String, Counts)>) {
        self.counts.extend(counts);
        let line = |(name, counts): (&String, &Counts)| {
            format!("{name}\t{:.1}\t{:.4}\n", counts.instructions, counts.allocations)
        };
        std::fs::create_dir_all(self.file.parent().unwrap()).unwrap();
        std::fs::write(&self.file, self.counts.iter().map(line).collect::<String>()).unwrap();
        println!("written: {}", self.file.display());
    }
}
