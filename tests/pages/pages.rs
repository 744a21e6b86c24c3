//! Each link of a Markdown page leads to a file or a heading, and its Rust is compiled.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The languages of blocks, beside Rust.
const LANGUAGES: [&str; 6] = ["js", "json", "sh", "sql", "text", "toml"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn read(page: &str) -> String {
    fs::read_to_string(root().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"))
}

/// Returns the path from the root of a path that is relative to a page.
fn from_root(page: &str, target: &str) -> String {
    let mut names = Vec::new();
    for component in Path::new(page).parent().unwrap().join(target).components() {
        match component {
            Component::ParentDir => drop(names.pop()),
            Component::Normal(name) => names.push(name.to_str().unwrap().to_owned()),
            _ => {}
        }
    }
    names.join("/")
}

/// Returns the paths of all files below a folder whose names end so, except hidden, built and installed ones.
fn files(folder: &str, ending: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root().join(folder)).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        let path = Path::new(folder).join(&name).to_str().unwrap().to_owned();
        match entry.file_type().unwrap().is_dir() {
            true if name.starts_with('.') || ["node_modules", "target"].contains(&name.as_str()) => {}
            true => found.extend(files(&path, ending)),
            false if name.ends_with(ending) => found.push(path),
            false => {}
        }
    }
    found
}

/// Returns a page without its blocks of code.
fn without_blocks(page: &str) -> String {
    let mut is_code = false;
    let is_text = |line: &&str| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    };
    page.lines().filter(is_text).collect::<Vec<_>>().join("\n")
}

/// Returns the targets of the links of a page, other than addresses.
fn links(page: &str) -> Vec<String> {
    let text = without_blocks(page);
    // Without code in a line, every second part between backticks.
    let prose: String = text.split('`').step_by(2).collect();
    let targets = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.contains("://")).map(str::to_owned).collect()
}

/// Returns the paths of all pages of the repository.
fn pages() -> Vec<String> {
    files("", ".md")
}

/// Returns the ids of a page's headings.
fn headings(page: &str) -> BTreeSet<String> {
    let id = |heading: &str| {
        let text: String = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = text.chars().filter(|letter| letter.is_alphanumeric() || "-_ ".contains(*letter));
        kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
    };
    without_blocks(page).lines().filter(|line| line.starts_with('#')).map(id).collect()
}

#[test]
fn every_link_leads_to_a_page_or_a_file() {
    for page in pages() {
        for link in links(&read(&page)) {
            let (file, heading) = link.split_once('#').unwrap_or((&link, ""));
            let target = if file.is_empty() { page.clone() } else { from_root(&page, file) };
            assert!(root().join(&target).exists(), "{page}: there is no {link}");
            let is_there =
                heading.is_empty() || !target.ends_with(".md") || headings(&read(&target)).contains(heading);
            assert!(is_there, "{page}: there is no heading for {link}");
        }
    }
}

/// A block of Rust that is not compiled may rot: it is marked `text`, or its page is part of a crate's doctests.
#[test]
fn every_rust_block_is_compiled() {
    let sources = ["crates", "adapters"].into_iter().flat_map(|folder| files(folder, "lib.rs"));
    let sources = sources.map(|file| (read(&file), file));
    let included: BTreeSet<String> = sources
        .flat_map(|(source, file)| {
            let named =
                source.split("doc = include_str!(\"").skip(1).filter_map(|rest| rest.split('"').next());
            named.map(|page| from_root(&file, page)).collect::<Vec<_>>()
        })
        .collect();
    let mut compiled = 0;
    for page in pages() {
        let text = read(&page);
        let fences = text.lines().map(str::trim_start).filter_map(|line| line.strip_prefix("```"));
        for language in fences.step_by(2) {
            let is_rust = ["rust", "rust,no_run"].contains(&language);
            assert!(is_rust || LANGUAGES.contains(&language), "{page}: a block is marked `{language}`");
            assert!(!is_rust || included.contains(&page), "{page}: no `lib.rs` includes its blocks of Rust");
            compiled += usize::from(is_rust);
        }
    }
    assert!(compiled > 30, "{compiled} blocks of Rust");
}
