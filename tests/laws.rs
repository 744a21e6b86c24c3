//! Compares `docs/laws.md` with the tree: all names exist, and every law has tests and breaks.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A law of the page.
struct Law {
    id: String,
    statement: String,
    /// Each as `file::name`.
    tests: Vec<String>,
    breaks: Vec<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn laws() -> Vec<Law> {
    let page = fs::read_to_string(root().join("docs/laws.md")).unwrap();
    page.split("\n### ").skip(1).map(read_law).collect()
}

/// Reads the section of a law, which has nothing but an id, a statement, tests and breaks.
fn read_law(section: &str) -> Law {
    let section = section.split("\n## ").next().unwrap();
    let parts = section
        .split_once("\n\nTests:\n\n")
        .and_then(|(head, lists)| Some((head.split_once("\n\n")?, lists.split_once("\n\nBreaks:\n\n")?)));
    let Some(((id, statement), (tests, breaks))) = parts else { panic!("not a law: {section}") };
    assert!(is_law(id) && !statement.contains('\n'), "not the id and the statement of a law: {section}");
    Law { id: id.into(), statement: statement.into(), tests: items(tests), breaks: items(breaks) }
}

/// Returns the items of a list, each of which is one code span.
fn items(list: &str) -> Vec<String> {
    let item = |line: &str| {
        let span = line.strip_prefix("- `").and_then(|line| line.strip_suffix('`'));
        span.filter(|span| !span.contains('`'))
            .unwrap_or_else(|| panic!("not a code span: {line}"))
            .to_owned()
    };
    list.trim_end().lines().map(item).collect()
}

/// Returns whether this is the id of a law: one of their letters and a number, as `S1`.
fn is_law(word: &str) -> bool {
    let (letter, number) = word.split_at_checked(1).unwrap_or_default();
    "SOMTKR".contains(&letter.to_uppercase()) && !letter.is_empty() && number.parse::<u32>().is_ok()
}

/// Returns the laws that a test is named after: `law_s3_s4_blocks_…` is of S3 and S4.
fn laws_of(test: &str) -> Vec<String> {
    let words = test.strip_prefix("law_").unwrap_or_default().split('_');
    words.take_while(|word| is_law(word)).map(str::to_uppercase).collect()
}

/// Returns all tests of the tree that are named after a law, each as `file::name`.
fn named_tests() -> BTreeSet<String> {
    let mut folders = vec![root().join("crates"), root().join("tests")];
    let mut tests = BTreeSet::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let file = path.strip_prefix(root()).unwrap().to_str().unwrap().replace('\\', "/");
                let source = fs::read_to_string(&path).unwrap();
                tests.extend(source.lines().filter_map(test_begun_in).map(|name| format!("{file}::{name}")));
            }
        }
    }
    tests
}

/// Returns the name of the test that begins in this line.
fn test_begun_in(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let name = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ")?.split('(').next()?;
    name.starts_with("law_").then_some(name)
}

/// Returns the lines of all patches that begin with `Law: ` and `Fails: `, by the name of the patch.
fn breaks() -> BTreeMap<String, (String, Vec<String>)> {
    let files = fs::read_dir(root().join("breaks")).unwrap().map(|entry| entry.unwrap().path());
    let patches = files.filter(|file| file.extension().is_some_and(|extension| extension == "patch"));
    let read = |file: PathBuf| {
        let patch = fs::read_to_string(&file).unwrap();
        let after = |start| patch.lines().filter_map(move |line| line.strip_prefix(start)).map(str::to_owned);
        let law = after("Law: ").next().unwrap_or_default();
        (file.file_stem().unwrap().to_str().unwrap().into(), (law, after("Fails: ").collect()))
    };
    patches.map(read).collect()
}

#[test]
fn every_law_has_statement_tests_and_break() {
    let laws = laws();
    let ids: Vec<_> = laws.iter().map(|law| law.id.clone()).collect();
    let counts = [("S", 7), ("O", 7), ("M", 7), ("T", 6), ("K", 4), ("R", 4)];
    let expected =
        counts.iter().flat_map(|(letter, count)| (1..=*count).map(move |n| format!("{letter}{n}")));
    assert_eq!(ids, expected.collect::<Vec<_>>());
    for Law { id, statement, tests, breaks } in laws {
        assert!(!statement.is_empty() && !tests.is_empty() && !breaks.is_empty(), "{id} lacks something");
    }
}

#[test]
fn every_named_test_exists_and_names_its_law() {
    let known = named_tests();
    for Law { id: law, tests, .. } in laws() {
        for test in tests {
            assert!(known.contains(&test), "{law}: there is no test {test}");
            assert!(laws_of(test.rsplit("::").next().unwrap()).contains(&law), "{test} is not of {law}");
        }
    }
}

#[test]
fn every_test_is_named_after_laws_that_exist() {
    let laws: BTreeSet<_> = laws().into_iter().map(|law| law.id).collect();
    for test in named_tests() {
        let of = laws_of(test.rsplit("::").next().unwrap());
        assert!(!of.is_empty() && of.iter().all(|law| laws.contains(law)), "{test}: of which law?");
    }
}

#[test]
fn every_break_is_listed_and_names_law_tests() {
    let named: Vec<_> =
        named_tests().iter().map(|test| test.rsplit("::").next().unwrap().to_owned()).collect();
    let mut listed = BTreeMap::new();
    for Law { id: law, breaks, .. } in laws() {
        for name in breaks {
            assert!(listed.insert(name.clone(), law.clone()).is_none(), "{name} is listed twice");
        }
    }
    let breaks = breaks();
    for name in listed.keys() {
        assert!(breaks.contains_key(name), "there is no breaks/{name}.patch");
    }
    for (name, (law, fails)) in breaks {
        assert_eq!(listed.get(&name), Some(&law), "the law of {name}, on the page and in the patch");
        assert!(name.starts_with(&format!("{}-", law.to_lowercase())), "{name} is named after its law");
        assert!(!fails.is_empty(), "{name} names no test");
        for line in fails {
            let (_, test) = line.split_once(" :: ").unwrap();
            assert!(named.iter().any(|known| known == test), "{name}: there is no test {test}");
            assert!(laws_of(test).contains(&law), "{name}: {test} is not of {law}");
        }
    }
}
