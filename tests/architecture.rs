//! ARCHITECTURE.md names every source file, and none that is gone; and the facade exports the listed names.
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
    let crates = fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    for folder in crates.filter(|folder| folder.join("src").is_dir()) {
        let name = folder.file_name().unwrap().to_str().unwrap();
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

/// The names in the root of the facade. A further one belongs in a module, unless most programs need it.
const FACADE_NAMES: [&str; 41] = [
    "Advisor", "AdvisorChain", "AdvisorInfo", "ChatClient", "ChatClientBuilder", "ChatMemoryAdvisor",
    "ChatModel", "ChatOptions", "ChatRequest", "ChatResponse", "Chunk", "ChunkStream", "ConversationKey",
    "Error", "ErrorKind", "FinishReason", "FnTool", "InMemoryStore", "Message", "OnDrop", "OpenAiModel",
    "Phase", "Placement", "Prompt", "PromptExt", "Result", "Role", "Spawner", "StreamAdvisor", "Tool",
    "ToolCallAdvisor", "ToolChoice", "ToolDefinition", "Turn", "TurnId", "TurnResponse", "TurnStream",
    "async_trait", "client", "from_fn", "model",
];

const FACADE_MODULES: [&str; 14] = [
    "anthropic", "chain", "gemini", "memory", "messages", "ollama", "openai", "postgres", "redis", "sqlite",
    "stream_policy", "structured", "text_tool_calls", "tools",
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
    let listed: BTreeSet<_> = FACADE_NAMES.into_iter().chain(FACADE_MODULES).collect();
    let exported = root_names(&source);
    let further: Vec<_> = exported.difference(&listed).collect();
    let gone: Vec<_> = listed.difference(&exported).collect();
    assert!(further.is_empty() && gone.is_empty(), "further {further:?}, gone {gone:?}");
}
