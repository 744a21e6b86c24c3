//! `Rule` and `Diagnostics`: the rules of call identity, and a count of each application.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Text;

/// Statistics of how tool-call fragments were assigned: one count per [`Rule`].
///
/// Only [`Rule::KnownIndex`] needs no interpretation and is not counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Diagnostics {
    counts: [u32; Rule::ALL.len()],
}

/// Declares the rules, and lists them.
macro_rules! rules {
    ($($(#[$doc:meta])* $rule:ident = $word:literal,)*) => {
        /// The rule that assigned a fragment of a tool call to its call. Listed in the order in which they are
        /// tried.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Rule {
            $($(#[$doc])* $rule,)*
        }

        impl Rule {
            /// Every rule, in order.
            pub const ALL: [Self; [$(Self::$rule),*].len()] = [$(Self::$rule),*];

            /// Returns the rule as one word, such as `known_id`, for traces and counters.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$rule => $word,)*
                }
            }
        }
    };
}

rules! {
    /// The id of a known call: that call.
    KnownId = "known_id",
    /// The id of a known call, an index that no call has, and a name or arguments: a new call.
    IdRepeated = "id_repeated",
    /// The id or the index of a call that has another name: a new call. Unless the arguments of the known call are
    /// complete JSON by then, neither call is completed.
    OtherName = "other_name",
    /// Contradicting evidence beside arguments or a name that a call lacks. It is an id that several calls have, or
    /// the id of one call with the index of another. The candidates are narrowed down by the name and by complete
    /// arguments. If several remain, none of them is completed. The same holds for arguments behind a repeated
    /// header, which may belong to a further call. It also holds for a name under an id whose arguments went to
    /// another call.
    Contradiction = "contradiction",
    /// The index of a known call and no evidence for another call: that call.
    KnownIndex = "known_index",
    /// The index of a known call, but a new id together with a name: a new call.
    IndexReusedWithNewId = "index_reused_with_new_id",
    /// The index of a known call whose arguments are complete, and a name: a new call. If another call has that
    /// name, the new call is completed only with its own arguments.
    IndexReusedAfterCompleteArguments = "index_reused_after_complete_arguments",
    /// An unknown index or id, with a name or an id: a new call.
    NewCall = "new_call",
    /// An unknown index and no name or id: a new call that waits for its name.
    BufferedUntilNamed = "buffered_until_named",
    /// No index and no id, but the last call's name while its arguments are incomplete: a repetition.
    NameRepeated = "name_repeated",
    /// No index and no id, but a name: a new call. If another call has that name, the new call is completed only
    /// with its own arguments. If the other call's arguments are incomplete by then, neither is completed.
    NewName = "new_name",
    /// Only a position among several fragments of one event: the call at that position among the last ones.
    Position = "position",
    /// No evidence: the last open call.
    LastOpen = "last_open",
    /// A call ended without a name.
    Unnamed = "unnamed",
    /// A call had no id when its block opened, or the id of an earlier call; it got a generated one.
    IdMade = "id_made",
    /// Empty arguments `{}` were followed by the real ones and discarded.
    EmptyArgumentsDropped = "empty_arguments_dropped",
    /// A call ended that is not completed, because its arguments may belong to another call or may be missing.
    Doubtful = "doubtful",
}

impl Diagnostics {
    /// Returns how often `rule` was applied; always 0 for [`Rule::KnownIndex`].
    #[must_use]
    pub fn count(&self, rule: Rule) -> u32 {
        self.counts.get(rule as usize).copied().unwrap_or_default()
    }

    /// Checks whether no rule was counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.applied().next().is_none()
    }

    /// Iterates over the applied rules and their counts.
    pub fn applied(&self) -> impl Iterator<Item = (Rule, u32)> {
        Rule::ALL.into_iter().map(|rule| (rule, self.count(rule))).filter(|(_, count)| *count > 0)
    }

    pub(crate) fn note(&mut self, rule: Rule) {
        if rule != Rule::KnownIndex
            && let Some(count) = self.counts.get_mut(rule as usize)
        {
            *count = count.saturating_add(1);
        }
    }
}

/// An object with the counts of the applied rules, by [`Rule::as_str`].
impl Serialize for Diagnostics {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.applied().map(|(rule, count)| (rule.as_str(), count)))
    }
}

/// Unknown rules are ignored.
impl<'de> Deserialize<'de> for Diagnostics {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = BTreeMap::<Text, u32>::deserialize(deserializer)?;
        let count = |rule: Rule| match rule {
            Rule::KnownIndex => 0,
            _ => read.get(rule.as_str()).copied().unwrap_or_default(),
        };
        Ok(Self { counts: Rule::ALL.map(count) })
    }
}
