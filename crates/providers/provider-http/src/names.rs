//! Call ids and tool names in the form that a server accepts (Q69).
//!
//! The transcript keeps the original ids and names. A request maps them when its messages are written: equal ones
//! to equal ones, different ones to different ones, the same in every process. An answer maps the names back.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use advisor_core::{ChatRequest, Message, Text, ToolChoice};

/// The length of an id that replaces another one, unless the server demands another length.
const USUAL_LENGTH: usize = 29;
/// The maximum length of a tool name in bytes, at nearly all servers.
const LONGEST_NAME: usize = 64;
/// The wire name of a tool without a name.
const UNNAMED: &str = "unnamed";

/// The call ids that a server accepts. A length must leave enough different ids for the calls of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum IdRule {
    /// Any.
    Any,
    /// At most this number of bytes.
    UpTo(usize),
    /// ASCII letters, digits, `_` and `-`: at least one, and at most this number.
    Word(usize),
    /// Exactly this number of ASCII letters and digits.
    Alphanumeric(usize),
}

/// The tool names that a server accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameRule {
    /// Any name. All names are sent unchanged.
    Any,
    /// ASCII letters, digits, `_` and `-`: at least one and at most 64, which nearly all servers accept.
    Word,
    /// The same, and the first one is a letter or `_`.
    LetterFirst,
}

impl IdRule {
    fn accepts(self, id: &str) -> bool {
        let of = |fits: fn(u8) -> bool| !id.is_empty() && id.bytes().all(fits);
        match self {
            Self::Any => true,
            Self::UpTo(longest) => id.len() <= longest,
            Self::Word(longest) => {
                id.len() <= longest && of(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
            }
            Self::Alphanumeric(length) => id.len() == length && of(|byte| byte.is_ascii_alphanumeric()),
        }
    }

    /// Returns an acceptable id for one that is not. Each attempt gives another id.
    fn map(self, id: &str, attempt: u64) -> String {
        let (length, prefix) = match self {
            Self::Alphanumeric(length) => (length, ""),
            Self::UpTo(longest) | Self::Word(longest) if longest < USUAL_LENGTH => (longest, ""),
            _ => (USUAL_LENGTH, "call_"),
        };
        format!("{prefix}{}", letters(id, attempt, length - prefix.len()))
    }
}

impl NameRule {
    fn accepts(self, name: &str) -> bool {
        let mut bytes = name.bytes().enumerate();
        self == Self::Any
            || !name.is_empty()
                && name.len() <= LONGEST_NAME
                && bytes.all(|(at, byte)| self.fits_at(at, char::from(byte)))
    }

    fn fits_at(self, at: usize, letter: char) -> bool {
        match letter {
            '_' => true,
            '-' | '0'..='9' => at > 0 || self != Self::LetterFirst,
            letter => letter.is_ascii_alphabetic(),
        }
    }

    fn fitted(self, name: &str, longest: usize) -> String {
        let fitted = |(at, letter)| if self.fits_at(at, letter) { letter } else { '_' };
        name.chars().enumerate().map(fitted).take(longest).collect()
    }

    /// Returns the wire name that a tool has unless another one has it.
    fn usual(self, name: &str) -> Cow<'_, str> {
        if self.accepts(name) {
            Cow::Borrowed(name)
        } else if name.is_empty() {
            Cow::Borrowed(UNNAMED)
        } else {
            Cow::Owned(self.fitted(name, LONGEST_NAME))
        }
    }

    /// Returns another name for each attempt, the same in every process.
    fn other(self, name: &str, attempt: u64) -> String {
        format!("{}_{}", self.fitted(name, LONGEST_NAME - 7), letters(name, attempt, 6))
    }
}

/// Returns letters and digits that depend only on text and attempt: the same in every process and version.
fn letters(text: &str, attempt: u64, count: usize) -> String {
    const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    // FNV-1a, then SplitMix64 for each letter.
    let fnv = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let mut state = text.bytes().chain(attempt.to_le_bytes()).fold(0xcbf2_9ce4_8422_2325, fnv);
    let mut letter = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let at = ((z ^ (z >> 31)) % ALPHABET.len() as u64) as usize;
        ALPHABET.get(at).map_or('0', |letter| char::from(*letter))
    };
    (0..count).map(|_| letter()).collect()
}

/// The call ids and tool names of one request on the wire, and the names of its answer back. Equal ones are equal
/// everywhere, different ones different.
///
/// A valid one is sent unchanged. Another name usually has `_` in place of its invalid characters.
///
/// ```
/// use advisor_core::{ChatRequest, Message, Text, ToolCall};
/// use provider_http::names::{IdRule, NameRule, WireNames};
///
/// let answer = Message::assistant_blocks(vec![ToolCall::new("call_1", "docs.search", "{}").into()]);
/// let request = ChatRequest::new(vec![Message::user("Find it."), answer]);
/// let names = WireNames::new(&request, IdRule::Alphanumeric(9), NameRule::Word, &["read"]);
/// assert_eq!(names.call_id(&Text::from("call_1")), "I3aQddZxA");
/// assert_eq!(names.tool("docs.search"), "docs_search");
/// assert_eq!(names.meant_by("docs_search").as_deref(), Some("docs.search"));
/// assert_eq!(names.meant_by("read").as_deref(), Some("read"));
/// assert_eq!(names.meant_by("unknown"), None);
/// ```
#[derive(Debug)]
pub struct WireNames {
    ids: IdRule,
    tools: NameRule,
    /// Ids that cannot have their usual wire id, because another id of the request has it.
    special_ids: HashMap<Text, String>,
    /// Names whose wire name is not the usual one: another name has that one, or the caller wrote the name into
    /// the body.
    special_tools: HashMap<Text, String>,
    /// Wire names that replace other names, each with the replaced name.
    behind: HashMap<String, Text>,
    /// The offered tools.
    offered: Vec<Text>,
}

impl WireNames {
    /// Creates the ids and names of a request: of its messages, tools and tool choice. Of names with the same usual wire
    /// name, the first one gets it. `verbatim` are the names of tools that the caller wrote into the body, which are sent
    /// unchanged.
    #[must_use]
    pub fn new(request: &ChatRequest, ids: IdRule, tools: NameRule, verbatim: &[&str]) -> Self {
        let chosen = match &request.options.tool_choice {
            Some(ToolChoice::Tool(name)) => Some(name),
            _ => None,
        };
        let offered = || request.tools.definitions().map(|tool| &tool.name).chain(chosen);
        let mut names = Self::usual(ids, tools);
        names.offered = offered().cloned().chain(verbatim.iter().map(|name| Text::from(*name))).collect();
        names.map_tools(verbatim, || offered().chain(request.messages.iter().flat_map(tools_in)));
        names.map_ids(|| request.messages.iter().flat_map(ids_in));
        names
    }

    fn usual(ids: IdRule, tools: NameRule) -> Self {
        Self {
            ids,
            tools,
            special_ids: HashMap::new(),
            special_tools: HashMap::new(),
            behind: HashMap::new(),
            offered: Vec::new(),
        }
    }

    fn map_ids<'a, I: Iterator<Item = &'a Text>>(&mut self, ids: impl Fn() -> I) {
        let rule = self.ids;
        if rule == IdRule::Any || ids().all(|id| rule.accepts(id)) {
            return;
        }
        let form = |id: &Text, attempt| rule.map(id, attempt);
        let mapped = assigned(ids(), &[], |id| rule.accepts(id), form).filter(|(.., attempt)| *attempt > 0);
        self.special_ids = mapped.map(|(id, wire, _)| (id.clone(), wire)).collect();
    }

    fn map_tools<'a, I: Iterator<Item = &'a Text>>(&mut self, verbatim: &[&str], names: impl Fn() -> I) {
        let rule = self.tools;
        let mut last = None;
        if names().all(|name| last.replace(name) == Some(name) || rule.accepts(name)) {
            return;
        }
        let stays = |name: &Text| rule.accepts(name) || verbatim.contains(&name.as_str());
        let sent = names().filter(|name| stays(name) && !rule.accepts(name));
        self.special_tools = sent.map(|name| (name.clone(), name.to_string())).collect();
        let form = |name: &Text, attempt: u64| match attempt.checked_sub(1) {
            None => rule.usual(name).into_owned(),
            Some(other) => rule.other(name, other),
        };
        for (name, wire, attempt) in assigned(names(), verbatim, stays, form) {
            if attempt > 0 {
                self.special_tools.insert(name.clone(), wire.clone());
            }
            self.behind.insert(wire, name.clone());
        }
    }

    /// Checks whether an id or a name in a message differs from its usual wire form, which does not depend on the rest of
    /// the request. A message without such ones can be kept for later requests as it is written.
    #[inline]
    pub(crate) fn is_special(&self, message: &Message) -> bool {
        !self.special_ids.is_empty() && ids_in(message).any(|id| self.special_ids.contains_key(id))
            || !self.special_tools.is_empty() && tools_in(message).any(|name| self.is_special_tool(name))
    }

    /// Checks whether the wire name of a tool differs from the usual one.
    pub(crate) fn is_special_tool(&self, name: &str) -> bool {
        self.special_tools.contains_key(name)
    }

    /// Returns the wire id of a call.
    #[must_use]
    pub fn call_id<'a>(&'a self, id: &'a Text) -> Cow<'a, str> {
        match self.special_ids.get(id) {
            Some(special) => Cow::Borrowed(special),
            None if self.ids.accepts(id) => Cow::Borrowed(id),
            None => Cow::Owned(self.ids.map(id, 0)),
        }
    }

    /// Returns the wire name of a tool.
    #[must_use]
    pub fn tool<'a>(&'a self, name: &'a str) -> Cow<'a, str> {
        match self.special_tools.get(name) {
            Some(special) => Cow::Borrowed(special),
            None => self.tools.usual(name),
        }
    }

    /// Returns the tool of the request that this wire name means.
    #[must_use]
    pub fn meant_by(&self, wire: &str) -> Option<Text> {
        let offered = || self.offered.iter().find(|name| name.as_str() == wire);
        self.behind.get(wire).or_else(offered).cloned()
    }
}

/// Returns the ids of the calls that a message makes or answers.
fn ids_in(message: &Message) -> impl Iterator<Item = &Text> {
    let answered = message.tool_result().map(|result| &result.call_id);
    message.tool_calls().map(|call| &call.id).chain(answered)
}

/// Returns the names of the tools that a message calls or answers for.
fn tools_in(message: &Message) -> impl Iterator<Item = &Text> {
    let answered = message.tool_result().map(|result| &result.name);
    message.tool_calls().map(|call| &call.name).chain(answered)
}

/// Gives each word that does not stay the first of its forms that is free, and tells which one that is. Neither a word
/// that stays nor a `taken` one is free.
fn assigned<'a>(
    words: impl Iterator<Item = &'a Text>,
    taken: &[&str],
    stays: impl Fn(&Text) -> bool,
    form: impl Fn(&Text, u64) -> String,
) -> impl Iterator<Item = (&'a Text, String, u64)> {
    let mut seen = HashSet::new();
    let distinct = words.filter(move |word| seen.insert(*word));
    let (kept, mapped): (Vec<&Text>, Vec<&Text>) = distinct.partition(|word| stays(word));
    let mut taken: HashSet<String> =
        kept.iter().map(ToString::to_string).chain(taken.iter().map(ToString::to_string)).collect();
    mapped.into_iter().filter_map(move |word| {
        let mut forms = (0..).map(|attempt| (form(word, attempt), attempt));
        let (wire, attempt) = forms.find(|(wire, _)| taken.insert(wire.clone()))?;
        Some((word, wire, attempt))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NINE: IdRule = IdRule::Alphanumeric(9);

    fn texts(words: &[&str]) -> Vec<Text> {
        words.iter().map(|word| Text::from(*word)).collect()
    }

    fn of_ids(rule: IdRule, ids: &[Text]) -> WireNames {
        let mut names = WireNames::usual(rule, NameRule::Any);
        names.map_ids(|| ids.iter());
        names
    }

    fn of_tools(rule: NameRule, verbatim: &[&str], tools: &[Text]) -> WireNames {
        let mut names = WireNames::usual(IdRule::Any, rule);
        names.map_tools(verbatim, || tools.iter());
        names
    }

    #[test]
    fn accepted_ids_stay_and_others_map_consistently() {
        let long = "x".repeat(41);
        let cases = [
            (IdRule::Any, "functions.add:0", true),
            (IdRule::Any, "", true),
            (IdRule::UpTo(40), "functions.add:0", true),
            (IdRule::UpTo(40), &long, false),
            (NINE, "g6fVbXS8K", true),
            (NINE, "g6fVbXS8", false),
            (NINE, "g6fVb-S8K", false),
            (NINE, "functions.add:0", false),
            (IdRule::Word(64), "toolu_01A-b", true),
            (IdRule::Word(64), &long, true),
            (IdRule::Word(40), &long, false),
            (IdRule::Word(64), "functions.add:0", false),
            (IdRule::Word(64), "", false),
            (IdRule::Word(4), "call_1", false),
        ];
        for (rule, id, kept) in cases {
            let id = Text::from(id);
            let names = of_ids(rule, std::slice::from_ref(&id));
            let wire = names.call_id(&id);
            assert_eq!(wire == id.as_str(), kept, "{rule:?} {id}");
            assert!(rule.accepts(&wire), "{rule:?} {wire}");
            assert_eq!(WireNames::usual(rule, NameRule::Any).call_id(&id), wire);
        }
        // Must never change: prompt caches of providers depend on it.
        assert_eq!(NINE.map("call_1", 0), "I3aQddZxA");
        assert_eq!(IdRule::UpTo(40).map(&long, 0), format!("call_{}", letters(&long, 0, 24)));
    }

    #[test]
    fn id_colliding_with_another_is_mapped_differently() {
        let mapped = NINE.map("call_1", 0);
        // The second id is accepted unchanged, and equals the usual wire id of the first one.
        let ids = texts(&["call_1", &mapped, "call_2"]);
        let names = of_ids(NINE, &ids);
        assert_eq!(names.special_ids.keys().collect::<Vec<_>>(), [&ids[0]]);
        let wire: HashSet<_> = ids.iter().map(|id| names.call_id(id)).collect();
        assert_eq!(wire.len(), 3);
        assert!(wire.contains(mapped.as_str()) && wire.iter().all(|id| NINE.accepts(id)));
    }

    #[test]
    fn many_ids_and_names_stay_apart() {
        let words: Vec<Text> = (0..5000).map(|n| format!("{}.{n}", "a".repeat(70)).into()).collect();
        for rule in [IdRule::UpTo(40), NINE, IdRule::Word(64)] {
            let names = of_ids(rule, &words);
            assert_eq!(words.iter().map(|id| names.call_id(id)).collect::<HashSet<_>>().len(), words.len());
        }
        let names = of_tools(NameRule::Word, &[], &words);
        let wire: HashSet<_> = words.iter().map(|name| names.tool(name)).collect();
        assert!(wire.len() == words.len() && wire.iter().all(|name| NameRule::Word.accepts(name)));
    }

    #[test]
    fn different_names_stay_different_and_come_back() {
        let long = "x".repeat(70);
        let tools = texts(&[
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
        let names = of_tools(NameRule::Word, &[], &tools);
        let wire: Vec<String> = tools.iter().map(|name| names.tool(name).into_owned()).collect();
        assert_eq!(wire.iter().collect::<HashSet<_>>().len(), tools.len(), "{wire:?}");
        for (name, wire) in tools.iter().zip(&wire) {
            assert!(NameRule::Word.accepts(wire), "{wire}");
            assert_eq!(names.behind.get(wire).unwrap_or(name), name);
            if NameRule::Word.accepts(name) {
                assert_eq!((wire.as_str(), names.behind.get(wire)), (name.as_str(), None));
            }
        }
        // Must never change: prompt caches of providers depend on it.
        assert_eq!(wire[0], format!("docs_search_{}", letters("docs.search", 0, 6)));
        assert_eq!(of_tools(NameRule::Word, &[], &tools[..1]).tool("docs.search"), "docs_search");
    }

    #[test]
    fn name_written_by_caller_into_body_stays() {
        let tools = texts(&["docs.search", "a.b", "docs/search"]);
        let names = of_tools(NameRule::Word, &["docs.search", "a_b"], &tools);
        assert_eq!(names.tool("docs.search"), "docs.search");
        assert_ne!(names.tool("a.b"), "a_b");
        assert_eq!(names.tool("docs/search"), "docs_search");
        assert_eq!(names.meant_by("a_b"), None);
    }

    #[test]
    fn any_name_is_sent_and_comes_back_unchanged() {
        let tools = texts(&["docs.search", "docs_search", "read file", "größe", "", &"x".repeat(200)]);
        let names = WireNames { offered: tools.clone(), ..of_tools(NameRule::Any, &[], &tools) };
        for name in &tools {
            assert!(!names.is_special_tool(name));
            assert_eq!((&*names.tool(name), names.meant_by(name).as_ref()), (name.as_str(), Some(name)));
        }
        assert_eq!(names.meant_by("docs search"), None);
    }

    #[test]
    fn rule_for_first_letter_holds_there_only() {
        let rule = NameRule::LetterFirst;
        let tools = texts(&["3d-model", "-x", "_x", "x-3", "", "_d-model"]);
        let names = of_tools(rule, &[], &tools);
        let wire: Vec<_> = tools.iter().map(|name| names.tool(name)).collect();
        let third = format!("_d-model_{}", letters("3d-model", 0, 6));
        let second = format!("_x_{}", letters("-x", 0, 6));
        assert_eq!(wire, [&*third, &second, "_x", "x-3", "unnamed", "_d-model"]);
        assert!(wire.iter().all(|name| rule.accepts(name)));
        assert_eq!(NameRule::Word.usual("3d-model"), "3d-model");
    }
}
