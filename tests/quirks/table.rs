//! The table of quirks is complete, and names a transcript or a test for each.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::transcript::{Transcript, WireFamily};

const LAST: u32 = 73;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the last cell of each numbered row.
fn rows() -> BTreeMap<u32, String> {
    let page = fs::read_to_string(root().join("tests/quirks/README.md")).unwrap();
    let mut rows = BTreeMap::new();
    for row in page.lines().filter_map(|line| line.strip_prefix("| Q")) {
        let cells: Vec<_> = row.trim_end_matches(" |").split(" | ").collect();
        let number = cells[0].parse().unwrap_or_else(|_| panic!("`Q{}` is no number", cells[0]));
        assert_eq!(cells.len(), 5, "row Q{number} has other columns");
        assert!(rows.insert(number, cells[4].to_owned()).is_none(), "Q{number} has two rows");
    }
    rows
}

/// Returns the number at the beginning of a name such as `q07_calls_interleaved`.
fn number_of(name: &str) -> u32 {
    let digits = name.strip_prefix('q').and_then(|rest| rest.split('_').next());
    digits.and_then(|digits| digits.parse().ok()).unwrap_or_else(|| panic!("{name} has no number"))
}

/// Returns the words in backticks.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

#[test]
fn every_quirk_has_a_row() {
    assert_eq!(rows().into_keys().collect::<Vec<_>>(), (1..=LAST).collect::<Vec<_>>());
}

/// A row lists the transcripts of its quirk, all of them, and tests that exist; or it gives the reason why there is none.
#[test]
fn rows_list_exactly_the_transcripts_and_tests() {
    let mut listed = BTreeSet::new();
    for (number, cell) in rows() {
        let reason = cell.strip_prefix("none: ");
        assert_eq!(
            reason.is_none(),
            quoted(&cell).next().is_some(),
            "Q{number} has neither a test nor a reason"
        );
        for name in quoted(&cell).filter(|_| reason.is_none()) {
            match name.split_once("::") {
                Some((file, test)) => {
                    let source = fs::read_to_string(root().join(file))
                        .unwrap_or_else(|error| panic!("{file}: {error}"));
                    assert!(source.contains(&format!("fn {test}(")), "Q{number}: {file} has no test {test}");
                }
                None => {
                    assert_eq!(
                        number_of(name.rsplit('/').next().unwrap()),
                        number,
                        "{name} is in the row Q{number}"
                    );
                    listed.insert(name.to_owned());
                }
            }
        }
    }
    let transcripts: BTreeSet<_> = WireFamily::ALL
        .into_iter()
        .flat_map(Transcript::all)
        .map(|transcript| format!("{}/{}", transcript.family.name(), transcript.name))
        .collect();
    let (missing, gone): (Vec<_>, Vec<_>) =
        (transcripts.difference(&listed).collect(), listed.difference(&transcripts).collect());
    assert!(missing.is_empty() && gone.is_empty(), "not listed {missing:?}, not there {gone:?}");
}
