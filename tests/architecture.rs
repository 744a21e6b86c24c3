//! ARCHITECTURE.md names every source file, and none that is gone, also in its recipes; the facade exports the listed
//! names.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The source files of a crate that are no tests, as they are called in its `src`.
fn files_in(folder: &Path, prefix: &str, files: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        let path = format!("{prefix}{name}");
        if entry.file_type().unwrap().is_dir() {
            if !matches!(&*name, "tests" | "test_logs") {
                files_in(&entry.path(), &format!("{path}/"), files);
            }
        } else if name.ends_with(".rs") && !matches!(&*name, "tests.rs" | "test_logs.rs") {
            files.insert(path);
        }
    }
}

/// The files in the table of a crate's section.
fn named_in(section: &str) -> BTreeSet<String> {
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    rows.map(|(file, _)| file.to_owned()).filter(|file| file.ends_with(".rs")).collect()
}

#[test]
fn architecture_names_every_source_file() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let folders = ["crates", "adapters"].map(|room| (room, fs::read_dir(root().join(room)).unwrap()));
    let folders =
        folders.into_iter().flat_map(|(room, list)| list.map(move |entry| (room, entry.unwrap().path())));
    for (room, folder) in folders.filter(|(_, folder)| folder.join("src").is_dir()) {
        let name = folder.file_name().unwrap().to_str().unwrap();
        let name = if room == "crates" { name.to_owned() } else { format!("{room}/{name}") };
        let heading = format!("### `{name}`\n");
        let (_, rest) = page.split_once(&heading).unwrap_or_else(|| panic!("{name} has no section"));
        let section = rest.split("\n### ").next().unwrap().split("\n## ").next().unwrap();
        let mut files = BTreeSet::new();
        files_in(&folder.join("src"), "", &mut files);
        let named = named_in(section);
        let missing: Vec<_> = files.difference(&named).collect();
        let gone: Vec<_> = named.difference(&files).collect();
        assert!(missing.is_empty() && gone.is_empty(), "{name}: not named {missing:?}, not there {gone:?}");
    }
}

/// Collects the paths of all files and folders of the repository, without what builds write.
fn repository_paths(folder: &Path, prefix: &str, paths: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        if matches!(&*name, "target" | ".git") {
            continue;
        }
        let path = format!("{prefix}{name}");
        if entry.file_type().unwrap().is_dir() {
            repository_paths(&entry.path(), &format!("{path}/"), paths);
        }
        paths.insert(path);
    }
}

/// Whether a text in code quotes is the path of a file or of a folder. `NAME` is a file to be made.
fn is_path(quoted: &str) -> bool {
    let endings = ["/", ".rs", ".md", ".toml", ".lock", ".lua", ".patch"];
    let is_named = endings.iter().any(|ending| quoted.len() > ending.len() && quoted.ends_with(ending));
    (is_named || quoted.starts_with("crates/")) && !quoted.contains("NAME") && !quoted.contains("://")
}

/// Whether `path` is this path in the repository, or its end. A `*` in it stands for any part of a name.
fn names_path(path: &str, in_repository: &str) -> bool {
    let is_name = |wanted: &str, name: &str| match wanted.split_once('*') {
        Some((begin, end)) => name.strip_prefix(begin).is_some_and(|rest| rest.ends_with(end)),
        None => wanted == name,
    };
    let mut names = in_repository.rsplit('/');
    path.trim_end_matches('/')
        .rsplit('/')
        .all(|wanted| names.next().is_some_and(|name| is_name(wanted, name)))
}

#[test]
fn recipes_name_files_that_exist() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let recipes = page.split_once("\n## Recipes\n").unwrap().1.split("\n## ").next().unwrap();
    let mut known = BTreeSet::new();
    repository_paths(&root(), "", &mut known);
    let quoted: BTreeSet<_> = recipes.lines().flat_map(|line| line.split('`').skip(1).step_by(2)).collect();
    let is_gone = |path: &&str| is_path(path) && !known.iter().any(|other| names_path(path, other));
    let gone: Vec<_> = quoted.into_iter().filter(is_gone).collect();
    assert!(gone.is_empty(), "the recipes name {gone:?}");
}

/// The maximum number of names in the root of the facade, functions included, besides its modules.
const MOST_FACADE_NAMES: usize = 40;

/// The names in the root of the facade. A further one belongs in a module, unless most programs need it.
const FACADE_NAMES: &[&str] = &[
    "Advisor", "AdvisorChain", "AdvisorInfo", "ChatClient", "ChatClientBuilder", "ChatMemoryAdvisor",
    "ChatModel", "ChatOptions", "ChatRequest", "ChatResponse", "Chunk", "ChunkStream", "ConversationKey",
    "Error", "ErrorKind", "FinishReason", "FnTool", "InMemoryStore", "Message", "OpenAiModel", "Phase",
    "Placement", "Prompt", "PromptExt", "Result", "Role", "StreamAdvisor", "Tool", "ToolCallAdvisor",
    "ToolChoice", "ToolDefinition", "Turn", "TurnId", "TurnStream", "async_trait", "client", "from_fn",
    "model", "model_at", "tool",
];

const FACADE_MODULES: [&str; 21] = [
    "advisors", "anthropic", "chain", "gemini", "mcp", "memory", "messages", "ollama", "openai", "otel",
    "postgres", "redis", "retrieval", "retrieval_postgres", "server", "sqlite", "sse", "stream_policy",
    "structured", "text_tool_calls", "tools",
];

/// The names of the public items that begin in the first column.
fn root_names(source: &str) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    for item in source.split("\npub ").skip(1) {
        match item.split_once(' ').unwrap() {
            ("use", path) => {
                let path = path.split(';').next().unwrap();
                let list = path.split_once('{').map_or(path, |(_, list)| list.trim_end_matches('}'));
                names.extend(list.split(',').filter_map(|name| name.trim().rsplit([':', ' ']).next()));
            }
            (_, rest) => names.extend(rest.split(|letter: char| !letter.is_alphanumeric()).next()),
        }
    }
    names.remove("");
    names
}

#[test]
fn facade_root_exports_exactly_the_listed_names() {
    let source = fs::read_to_string(root().join("crates/advisor-chain/src/lib.rs")).unwrap();
    let listed: BTreeSet<_> = FACADE_NAMES.iter().copied().chain(FACADE_MODULES).collect();
    let exported = root_names(&source);
    let further: Vec<_> = exported.difference(&listed).collect();
    let gone: Vec<_> = listed.difference(&exported).collect();
    assert!(further.is_empty() && gone.is_empty(), "further {further:?}, gone {gone:?}");
    assert!(FACADE_NAMES.len() <= MOST_FACADE_NAMES, "the root has {} names", FACADE_NAMES.len());
}
