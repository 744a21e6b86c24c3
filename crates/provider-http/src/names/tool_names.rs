//! Tool names in the form that a server accepts.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use advisor_core::Text;

use super::letters::letters;

/// The wire name of a tool without a name.
const UNNAMED: &str = "unnamed";

/// The tool names that a server accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameRule(Rule);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    Any,
    /// ASCII letters, digits, `_` and `-`: at least one, and at most `longest` bytes.
    Letters {
        first: FirstLetter,
        longest: usize,
    },
}

/// The first character of a tool name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FirstLetter {
    /// Any of the characters of a name.
    Any,
    /// A letter or `_`.
    LetterOrUnderscore,
}

impl NameRule {
    /// Any name. All names are sent unchanged.
    pub const ANY: Self = Self(Rule::Any);
    /// At most 64 ASCII letters, digits, `_` and `-`, which nearly all servers accept.
    pub const UP_TO_64: Self = Self::new(FirstLetter::Any, 64);

    /// Creates a rule of ASCII letters, digits, `_` and `-`. `longest` is the maximum length in bytes, at least 16.
    #[must_use]
    pub const fn new(first: FirstLetter, longest: usize) -> Self {
        Self(Rule::Letters { first, longest: if longest < 16 { 16 } else { longest } })
    }

    /// Checks whether the server accepts this name.
    #[must_use]
    pub fn accepts(self, name: &str) -> bool {
        let Rule::Letters { first, longest } = self.0 else { return true };
        let fits = |(at, letter)| first.fits_at(at, letter);
        !name.is_empty() && name.len() <= longest && name.chars().enumerate().all(fits)
    }

    /// Returns the wire name that a tool has unless another one has it.
    fn usual(self, name: &str) -> Cow<'_, str> {
        match self.0 {
            _ if self.accepts(name) => Cow::Borrowed(name),
            Rule::Letters { first, longest } if !name.is_empty() => Cow::Owned(first.fitted(name, longest)),
            _ => Cow::Borrowed(UNNAMED),
        }
    }

    /// Returns another name for each attempt, the same in every process.
    fn other(self, name: &str, attempt: u64) -> String {
        let beginning = match self.0 {
            Rule::Any => name.to_owned(),
            Rule::Letters { first, longest } => first.fitted(name, longest.saturating_sub(7)),
        };
        format!("{beginning}_{}", letters(name, attempt, 6))
    }
}

impl FirstLetter {
    fn fits_at(self, at: usize, letter: char) -> bool {
        match (letter, self) {
            ('_', _) => true,
            ('-' | '0'..='9', Self::LetterOrUnderscore) => at > 0,
            ('-', _) => true,
            (letter, _) => letter.is_ascii_alphanumeric(),
        }
    }

    fn fitted(self, name: &str, longest: usize) -> String {
        let fitted = |(at, letter)| if self.fits_at(at, letter) { letter } else { '_' };
        name.chars().enumerate().map(fitted).take(longest).collect()
    }
}

/// The wire name of each tool in one request, and the reverse. Equal names have equal wire names everywhere,
/// different names different ones.
///
/// A valid name is sent unchanged. Any other name usually has `_` in place of its invalid characters.
///
/// ```
/// use advisor_core::Text;
/// use provider_http::names::{NameRule, ToolNames};
///
/// let tools = [Text::from("docs.search"), Text::from("read")];
/// let names = ToolNames::new(NameRule::UP_TO_64, &[], tools.iter()).with_offered(tools.iter());
/// assert_eq!(names.on_the_wire("docs.search"), "docs_search");
/// assert_eq!(names.meant_by("docs_search").as_deref(), Some("docs.search"));
/// assert_eq!(names.meant_by("unknown"), None);
/// ```
#[derive(Debug)]
pub struct ToolNames {
    rule: NameRule,
    /// Names whose wire name is not the usual one: another name has that one, or the caller wrote the name into
    /// the body.
    special: HashMap<Text, String>,
    /// Wire names that replace other names, each with the replaced name.
    behind: HashMap<String, Text>,
    /// The offered tools.
    offered: Vec<Text>,
}

impl ToolNames {
    /// Creates the usual wire names, which do not depend on the rest of the request.
    #[must_use]
    pub fn usual(rule: NameRule) -> Self {
        Self { rule, special: HashMap::new(), behind: HashMap::new(), offered: Vec::new() }
    }

    /// Creates the names of a request that contains `names`. Of names with the same usual wire name, the first
    /// one gets it. Names in `as_they_are` are sent unchanged.
    pub fn new<'a>(rule: NameRule, as_they_are: &[&str], names: impl Iterator<Item = &'a Text>) -> Self {
        let mut seen = HashSet::new();
        let names: Vec<&Text> = names.filter(|name| seen.insert(*name)).collect();
        let stays = |name: &Text| rule.accepts(name) || as_they_are.contains(&name.as_str());
        let (kept, mapped): (Vec<&Text>, Vec<&Text>) = names.into_iter().partition(|name| stays(name));
        let mut taken: HashSet<String> = kept.iter().map(|name| name.to_string()).collect();
        taken.extend(as_they_are.iter().map(|name| (*name).to_owned()));
        let mut all = Self::usual(rule);
        for name in kept.into_iter().filter(|name| !rule.accepts(name)) {
            all.special.insert(name.clone(), name.to_string());
        }
        for name in mapped {
            let others = (0..).map(|attempt| rule.other(name, attempt));
            let wire = std::iter::once(rule.usual(name).into_owned())
                .chain(others)
                .find(|wire| taken.insert(wire.clone()));
            let Some(wire) = wire else { continue };
            if wire != rule.usual(name) {
                all.special.insert(name.clone(), wire.clone());
            }
            all.behind.insert(wire, name.clone());
        }
        all
    }

    /// Sets the offered tools.
    #[must_use]
    pub fn with_offered<'a>(self, names: impl Iterator<Item = &'a Text>) -> Self {
        Self { offered: names.cloned().collect(), ..self }
    }

    /// Checks whether the server accepts this name unchanged.
    #[must_use]
    pub fn accepts(&self, name: &str) -> bool {
        self.rule.accepts(name)
    }

    /// Checks whether the wire name of `name` differs from the usual one.
    #[must_use]
    pub fn is_special(&self, name: &str) -> bool {
        self.special.contains_key(name)
    }

    /// Returns the wire name of a tool.
    #[must_use]
    pub fn on_the_wire<'a>(&'a self, name: &'a str) -> Cow<'a, str> {
        match self.special.get(name) {
            Some(special) => Cow::Borrowed(special),
            None => self.rule.usual(name),
        }
    }

    /// Returns the tool of the request that this wire name means.
    #[must_use]
    pub fn meant_by(&self, wire: &str) -> Option<Text> {
        let offered = || self.offered.iter().find(|name| name.as_str() == wire);
        self.behind.get(wire).or_else(offered).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: NameRule = NameRule::UP_TO_64;

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
        let map = ToolNames::new(RULE, &[], names.iter());
        let wire: Vec<String> = names.iter().map(|name| map.on_the_wire(name).into_owned()).collect();
        assert_eq!(wire.iter().collect::<HashSet<_>>().len(), names.len(), "{wire:?}");
        for (name, wire) in names.iter().zip(&wire) {
            assert!(RULE.accepts(wire), "{wire}");
            assert_eq!(map.behind.get(wire).unwrap_or(name), name);
            if RULE.accepts(name) {
                assert_eq!((wire.as_str(), map.behind.get(wire)), (name.as_str(), None));
            }
        }
        // Must never change: prompt caches of providers depend on it.
        assert_eq!(wire[0], format!("docs_search_{}", letters("docs.search", 0, 6)));
        assert_eq!(ToolNames::new(RULE, &[], names[..1].iter()).on_the_wire("docs.search"), "docs_search");
    }

    #[test]
    fn unknown_wire_name_maps_to_no_tool() {
        let map = ToolNames::new(RULE, &[], texts(&["docs.search"]).iter());
        assert_eq!(map.behind.get("docs_search").map(Text::as_str), Some("docs.search"));
        assert_eq!((map.behind.get("docs.search"), map.behind.get("read")), (None, None));
        assert_eq!(ToolNames::usual(RULE).on_the_wire("docs.search"), "docs_search", "as usual");
    }

    #[test]
    fn name_written_by_caller_into_body_stays() {
        let map = ToolNames::new(
            RULE,
            &["docs.search", "a_b"],
            texts(&["docs.search", "a.b", "docs/search"]).iter(),
        );
        assert_eq!(map.on_the_wire("docs.search"), "docs.search");
        assert_ne!(map.on_the_wire("a.b"), "a_b");
        assert_eq!(map.on_the_wire("docs/search"), "docs_search");
        assert_eq!(map.behind.get("a_b"), None);
    }

    #[test]
    fn any_name_is_sent_and_comes_back_unchanged() {
        let names = texts(&["docs.search", "docs_search", "read file", "größe", "", &"x".repeat(200)]);
        let map = ToolNames::new(NameRule::ANY, &[], names.iter()).with_offered(names.iter());
        for name in &names {
            assert!(map.accepts(name) && !map.is_special(name));
            assert_eq!((&*map.on_the_wire(name), map.meant_by(name).as_ref()), (name.as_str(), Some(name)));
        }
        assert_eq!(map.meant_by("docs search"), None);
    }

    #[test]
    fn many_names_stay_apart() {
        let names: Vec<Text> = (0..2000).map(|n| format!("{}.{}", "a".repeat(70), n).into()).collect();
        let map = ToolNames::new(RULE, &[], names.iter());
        let wire: HashSet<_> = names.iter().map(|name| map.on_the_wire(name)).collect();
        assert_eq!(wire.len(), names.len());
        assert!(wire.iter().all(|name| RULE.accepts(name)));
    }

    #[test]
    fn rule_for_first_letter_holds_there_only() {
        let rule = NameRule::new(FirstLetter::LetterOrUnderscore, 20);
        let names = texts(&["3d-model", "-x", "_x", "x-3", "a long name of a tool", "", "_d-model"]);
        let map = ToolNames::new(rule, &[], names.iter());
        let wire: Vec<_> = names.iter().map(|name| map.on_the_wire(name)).collect();
        let third = format!("_d-model_{}", letters("3d-model", 0, 6));
        let second = format!("_x_{}", letters("-x", 0, 6));
        assert_eq!(wire, [&*third, &second, "_x", "x-3", "a_long_name_of_a_too", "unnamed", "_d-model"]);
        assert!(wire.iter().all(|name| rule.accepts(name)));
        assert_eq!(ToolNames::usual(NameRule::UP_TO_64).on_the_wire("3d-model"), "3d-model");
    }
}
