//! Instructions and allocations of the parts of ours, as `benches/benches/counts.rs` prints them.

use std::collections::HashMap;
use std::process::Stdio;

use crate::bench::Bench;
use crate::cargo::cargo;
use crate::figures::number;
use crate::goals::Goals;
use crate::table::Table;

/// The number of advisors of an answer.
const ADVISORS: f64 = 5.0;
const PLAIN: &str = "read, OpenAI";

/// Instructions and allocations of each case of `benches/benches/counts.rs`.
type Counts = HashMap<String, [f64; 2]>;

pub(super) fn run(bench: &mut Bench) {
    let lines = printed();
    let counts: Counts = lines.lines().filter_map(counted).map(|(name, counts, _)| (name, counts)).collect();
    if counts.is_empty() {
        return;
    }
    let mut table = Table::new(&["parts of ours", "instructions", "allocations", "each"]);
    for (name, [instructions, allocations], unit) in lines.lines().filter_map(counted) {
        table.row(&name, [number(instructions), number(allocations), unit]);
    }
    println!("\n## Parts of ours, without a network\n\n{table}");
    note_parsing(&mut bench.goals, &counts);
    note_advisors(&mut bench.goals, &counts);
}

fn note_parsing(goals: &mut Goals, counts: &Counts) {
    let instructions = |name: &str| counts[name][0];
    let aggregating = instructions("aggregate, text");
    let delta = |name: &str| instructions(name) - aggregating;
    let shapes = counts.keys().filter(|name| name.starts_with("read, ") && *name != "read, no two alike");
    let dearest = shapes.map(|name| instructions(name)).fold(0.0, f64::max);
    goals.at_most("from bytes to a delta: instructions", 400.0, delta(PLAIN));
    let obfuscated = delta("read, OpenAI, obfuscation") / delta(PLAIN);
    goals.at_most("the same, obfuscated: times the plain one", 3.0, obfuscated);
    let miss = delta("read, no two alike") / instructions("serde_json, into structs");
    goals.at_most("the same, no two events alike: times serde_json", 1.2, miss);
    goals.at_most("reading the dearest shape: times the plain one", 2.0, dearest / instructions(PLAIN));
}

fn note_advisors(goals: &mut Goals, counts: &Counts) {
    let [none, looking, still] =
        ["0 that look", "5 that look", "5 that do not look"].map(|name| counts[&format!("answer, {name}")]);
    let one_more = |all: [f64; 2], at: usize| ((all[at] - none[at]) / ADVISORS).max(0.0);
    goals.at_most("one more advisor that looks: instructions/chunk", 35.0, one_more(looking, 0));
    goals.at_most("one more advisor that looks: allocations/chunk", 0.0, one_more(looking, 1));
    goals.at_most("one more advisor that does not look: instructions/chunk", 0.0, one_more(still, 0));
}

/// Runs the benchmark and returns its output.
fn printed() -> String {
    eprintln!("    counts of the parts");
    let output = cargo()
        .args(["bench", "--locked", "--quiet", "--bench", "counts", "--manifest-path"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml"))
        .stderr(Stdio::inherit())
        .output()
        .expect("cargo can be started");
    // It fails where a count is worse than the baseline, too, and has printed it then.
    assert!(output.status.success() || !output.stdout.is_empty(), "the parts could not be counted");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns the name of a case, its instructions and allocations, and its unit.
fn counted(line: &str) -> Option<(String, [f64; 2], String)> {
    let (name, rest) = line.split_at_checked(46)?;
    let mut words = rest.split_whitespace();
    let mut number = || words.next()?.parse().ok();
    let counts = [number()?, number()?];
    Some((name.trim().to_owned(), counts, words.next()?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_counts_is_read() {
        let line =
            "read, OpenAI                                              871        0.001  event    893 0.001";
        assert_eq!(counted(line), Some((PLAIN.to_owned(), [871.0, 0.001], "event".to_owned())));
        assert_eq!(
            counted(
                "                                                 instructions  allocations  each     baseline"
            ),
            None
        );
    }
}
