//! Call ids in the form that a server accepts.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use advisor_core::Text;

use super::letters::letters;

/// The length of an id that replaces another one, unless the server demands another length.
const USUAL_LENGTH: usize = 29;

/// The call ids that a server accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct IdRule {
    /// The characters.
    pub alphabet: Alphabet,
    /// The number of bytes.
    pub length: Length,
}

/// The characters of an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Alphabet {
    /// Any.
    Any,
    /// ASCII letters, digits, `_` and `-`, at least one.
    Word,
    /// ASCII letters and digits, at least one.
    Alphanumeric,
}

/// The number of bytes of an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Length {
    /// Any.
    Any,
    /// At most this.
    UpTo(usize),
    /// Exactly this.
    Exactly(usize),
}

impl IdRule {
    /// Any id.
    pub const ANY: Self = Self::new(Alphabet::Any, Length::Any);

    /// Creates a rule. The length must leave enough different ids for the calls of a conversation.
    #[must_use]
    pub const fn new(alphabet: Alphabet, length: Length) -> Self {
        Self { alphabet, length }
    }

    fn accepts(self, id: &str) -> bool {
        let of = |fits: fn(u8) -> bool| !id.is_empty() && id.bytes().all(fits);
        let fits = match self.alphabet {
            Alphabet::Any => true,
            Alphabet::Word => of(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')),
            Alphabet::Alphanumeric => of(|byte| byte.is_ascii_alphanumeric()),
        };
        fits && match self.length {
            Length::Any => true,
            Length::UpTo(longest) => id.len() <= longest,
            Length::Exactly(length) => id.len() == length,
        }
    }

    /// Returns an acceptable id for one that is not. Each attempt gives another id.
    fn map(self, id: &str, attempt: u64) -> String {
        let length = match self.length {
            Length::Any => USUAL_LENGTH,
            Length::UpTo(longest) => longest.min(USUAL_LENGTH),
            Length::Exactly(length) => length,
        };
        let prefix =
            if self.alphabet == Alphabet::Alphanumeric || length < USUAL_LENGTH { "" } else { "call_" };
        format!("{prefix}{}", letters(id, attempt, length - prefix.len()))
    }
}

/// The wire id of each call in one request: equal ids have equal ones, different ids different ones.
///
/// ```
/// use advisor_core::Text;
/// use provider_http::names::{Alphabet, CallIds, IdRule, Length};
///
/// let rule = IdRule::new(Alphabet::Alphanumeric, Length::Exactly(9));
/// let ids = [Text::from("call_1"), Text::from("g6fVbXS8K")];
/// let on_the_wire = CallIds::new(rule, ids.iter());
/// assert_eq!(on_the_wire.on_the_wire(&ids[0]), "I3aQddZxA");
/// assert_eq!(on_the_wire.on_the_wire(&ids[1]), "g6fVbXS8K");
/// ```
#[derive(Debug)]
pub struct CallIds {
    rule: IdRule,
    /// Ids that cannot have their usual wire id, because another id of the request has it.
    special: HashMap<Text, String>,
}

impl CallIds {
    /// Creates a map with the usual wire ids, which do not depend on the rest of the request.
    #[must_use]
    pub fn usual(rule: IdRule) -> Self {
        Self { rule, special: HashMap::new() }
    }

    /// Creates the map of a request that contains `ids`.
    pub fn new<'a>(rule: IdRule, ids: impl Iterator<Item = &'a Text>) -> Self {
        let mut map = Self::usual(rule);
        if rule == IdRule::ANY {
            return map;
        }
        let mut seen = HashSet::new();
        let ids: Vec<&Text> = ids.filter(|id| seen.insert(*id)).collect();
        let (kept, mapped): (Vec<&Text>, Vec<&Text>) = ids.into_iter().partition(|id| rule.accepts(id));
        let mut taken: HashSet<String> = kept.into_iter().map(|id| id.to_string()).collect();
        for id in mapped {
            let usual = rule.map(id, 0);
            if taken.insert(usual) {
                continue;
            }
            let other = (1..).map(|attempt| rule.map(id, attempt)).find(|other| taken.insert(other.clone()));
            map.special.extend(other.map(|other| (id.clone(), other)));
        }
        map
    }

    /// Checks whether the server accepts this id unchanged.
    #[must_use]
    pub fn accepts(&self, id: &Text) -> bool {
        self.rule.accepts(id)
    }

    /// Checks whether the wire id of `id` differs from the usual one.
    #[must_use]
    pub fn is_special(&self, id: &Text) -> bool {
        self.special.contains_key(id)
    }

    /// Returns the wire id of a call.
    #[must_use]
    pub fn on_the_wire<'a>(&self, id: &'a Text) -> Cow<'a, str> {
        match self.special.get(id) {
            Some(special) => Cow::Owned(special.clone()),
            None if self.rule.accepts(id) => Cow::Borrowed(id),
            None => Cow::Owned(self.rule.map(id, 0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UP_TO_40: IdRule = IdRule::new(Alphabet::Any, Length::UpTo(40));
    const NINE_ALPHANUMERICS: IdRule = IdRule::new(Alphabet::Alphanumeric, Length::Exactly(9));
    const WORD: IdRule = IdRule::new(Alphabet::Word, Length::Any);

    fn texts(ids: &[&str]) -> Vec<Text> {
        ids.iter().map(|id| Text::from(*id)).collect()
    }

    #[test]
    fn accepted_ids_stay_and_others_map_consistently() {
        let long = "x".repeat(41);
        let cases = [
            (IdRule::ANY, "functions.add:0", true),
            (IdRule::ANY, "", true),
            (UP_TO_40, "functions.add:0", true),
            (UP_TO_40, &long, false),
            (NINE_ALPHANUMERICS, "g6fVbXS8K", true),
            (NINE_ALPHANUMERICS, "g6fVbXS8", false),
            (NINE_ALPHANUMERICS, "g6fVb-S8K", false),
            (NINE_ALPHANUMERICS, "functions.add:0", false),
            (WORD, "toolu_01A-b", true),
            (WORD, &long, true),
            (WORD, "functions.add:0", false),
            (WORD, "", false),
            (IdRule::new(Alphabet::Alphanumeric, Length::UpTo(12)), "call_1", false),
            (IdRule::new(Alphabet::Word, Length::UpTo(4)), "call_1", false),
            (IdRule::new(Alphabet::Alphanumeric, Length::Any), "call_1", false),
            (IdRule::new(Alphabet::Word, Length::Exactly(40)), "call_1", false),
        ];
        for (rule, id, kept) in cases {
            let id = Text::from(id);
            let wire = CallIds::usual(rule).on_the_wire(&id).into_owned();
            assert_eq!(wire == id.as_str(), kept, "{rule:?} {id}");
            assert!(rule.accepts(&wire), "{rule:?} {wire}");
            assert_eq!(CallIds::usual(rule).on_the_wire(&id), wire);
        }
        // Must never change: prompt caches of providers depend on it.
        assert_eq!(NINE_ALPHANUMERICS.map("call_1", 0), "I3aQddZxA");
        assert_eq!(UP_TO_40.map(&long, 0), format!("call_{}", letters(&long, 0, 24)));
    }

    #[test]
    fn id_colliding_with_another_is_mapped_differently() {
        let rule = NINE_ALPHANUMERICS;
        let mapped = rule.map("call_1", 0);
        // The second id is accepted unchanged, and equals the usual wire id of the first one.
        let ids = texts(&["call_1", &mapped, "call_2"]);
        let map = CallIds::new(rule, ids.iter());
        assert!(map.is_special(&ids[0]) && !map.is_special(&ids[1]) && !map.is_special(&ids[2]));
        let wire: HashSet<_> = ids.iter().map(|id| map.on_the_wire(id)).collect();
        assert_eq!(wire.len(), 3);
        assert!(wire.contains(mapped.as_str()));
        assert!(wire.iter().all(|id| rule.accepts(id)));
    }

    #[test]
    fn many_ids_stay_apart() {
        for rule in [UP_TO_40, NINE_ALPHANUMERICS, WORD] {
            let ids: Vec<Text> =
                (0..5000).map(|n| format!("a rather long id of a call, number {n}").into()).collect();
            let map = CallIds::new(rule, ids.iter());
            let wire: HashSet<_> = ids.iter().map(|id| map.on_the_wire(id)).collect();
            assert_eq!(wire.len(), ids.len());
        }
    }
}
