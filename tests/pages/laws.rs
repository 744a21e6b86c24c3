//! Every law has a test that is named after it, and a break that makes such a test fail.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Returns the ids of all laws.
fn laws() -> BTreeSet<String> {
    let counts = [("S", 7), ("O", 7), ("M", 8), ("T", 7), ("K", 4), ("R", 4)];
    counts
        .iter()
        .flat_map(|(letter, count)| (1..=*count).map(move |number| format!("{letter}{number}")))
        .collect()
}

/// Returns the laws that a test is named after: `law_s3_s4_blocks_…` is of S3 and S4.
fn laws_of(test: &str) -> Vec<String> {
    let words = test.strip_prefix("law_").unwrap_or_default().split('_');
    words.map(str::to_uppercase).take_while(|word| laws().contains(word)).collect()
}

/// Returns the names of all tests of the tree that are named after a law.
fn tests() -> BTreeSet<String> {
    let mut folders = vec![root().join("crates"), root().join("tests")];
    let mut tests = BTreeSet::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let source = fs::read_to_string(&path).unwrap();
                tests.extend(source.lines().filter_map(test_begun_in).map(str::to_owned));
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
fn every_law_has_test_and_break() {
    let with_test: BTreeSet<_> = tests().iter().flat_map(|test| laws_of(test)).collect();
    let with_break: BTreeSet<_> = breaks().into_values().map(|(law, _)| law).collect();
    assert_eq!(with_test, laws());
    assert_eq!(with_break, laws());
}

#[test]
fn every_break_names_tests_of_its_law() {
    let tests = tests();
    for (name, (law, fails)) in breaks() {
        assert!(name.starts_with(&format!("{}-", law.to_lowercase())), "{name} is named after its law");
        assert!(!fails.is_empty(), "{name} names no test");
        for line in fails {
            let (_, test) = line.split_once(" :: ").unwrap();
            assert!(tests.contains(test), "{name}: there is no test {test}");
            assert!(laws_of(test).contains(&law), "{name}: {test} is not of {law}");
        }
    }
}
