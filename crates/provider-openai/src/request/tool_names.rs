//! Tool names in the form that servers accept: letters, digits, `_` and `-`, at most 64.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use advisor_core::Text;

use super::call_ids::letters;

/// The maximum length of a name, in bytes.
const LONGEST: usize = 64;
/// The wire name of a tool without a name.
const UNNAMED: &str = "unnamed";

/// The wire name of each tool in one request, and the reverse. Equal names have equal wire names everywhere,
/// different names different ones.
///
/// A valid name is sent unchanged. Any other name usually has `_` in place of its invalid characters.
#[derive(Debug, Default)]
pub(crate) struct ToolNames {
    /// Names whose wire name is not the usual one: another name has that one, or the caller wrote the name into
    /// the body.
    special: HashMap<Text, String>,
    /// Wire names that replace other names, each with the replaced name.
    behind: HashMap<String, Text>,
    /// The offered tools.
    offered: Vec<Text>,
}

impl ToolNames {
    /// Creates the names of a request that contains `names`. Of names with the same usual wire name, the first
    /// one gets it. Names in `as_they_are` are sent unchanged.
    pub(super) fn new<'a>(as_they_are: &[&str], names: impl Iterator<Item = &'a Text>) -> Self {
        let mut seen = HashSet::new();
        let names: Vec<&Text> = names.filter(|name| seen.insert(*name)).collect();
        let stays = |name: &Text| fits(name) || as_they_are.contains(&name.as_str());
        let (kept, mapped): (Vec<&Text>, Vec<&Text>) = names.into_iter().partition(|name| stays(name));
        let mut taken: HashSet<String> = kept.iter().map(|name| name.to_string()).collect();
        taken.extend(as_they_are.iter().map(|name| (*name).to_owned()));
        let mut all = Self::default();
        for name in kept.into_iter().filter(|name| !fits(name)) {
            all.special.insert(name.clone(), name.to_string());
        }
        for name in mapped {
            let others = (0..).map(|attempt| other(name, attempt));
            let wire = std::iter::once(usual(name).into_owned())
                .chain(others)
                .find(|wire| taken.insert(wire.clone()));
            let Some(wire) = wire else { continue };
            if wire != usual(name) {
                all.special.insert(name.clone(), wire.clone());
            }
            all.behind.insert(wire, name.clone());
        }
        all
    }

    /// Checks whether the wire name of `name` differs from the usual one.
    pub(super) fn is_special(&self, name: &str) -> bool {
        self.special.contains_key(name)
    }

    pub(super) fn on_the_wire<'a>(&'a self, name: &'a str) -> Cow<'a, str> {
        match self.special.get(name) {
            Some(special) => Cow::Borrowed(special),
            None => usual(name),
        }
    }

    /// Sets the offered tools.
    pub(super) fn with_offered<'a>(self, names: impl Iterator<Item = &'a Text>) -> Self {
        Self { offered: names.cloned().collect(), ..self }
    }

    /// Returns the tool of the request that this wire name means.
    pub(crate) fn meant_by(&self, wire: &str) -> Option<Text> {
        let offered = || self.offered.iter().find(|name| name.as_str() == wire);
        self.behind(wire).or_else(offered).cloned()
    }

    /// Returns the name that this wire name replaces, if it replaces one.
    pub(crate) fn behind(&self, wire: &str) -> Option<&Text> {
        self.behind.get(wire)
    }
}

/// Checks whether every server accepts this name.
pub(super) fn fits(name: &str) -> bool {
    !name.is_empty() && name.len() <= LONGEST && name.bytes().all(|byte| fits_in(char::from(byte)))
}

fn fits_in(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-')
}

/// Returns the wire name that a tool has unless another one has it.
fn usual(name: &str) -> Cow<'_, str> {
    if fits(name) {
        Cow::Borrowed(name)
    } else if name.is_empty() {
        Cow::Borrowed(UNNAMED)
    } else {
        Cow::Owned(fitted(name, LONGEST))
    }
}

/// Returns another name for each attempt, the same in every process.
fn other(name: &str, attempt: u64) -> String {
    format!("{}_{}", fitted(name, LONGEST - 7), letters(name, attempt, 6))
}

fn fitted(name: &str, longest: usize) -> String {
    name.chars().map(|letter| if fits_in(letter) { letter } else { '_' }).take(longest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(names: &[&str]) -> Vec<Text> {
        names.iter().map(|name| Text::from(*name)).collect()
    }

    #[test]
    fn d11_different_names_stay_different_and_come_back() {
        let long = "x".repeat(70);
        let names = texts(&[
            "docs.search",
            "docs_search",
            "docs/search",
            "docs search",
            "docs-search",
            "größe",
            "gr__e",
            "",
            "unnamed",
            ".",
            "_",
            "💡",
            &long,
            &long[..64],
            &format!("{long}y"),
            &format!("{}.", &long[..63]),
        ]);
        let map = ToolNames::new(&[], names.iter());
        let wire: Vec<String> = names.iter().map(|name| map.on_the_wire(name).into_owned()).collect();
        assert_eq!(wire.iter().collect::<HashSet<_>>().len(), names.len(), "{wire:?}");
        for (name, wire) in names.iter().zip(&wire) {
            assert!(fits(wire), "{wire}");
            assert_eq!(map.behind(wire).unwrap_or(name), name);
            if fits(name) {
                assert_eq!((wire.as_str(), map.behind(wire)), (name.as_str(), None));
            }
        }
        // Must never change: prompt caches of providers depend on it.
        assert_eq!(wire[0], format!("docs_search_{}", letters("docs.search", 0, 6)));
        assert_eq!(ToolNames::new(&[], names[..1].iter()).on_the_wire("docs.search"), "docs_search");
    }

    #[test]
    fn unknown_wire_name_maps_to_no_tool() {
        let map = ToolNames::new(&[], texts(&["docs.search"]).iter());
        assert_eq!(map.behind("docs_search").map(Text::as_str), Some("docs.search"));
        assert_eq!((map.behind("docs.search"), map.behind("read")), (None, None));
        assert_eq!(ToolNames::default().on_the_wire("docs.search"), "docs_search", "as usual");
    }

    #[test]
    fn name_written_by_caller_into_body_stays() {
        let map =
            ToolNames::new(&["docs.search", "a_b"], texts(&["docs.search", "a.b", "docs/search"]).iter());
        assert_eq!(map.on_the_wire("docs.search"), "docs.search");
        assert_ne!(map.on_the_wire("a.b"), "a_b");
        assert_eq!(map.on_the_wire("docs/search"), "docs_search");
        assert_eq!(map.behind("a_b"), None);
    }

    #[test]
    fn many_names_stay_apart() {
        let names: Vec<Text> = (0..2000).map(|n| format!("{}.{}", "a".repeat(70), n).into()).collect();
        let map = ToolNames::new(&[], names.iter());
        let wire: HashSet<_> = names.iter().map(|name| map.on_the_wire(name)).collect();
        assert_eq!(wire.len(), names.len());
        assert!(wire.iter().all(|name| fits(name)));
    }
}
