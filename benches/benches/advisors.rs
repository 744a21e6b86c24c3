//! Counts what each advisor adds to a chunk and to a turn:
//! `cargo bench -p advisor-benches --features every-advisor --bench advisors`.
//!
//! The counted turn is the second one of its conversation, with the advisor and without it. The difference between a
//! longer and a shorter answer, per piece between them, is the cost of a chunk. What a short answer costs beside its
//! chunks is the cost of the turn.
//! Valgrind counts the instructions. Words after `--` select rows.
//!
//! An advisor that adds more to a chunk than its kind allows is a failure (law R4).

#![allow(
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints its result and fails by panicking"
)]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::process::{Command, ExitCode};

use advisor_benches::advisors::{Base, Row, Touch, rows};
use advisor_benches::{Work, instructions};

/// The numbers of pieces of the answers: two whose difference is the cost of a piece, and a short one.
const SIZES: (usize, usize) = (1000, 3000);
const SHORT: usize = 16;

const HEAD: &str = "\
    | advisor | instructions/chunk | allocations/chunk | instructions/turn | allocations/turn |
| --- | ---: | ---: | ---: | ---: |";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let [mode, name, is_with, size] = arguments.as_slice()
        && mode.starts_with("--run")
    {
        let row = rows().into_iter().find(|row| row.name() == *name).unwrap();
        let work = row.work(is_with == "true", size.parse().unwrap());
        let counted = allocation_counter::measure(|| measured(work)).count_total;
        println!("{counted}");
        return ExitCode::SUCCESS;
    }
    let chosen = |row: &Row| arguments.is_empty() || arguments.iter().any(|word| row.name().contains(word));
    let rows: Vec<_> = rows().into_iter().filter(chosen).collect();
    println!("{HEAD}");
    let (mut without, mut failed) = (BTreeMap::new(), Vec::new());
    for row in &rows {
        let before = *without.entry(row.base).or_insert_with(|| {
            let before = Counts::of(row, false);
            if row.base == Base::Text {
                println!("| none: the turn itself | {}", before.cells());
            }
            before
        });
        let added = Counts::of(row, true).minus(before);
        println!("| `{}`{} | {}", row.advisor, row.remark, added.cells());
        if !added.is_within(row.touch) {
            failed.push(row.name());
        }
    }
    println!("{} rows: {} above the bound of their kind {failed:?}", rows.len(), failed.len());
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs the work that callgrind counts, and nothing else.
#[inline(never)]
fn measured(work: Work) {
    work();
}

/// The cost of a further piece of the answer, and of the turn without its pieces.
#[derive(Debug, Clone, Copy)]
struct Counts {
    instructions: Cost,
    allocations: Cost,
}

#[derive(Debug, Clone, Copy)]
struct Cost {
    chunk: f64,
    turn: f64,
}

impl Counts {
    fn of(row: &Row, is_with: bool) -> Self {
        let name = row.name();
        let arguments =
            |size: usize| ["--run".to_owned(), name.clone(), is_with.to_string(), size.to_string()];
        let instructions = |size| {
            let arguments = arguments(size);
            instructions("advisors::measured", &arguments.each_ref().map(OsStr::new))
        };
        // In a separate process, as above, so that no row affects the next one.
        let allocations = |size| {
            let output =
                Command::new(std::env::current_exe().unwrap()).args(arguments(size)).output().unwrap();
            String::from_utf8_lossy(&output.stdout).trim().parse().unwrap()
        };
        Self { instructions: Cost::of(&instructions), allocations: Cost::of(&allocations) }
    }

    fn minus(self, other: Self) -> Self {
        Self {
            instructions: self.instructions.minus(other.instructions),
            allocations: self.allocations.minus(other.allocations),
        }
    }

    /// Returns whether the advisor adds no more to a chunk than its kind allows.
    fn is_within(self, touch: Touch) -> bool {
        let (instructions, allocations) = touch.bound();
        self.instructions.chunk <= instructions && self.allocations.chunk <= allocations
    }

    fn cells(self) -> String {
        let Self { instructions, allocations } = self;
        let cells = [
            // Fewer are chance.
            rounded(if instructions.chunk.abs() < 3.0 { 0.0 } else { instructions.chunk }),
            hundredths(allocations.chunk),
            rounded(instructions.turn),
            rounded(allocations.turn),
        ];
        format!("{} |", cells.join(" | "))
    }
}

impl Cost {
    #[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    fn of(count: &dyn Fn(usize) -> u64) -> Self {
        let (short, long) = SIZES;
        let (fewer, more) = (count(short) as f64, count(long) as f64);
        let chunk = (more - fewer) / (long - short) as f64;
        Self { chunk, turn: count(SHORT) as f64 - chunk * SHORT as f64 }
    }

    fn minus(self, other: Self) -> Self {
        Self { chunk: self.chunk - other.chunk, turn: self.turn - other.turn }
    }
}

/// Three digits, with a comma for thousands.
#[allow(clippy::cast_possible_truncation, reason = "counts are far below 2^63")]
fn rounded(count: f64) -> String {
    let unit = 10_f64.powf((count.abs().max(1.0).log10().floor() - 2.0).max(0.0));
    let count = ((count / unit).round() * unit) as i64;
    let digits = count.unsigned_abs().to_string();
    let places = digits.char_indices().map(|(place, digit)| {
        let is_group = place > 0 && (digits.len() - place).is_multiple_of(3);
        if is_group { format!(",{digit}") } else { digit.to_string() }
    });
    format!("{}{}", if count < 0 { "−" } else { "" }, places.collect::<String>())
}

/// Hundredths, of which fewer than one are none.
fn hundredths(count: f64) -> String {
    if count.abs() < 0.005 { "0".to_owned() } else { format!("{count:.2}").replace('-', "−") }
}
