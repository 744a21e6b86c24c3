//! Tests that the page about the scenarios of Spring AI names tests that exist.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

fn sources_in(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources_in(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Collects every test as `file::name`; those of a crate also as `crate/file::name`. For a `tests.rs`, the file
/// name is that of its folder.
fn tests_of(root: &Path, crate_name: Option<&str>, names: &mut BTreeSet<String>) {
    let mut sources = Vec::new();
    sources_in(root, &mut sources);
    for source in sources {
        let stem = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_string();
        let file = match stem(&source).as_str() {
            "tests" | "mod" => stem(source.parent().unwrap()),
            other => other.to_string(),
        };
        let text = std::fs::read_to_string(&source).unwrap();
        let lines: Vec<_> = text.lines().map(str::trim).collect();
        for (at, line) in lines.iter().enumerate() {
            let is_test = lines[..at]
                .iter()
                .rev()
                .take_while(|line| line.starts_with("#["))
                .any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"));
            let name = line.split_once("fn ").and_then(|(_, rest)| rest.split_once('('));
            if let (true, Some((name, _))) = (is_test, name) {
                let prefix = crate_name.map(|name| format!("{name}/")).unwrap_or_default();
                names.insert(format!("{prefix}{file}::{name}"));
            }
        }
    }
}

#[test]
fn every_test_that_the_page_names_exists() {
    let workspace = workspace();
    let mut known = BTreeSet::new();
    tests_of(&workspace.join("tests"), None, &mut known);
    for folder in std::fs::read_dir(workspace.join("crates")).unwrap() {
        let folder = folder.unwrap().path();
        tests_of(&folder, folder.file_name().unwrap().to_str(), &mut known);
    }
    let page = std::fs::read_to_string(workspace.join("docs/spring-ai-parity.md")).unwrap();
    let rows =
        page.lines().skip_while(|line| !line.starts_with("## The loop")).filter(|line| line.starts_with('|'));
    let named: Vec<_> = rows.flat_map(|row| row.split('`').skip(1).step_by(2)).collect();
    let named: Vec<_> = named.into_iter().filter(|name| name.contains("::")).collect();
    assert!(named.len() > 100, "only {} tests are named", named.len());
    let missing: BTreeSet<_> = named.into_iter().filter(|name| !known.contains(*name)).collect();
    assert!(missing.is_empty(), "no such tests: {missing:#?}");
}

/// The features of Spring AI, by the names of their types or settings. Each has a row, or a reason why it has none.
const FEATURES: [&str; 44] = [
    "ToolCallingAdvisor",
    "ToolSearchToolCallingAdvisor",
    "MessageChatMemoryAdvisor",
    "PromptChatMemoryAdvisor",
    "VectorStoreChatMemoryAdvisor",
    "QuestionAnswerAdvisor",
    "RetrievalAugmentationAdvisor",
    "query transformers",
    "SafeGuardAdvisor",
    "SimpleLoggerAdvisor",
    "StructuredOutputValidationAdvisor",
    "SemanticCacheAdvisor",
    "ReReadingAdvisor",
    "ChatModelCallAdvisor",
    "UsageAccumulator",
    "LastMaxTokenSizeContentPurger",
    "advisorOrder",
    "nextCall",
    "chain.copy",
    "BaseAdvisor",
    "the context map",
    "ToolAdvisor",
    "toolCallingAdvisorAutoRegister",
    "mutate()",
    "templateRenderer",
    "entity()",
    "MessageWindowChatMemory",
    "ChatMemoryRepository",
    "spring-ai-session",
    "DefaultToolCallingManager",
    "ToolExecutionException",
    "returnDirect",
    "ToolCallLimits",
    "ToolContext",
    "ToolExecutionEligibilityChecker",
    "@ToolParam",
    "argument augmentation",
    "SyncMcpToolCallbackProvider",
    "BeanOutputConverter",
    "ObservationRegistry",
    "gen_ai.*",
    "RetryTemplate",
    "OpenAiChatModel",
    "BedrockProxyChatModel",
];

#[test]
fn every_feature_has_a_row() {
    let page = std::fs::read_to_string(workspace().join("docs/spring-ai-parity.md")).unwrap();
    let names: Vec<_> =
        page.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next()).collect();
    for feature in FEATURES {
        assert!(names.iter().any(|name| name.contains(feature)), "{feature} has no row");
    }
}
