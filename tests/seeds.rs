//! Compares the pages that say which test shows a requirement with the tree: files, tests and decisions exist.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

/// The pages, each with the number of its rows that it must at least have.
const PAGES: [(&str, usize); 2] = [("docs/seeds.md", 190), ("crates/text-tool-calls/tests/README.md", 60)];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Returns the rows of all tables of a page, without their heads.
fn rows(page: &str) -> Vec<&str> {
    let is_row = |line: &&str| line.starts_with("| ") && !line.starts_with("| --- ");
    let lines: Vec<_> = page.lines().collect();
    let follows_no_rule = |place: usize| !lines.get(place + 1).is_some_and(|next| next.starts_with("| --- "));
    let rows = lines.iter().enumerate().filter(|(place, line)| is_row(line) && follows_no_rule(*place));
    rows.map(|(_, line)| *line).collect()
}

/// Returns the code spans of a text that name a file of the repository.
fn named_files(text: &str) -> impl Iterator<Item = &str> {
    let spans = text.split('`').skip(1).step_by(2);
    spans.filter(|span| {
        ["crates/", "tests/", "fuzz/", "docs/", "examples/"].iter().any(|top| span.starts_with(top))
    })
}

/// Returns the targets of links to decisions.
fn decisions(text: &str) -> impl Iterator<Item = &str> {
    text.split("](")
        .skip(1)
        .filter_map(|link| link.split(')').next())
        .filter(|link| link.contains("decisions/"))
}

/// Checks whether a source has a test of this name: a function, a name in the call of a macro that makes tests, or the
/// title of a test in a script.
fn has_test(source: &str, name: &str) -> bool {
    let calls = source.split("! {\n").skip(1).filter_map(|call| call.split("\n}").next());
    let mut listed = calls.flat_map(str::lines).map(str::trim);
    let in_script = format!("test(\"{name}\", ");
    listed.any(|line| line == name) || has_function(source, name) || source.contains(&in_script)
}

fn has_function(source: &str, name: &str) -> bool {
    source.lines().any(|line| {
        let line = line.trim_start();
        // A clause of a suite is public: a macro makes a test of it.
        let line = line.strip_prefix("pub ").unwrap_or(line);
        let line = line.strip_prefix("async ").unwrap_or(line);
        line.strip_prefix("fn ").and_then(|line| line.split('(').next()) == Some(name)
    })
}

#[test]
fn every_requirement_names_its_test_or_decision() {
    for (page, least) in PAGES {
        let text = fs::read_to_string(root().join(page)).unwrap();
        let rows = rows(&text);
        assert!(rows.len() >= least, "{page} has {} rows", rows.len());
        for row in rows {
            let evidence = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
            let tests = named_files(evidence).filter(|span| span.contains("::")).count();
            assert!(tests + decisions(evidence).count() > 0, "{page}: no test and no decision in {row}");
        }
    }
}

#[test]
fn every_named_file_test_and_decision_exists() {
    for (page, _) in PAGES {
        let text = fs::read_to_string(root().join(page)).unwrap();
        for span in rows(&text).into_iter().flat_map(named_files) {
            let (file, test) = span.split_once("::").map_or((span, None), |(file, test)| (file, Some(test)));
            assert!(root().join(file).exists(), "{page}: there is no {file}");
            if let Some(test) = test {
                let source = fs::read_to_string(root().join(file)).unwrap();
                assert!(has_test(&source, test), "{page}: there is no test {span}");
            }
        }
        let folder = root().join(page).parent().unwrap().to_owned();
        for link in decisions(&text) {
            let file = link.split('#').next().unwrap();
            assert!(folder.join(file).exists(), "{page}: there is no {link}");
        }
    }
}
