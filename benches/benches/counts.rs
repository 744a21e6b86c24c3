//! Counts the instructions and allocations of each case: `cargo bench -p advisor-benches --bench counts`.
//!
//! Counts, unlike seconds, are the same on a busy machine. A count is the difference between a longer and a
//! shorter run, per unit between them, so one-time costs cancel out. Valgrind counts the instructions. With
//! `ADVISOR_REQUIRE_VALGRIND=1`, a missing valgrind is a failure.
//!
//! `benches/baselines/` has the counts for each combination of compiler, valgrind, C library and processor. A
//! count more than 3 % above its baseline is a failure, and so is a case that only one side has. Without a
//! baseline for this combination, the program says so. With `-- --save` the counts become the baseline. Other
//! words select the cases whose names contain them: `-- "tool loop"`.
//!
//! Beside that, an event of a wire format and a chunk of a turn have bounds, whatever the baseline is.

#![allow(
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a benchmark prints its result and fails by panicking"
)]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use advisor_benches::{Case, Work, instructions, is_required};

/// The factor above the baseline that counts as a failure, and the smallest differences that do, since counts
/// vary by chance.
const MORE: f64 = 1.03;
const INSTRUCTIONS: f64 = 3.0;
const ALLOCATIONS: f64 = 0.01;

/// The cost of one further unit of a case.
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
    let Some(valgrind) = first_line("valgrind", "--version") else {
        println!("instructions are not counted: valgrind is not installed");
        return if is_required("ADVISOR_REQUIRE_VALGRIND") { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    };
    let baseline = Baseline::read(&valgrind);
    let chosen = |case: &Case| wanted.is_empty() || wanted.iter().any(|word| case.name.contains(word));
    let cases: Vec<_> = advisor_benches::all().into_iter().filter(chosen).collect();
    assert!(!cases.is_empty(), "no case is called {wanted:?}");
    println!("{:<46} {:>14} {:>12}  {:<8} baseline", "", "instructions", "allocations", "each");
    let counted: Vec<_> =
        cases.iter().map(|case| (case.name.clone(), baseline.compare(case, count(case)))).collect();
    let above = |(name, (counts, _)): &&(String, (Counts, bool))| counts.instructions > most(name);
    let above: Vec<_> = counted.iter().filter(above).map(|(name, _)| (name, most(name))).collect();
    for (name, most) in &above {
        println!("{name}: more than {most} instructions");
    }
    let is_bounded = above.is_empty();
    if !save.is_empty() && is_bounded {
        baseline.write(counted.into_iter().map(|(name, (counts, _))| (name, counts)));
        return ExitCode::SUCCESS;
    }
    if !is_bounded || baseline.has_others() || counted.iter().any(|(_, (_, passes))| !passes) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

/// The most instructions that a unit of a case may take.
fn most(case: &str) -> f64 {
    match case {
        "turn, memory, tool loop, three that look" => 2_000.0,
        _ if case.starts_with("read, ") => 5_000.0,
        _ => f64::INFINITY,
    }
}

/// Runs the work that callgrind counts, and nothing else.
#[inline(never)]
fn measured(work: Work) {
    work();
}

#[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn count(case: &Case) -> Counts {
    let (short, long) = case.sizes;
    let each =
        |count: &dyn Fn(usize) -> u64| (count(long) as f64 - count(short) as f64) / (long - short) as f64;
    // Values that are made once per process are not counted.
    measured(case.work(1));
    let allocations = |size| {
        let work = case.work(size);
        allocation_counter::measure(|| measured(work)).count_total
    };
    let instructions = |size: usize| {
        let size = size.to_string();
        instructions("counts::measured", &["--run", &case.name, &size].map(OsStr::new))
    };
    Counts { instructions: each(&instructions), allocations: each(&allocations) }
}

/// The first line that a program prints; `None` if it is not there.
fn first_line(program: &str, argument: &str) -> Option<String> {
    let output = Command::new(program).arg(argument).output().ok()?;
    String::from_utf8_lossy(&output.stdout).lines().next().map(str::to_owned)
}

/// Describes what affects the counts on this machine: the C library chooses at run time how to copy and compare
/// bytes.
fn machine() -> String {
    let libc = first_line("getconf", "GNU_LIBC_VERSION").unwrap_or_default();
    #[cfg(target_arch = "x86_64")]
    let wide = if is_x86_feature_detected!("avx2") { "avx2" } else { "no avx2" };
    #[cfg(not(target_arch = "x86_64"))]
    let wide = "";
    format!("{libc} {} {wide}", std::env::consts::ARCH)
}

/// The counts that were taken before with the same tools on such a machine.
struct Baseline {
    file: PathBuf,
    counts: BTreeMap<String, Counts>,
}

impl Baseline {
    fn read(valgrind: &str) -> Self {
        let rustc = first_line("rustc", "--version").unwrap();
        let tools = format!("{rustc} {valgrind} {}", machine());
        let words = tools.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '.');
        let name = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-");
        let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("baselines/{name}.tsv"));
        let lines = std::fs::read_to_string(&file).unwrap_or_default();
        if lines.is_empty() {
            println!("nothing to compare with: there are no counts of {}", file.display());
        }
        Self { file, counts: lines.lines().filter_map(Self::line).collect() }
    }

    fn line(line: &str) -> Option<(String, Counts)> {
        let mut fields = line.split('\t');
        let name = fields.next()?.to_owned();
        let mut number = || fields.next()?.parse().ok();
        Some((name, Counts { instructions: number()?, allocations: number()? }))
    }

    /// Prints the counts beside those of the baseline, and returns whether they pass.
    fn compare(&self, case: &Case, now: Counts) -> (Counts, bool) {
        let is_worse = |now: f64, before: f64, chance: f64| now > before * MORE && now > before + chance;
        let (before, remark) = match self.counts.get(&case.name) {
            None if self.counts.is_empty() => (String::new(), ""),
            None => (String::new(), "NOT KNOWN: keep it with `-- --save`"),
            Some(before) => {
                let worse = is_worse(now.instructions, before.instructions, INSTRUCTIONS)
                    || is_worse(now.allocations, before.allocations, ALLOCATIONS);
                let before = format!("{:.0} {:.3}", before.instructions, before.allocations);
                (before, if worse { "WORSE" } else { "" })
            }
        };
        let Counts { instructions, allocations } = now;
        println!(
            "{:<46} {instructions:>14.0} {allocations:>12.3}  {:<8} {before}  {remark}",
            case.name, case.unit
        );
        (now, remark.is_empty())
    }

    /// Returns whether the baseline has counts of cases that no longer exist.
    fn has_others(&self) -> bool {
        let gone: Vec<_> = self.counts.keys().filter(|name| !is_case(name)).collect();
        if !gone.is_empty() {
            println!("no case is called so any more: {gone:?}");
        }
        !gone.is_empty()
    }

    /// Keeps these counts, and the earlier counts of other cases.
    fn write(mut self, counts: impl Iterator<Item = (String, Counts)>) {
        self.counts.retain(|name, _| is_case(name));
        self.counts.extend(counts);
        let line = |(name, counts): (&String, &Counts)| {
            format!("{name}\t{:.1}\t{:.4}\n", counts.instructions, counts.allocations)
        };
        std::fs::create_dir_all(self.file.parent().unwrap()).unwrap();
        std::fs::write(&self.file, self.counts.iter().map(line).collect::<String>()).unwrap();
        println!("written: {}", self.file.display());
    }
}

fn is_case(name: &str) -> bool {
    advisor_benches::all().iter().any(|case| case.name == name)
}
