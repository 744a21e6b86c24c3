//! `provider_name`: a stable name that all providers accept.

use sha2::{Digest, Sha256};

/// The longest name that all providers accept.
const LONGEST: usize = 64;

/// Bytes of the hash in a changed name, two letters each.
const HASH: usize = 4;

/// Returns the name of a tool for providers: the prefix and the server's name, if all providers accept them.
///
/// Otherwise other characters become `_`, the name is cut, and a hash of it follows. Of names that still become equal,
/// the first stays ([`DuplicateTool`](crate::DuplicateTool)).
pub(super) fn provider_name(prefix: &str, name: &str) -> String {
    let whole = format!("{prefix}{name}");
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if !name.is_empty() && whole.len() <= LONGEST && whole.chars().all(fits) {
        return whole;
    }
    let hash: String = Sha256::digest(&whole).iter().take(HASH).map(|byte| format!("{byte:02x}")).collect();
    let kept = LONGEST - 2 * HASH - 1;
    let fitting: String = whole.chars().map(|c| if fits(c) { c } else { '_' }).take(kept).collect();
    format!("{fitting}_{hash}")
}

#[cfg(test)]
mod tests {
    use advisor_core::ToolDefinition;

    use super::*;

    #[test]
    fn fitting_names_stay() {
        assert_eq!(provider_name("", "read_file"), "read_file");
        assert_eq!(provider_name("fs.", "read-file"), "fs.read-file");
        assert_eq!(provider_name("", &"a".repeat(64)), "a".repeat(64));
    }

    #[test]
    fn other_names_become_stable_valid_and_different() {
        let long = ["a".repeat(65), format!("{}b", "a".repeat(64))];
        let names =
            ["", "search docs", "search_docs ", "search/docs", "naïve", "\u{1b}[2J", &long[0], &long[1]];
        let changed: Vec<_> = names.iter().map(|name| provider_name("", name)).collect();
        assert_eq!(changed, names.map(|name| provider_name("", name)));
        for (at, name) in changed.iter().enumerate() {
            ToolDefinition::new(name.as_str(), "", serde_json::Value::Null).validate().unwrap();
            assert!(!changed[..at].contains(name), "{name}");
        }
        assert_eq!(changed[1], "search_docs_0017ff16");
    }
}
