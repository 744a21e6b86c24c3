//! The table of quirks is complete, and each quirk has a transcript or a test.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::quirks::transcript::{Transcript, WireFamily};

const LAST: u32 = 73;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the text of each numbered row.
fn rows() -> BTreeMap<u32, String> {
    let page = fs::read_to_string(root().join("tests/wire/quirks/README.md")).unwrap();
    let mut rows = BTreeMap::new();
    for row in page.lines().filter_map(|line| line.strip_prefix("- **Q")) {
        let (number, text) = row.split_once("** ").unwrap();
        let number = number.parse().unwrap_or_else(|_| panic!("`Q{number}` is no number"));
        assert!(rows.insert(number, text.to_owned()).is_none(), "Q{number} has two rows");
    }
    rows
}

/// Returns the number at the beginning of a name such as `q07_calls_interleaved`.
fn number_of(name: &str) -> u32 {
    let digits = name.strip_prefix('q').and_then(|rest| rest.split('_').next());
    digits.and_then(|digits| digits.parse().ok()).unwrap_or_else(|| panic!("{name} has no number"))
}

#[test]
fn every_quirk_has_a_row() {
    assert_eq!(rows().into_keys().collect::<Vec<_>>(), (1..=LAST).collect::<Vec<_>>());
}

/// A transcript and a test have the number of their quirk in their names. A row without them gives the reason.
#[test]
fn every_quirk_has_a_transcript_or_a_test() {
    let requests = fs::read_to_string(root().join("tests/wire/quirks/requests.rs")).unwrap();
    let tests =
        requests.lines().filter_map(|line| line.strip_prefix("async fn q")).map(|rest| format!("q{rest}"));
    let transcripts = WireFamily::ALL.into_iter().flat_map(Transcript::all).map(|transcript| transcript.name);
    let names: BTreeMap<_, _> = transcripts.chain(tests).map(|name| (number_of(&name), name)).collect();
    let rows = rows();
    for (number, text) in &rows {
        let is_reason = text.starts_with("none: ");
        assert_ne!(
            is_reason,
            names.contains_key(number),
            "Q{number} has neither a test nor a reason, or both"
        );
    }
    for (number, name) in names {
        assert!(rows.contains_key(&number), "{name} has no row");
    }
}
