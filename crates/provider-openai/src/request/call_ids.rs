//! Call ids in the form that a server accepts (Q69).

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use advisor_core::Text;

use crate::profile::CallIds;

/// The wire id of each call in one request: equal ids have equal ones, different ids different ones.
#[derive(Debug)]
pub(super) struct CallIdMap {
    rule: CallIds,
    /// Ids that cannot have their usual wire id, because another id of the request has it.
    special: HashMap<Text, String>,
}

impl CallIdMap {
    /// Creates a map with the usual wire ids, which do not depend on the rest of the request.
    pub(super) fn usual(rule: CallIds) -> Self {
        Self { rule, special: HashMap::new() }
    }

    /// Creates the map of a request that contains `ids`.
    pub(super) fn new<'a>(rule: CallIds, ids: impl Iterator<Item = &'a Text>) -> Self {
        let mut map = Self::usual(rule);
        if rule == CallIds::Any {
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
    pub(super) fn accepts(&self, id: &Text) -> bool {
        self.rule.accepts(id)
    }

    /// Checks whether the wire id of `id` differs from the usual one.
    pub(super) fn is_special(&self, id: &Text) -> bool {
        self.special.contains_key(id)
    }

    pub(super) fn on_the_wire<'a>(&self, id: &'a Text) -> Cow<'a, str> {
        match self.special.get(id) {
            Some(special) => Cow::Owned(special.clone()),
            None if self.rule.accepts(id) => Cow::Borrowed(id),
            None => Cow::Owned(self.rule.map(id, 0)),
        }
    }
}

impl CallIds {
    fn accepts(self, id: &str) -> bool {
        match self {
            Self::Any => true,
            Self::UpTo40 => id.len() <= 40,
            Self::NineAlphanumerics => id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()),
        }
    }

    /// Returns an acceptable id for one that is not. Each attempt gives another id.
    fn map(self, id: &str, attempt: u64) -> String {
        match self {
            Self::Any => id.to_owned(),
            Self::UpTo40 => format!("call_{}", letters(id, attempt, 24)),
            Self::NineAlphanumerics => letters(id, attempt, 9),
        }
    }
}

/// Returns letters and digits that depend only on id and attempt: the same in every process and version.
pub(super) fn letters(id: &str, attempt: u64, count: usize) -> String {
    const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    // FNV-1a, then SplitMix64 for each letter.
    let fnv = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let mut state = id.bytes().chain(attempt.to_le_bytes()).fold(0xcbf2_9ce4_8422_2325, fnv);
    let mut letter = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let at = ((z ^ (z >> 31)) % ALPHABET.len() as u64) as usize;
        ALPHABET.get(at).map_or('0', |letter| char::from(*letter))
    };
    (0..count).map(|_| letter()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(ids: &[&str]) -> Vec<Text> {
        ids.iter().map(|id| Text::from(*id)).collect()
    }

    #[test]
    fn accepted_ids_stay_and_others_map_consistently() {
        let long = "x".repeat(41);
        let cases = [
            (CallIds::Any, "functions.add:0", true),
            (CallIds::UpTo40, "functions.add:0", true),
            (CallIds::UpTo40, &long, false),
            (CallIds::NineAlphanumerics, "g6fVbXS8K", true),
            (CallIds::NineAlphanumerics, "g6fVbXS8", false),
            (CallIds::NineAlphanumerics, "g6fVb-S8K", false),
            (CallIds::NineAlphanumerics, "functions.add:0", false),
        ];
        for (rule, id, kept) in cases {
            let id = Text::from(id);
            let wire = CallIdMap::usual(rule).on_the_wire(&id).into_owned();
            assert_eq!(wire == id.as_str(), kept, "{rule:?} {id}");
            assert!(rule.accepts(&wire), "{rule:?} {wire}");
            assert_eq!(CallIdMap::usual(rule).on_the_wire(&id), wire);
        }
        // Must never change: prompt caches of providers depend on it.
        assert_eq!(CallIds::NineAlphanumerics.map("call_1", 0), "I3aQddZxA");
    }

    #[test]
    fn id_colliding_with_another_is_mapped_differently() {
        let rule = CallIds::NineAlphanumerics;
        let mapped = rule.map("call_1", 0);
        // The second id is accepted unchanged, and equals the usual wire id of the first one.
        let ids = texts(&["call_1", &mapped, "call_2"]);
        let map = CallIdMap::new(rule, ids.iter());
        assert!(map.is_special(&ids[0]) && !map.is_special(&ids[1]) && !map.is_special(&ids[2]));
        let wire: HashSet<_> = ids.iter().map(|id| map.on_the_wire(id)).collect();
        assert_eq!(wire.len(), 3);
        assert!(wire.contains(mapped.as_str()));
        assert!(wire.iter().all(|id| rule.accepts(id)));
    }

    #[test]
    fn many_ids_stay_apart() {
        for rule in [CallIds::UpTo40, CallIds::NineAlphanumerics] {
            let ids: Vec<Text> =
                (0..5000).map(|n| format!("a rather long id of a call, number {n}").into()).collect();
            let map = CallIdMap::new(rule, ids.iter());
            let wire: HashSet<_> = ids.iter().map(|id| map.on_the_wire(id)).collect();
            assert_eq!(wire.len(), ids.len());
        }
    }
}
