/// How the fragments of tool calls had to be assigned: one count per rule of [`Rule`].
///
/// Only [`Rule::KnownIndex`] needs no interpretation and is not counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Diagnostics {
    counts: [u32; Rule::ALL.len()],
}

/// The rule by which a fragment of a tool call found its call, in the order in which they are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rule {
    /// The fragment has an id that a call has already: that call.
    KnownId,
    /// An id that a call has already, with an index that no call has, and a name or arguments: a new call.
    IdRepeated,
    /// The id or the index of a call that has another name: a new call. Neither is completed as long as the first one has no
    /// whole arguments.
    OtherName,
    /// An id that several calls have, or the id of one call and the index of another, beside arguments or a name that one lacks:
    /// the call that is left by a name or by arguments that are whole. If several are left, none of them is completed. The same
    /// holds for arguments behind a header that came again, which may be those of a further call. It holds for a name under an id
    /// under which arguments went to another call, too.
    Contradiction,
    /// The fragment has the number of a call and nothing that speaks for another call: that call.
    KnownIndex,
    /// The number of a call, but a new id together with a name: a new call.
    IndexReusedWithNewId,
    /// The number of a call whose arguments are complete already, and a name: a new call. If another call has that name, it is
    /// completed only with arguments of its own.
    IndexReusedAfterCompleteArguments,
    /// A number or an id not seen before, with a name or an id: a new call.
    NewCall,
    /// A number not seen before and nothing else to tell: a new call that waits for its name.
    BufferedUntilNamed,
    /// No number and no id, but the last call's name while its arguments are incomplete: a repetition.
    NameRepeated,
    /// No number and no id, but a name: a new call. If another call has that name, it is completed only with arguments of its own;
    /// and neither is, if that one is in the middle of its arguments.
    NewName,
    /// Nothing but a place among several fragments of one event: the call at that place among the last ones.
    Position,
    /// Nothing at all: the last open call.
    LastOpen,
    /// A call ended without ever having a name.
    Unnamed,
    /// A call came without an id, or with that of an earlier call; it was given one.
    IdMade,
    /// Empty arguments `{}` were followed by the real ones and dropped.
    EmptyArgumentsDropped,
    /// A call ended that is not complete, because its arguments may be those of another call or may be missing.
    Doubtful,
}

impl Rule {
    /// Every rule, in order.
    pub const ALL: [Self; 17] = [
        Self::KnownId,
        Self::IdRepeated,
        Self::OtherName,
        Self::Contradiction,
        Self::KnownIndex,
        Self::IndexReusedWithNewId,
        Self::IndexReusedAfterCompleteArguments,
        Self::NewCall,
        Self::BufferedUntilNamed,
        Self::NameRepeated,
        Self::NewName,
        Self::Position,
        Self::LastOpen,
        Self::Unnamed,
        Self::IdMade,
        Self::EmptyArgumentsDropped,
        Self::Doubtful,
    ];
}

impl Diagnostics {
    /// How often `rule` was applied; always 0 for [`Rule::KnownIndex`].
    #[must_use]
    pub fn count(&self, rule: Rule) -> u32 {
        self.counts.get(rule as usize).copied().unwrap_or_default()
    }

    /// The rules that were applied, with how often.
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
