//! `docs/faults.md` against the tree: every fault has its row, and the tests that the page names exist.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

/// A row of the page.
struct Row {
    fault: String,
    what_happens: String,
    /// Tests, each as `file::name`; or why there are none.
    tests: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn rows() -> Vec<Row> {
    let page = fs::read_to_string(root().join("docs/faults.md")).unwrap();
    let row = |line: &str| {
        let cells: Vec<_> = line.strip_prefix("| F")?.split('|').map(str::trim).collect();
        let [fault, goes_wrong, what_happens, tests, ""] = cells[..] else { panic!("not a row: {line}") };
        assert!(!goes_wrong.is_empty(), "F{fault} says nothing");
        Some(Row { fault: format!("F{fault}"), what_happens: what_happens.into(), tests: tests.into() })
    };
    page.lines().filter_map(row).collect()
}

fn tests_in(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// Returns whether the file has a test of this name. A macro runs the clauses of the conformance suite as
/// tests. A test of a browser has a sentence as its name.
fn exists(file: &str, name: &str) -> bool {
    let Ok(source) = fs::read_to_string(root().join(file)) else { return false };
    if file.ends_with(".mjs") {
        return source.contains(&format!("await test(\"{name}\", async ()"));
    }
    let lines: Vec<_> = source.lines().map(str::trim_start).collect();
    let begins = |line: &&str| {
        line.split_once("fn ").and_then(|(_, rest)| rest.split_once('(')).is_some_and(|(of, _)| of == name)
    };
    let Some(at) = lines.iter().position(begins) else { return false };
    let is_test = lines[..at]
        .iter()
        .rev()
        .take_while(|line| line.starts_with("#["))
        .any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"));
    is_test || (file.contains("/conformance/") && lines[at].starts_with("pub async fn"))
}

#[test]
fn every_fault_has_one_row_in_its_place() {
    let groups = [("FP", 26), ("FT", 13), ("FM", 16), ("FC", 8), ("FX", 4), ("FL", 5), ("FS", 10)];
    let expected =
        groups.iter().flat_map(|(group, count)| (1..=*count).map(move |number| format!("{group}-{number}")));
    let found: Vec<_> = rows().into_iter().map(|row| row.fault).collect();
    assert_eq!(found, expected.collect::<Vec<_>>());
}

#[test]
fn every_row_names_tests_or_gives_reason() {
    for Row { fault, what_happens, tests } in rows() {
        assert!(!what_happens.is_empty(), "{fault}: what happens?");
        let named = tests_in(&tests);
        if named.is_empty() {
            let why = ["not yet: ", "not here: "].iter().find_map(|begin| tests.strip_prefix(begin));
            assert!(why.is_some_and(|why| !why.is_empty()), "{fault} names no test and does not say why");
        } else {
            let listed = named.iter().map(|test| format!("`{test}`")).collect::<Vec<_>>().join("<br>");
            assert_eq!(tests, listed, "{fault}: tests and nothing else");
        }
    }
}

#[test]
fn every_test_that_is_named_exists() {
    let rows = rows();
    let missing: Vec<_> = rows
        .iter()
        .flat_map(|row| tests_in(&row.tests).into_iter().map(move |test| (&row.fault, test)))
        .filter(|(_, test)| !test.split_once("::").is_some_and(|(file, name)| exists(file, name)))
        .collect();
    assert!(missing.is_empty(), "no such tests: {missing:#?}");
}
