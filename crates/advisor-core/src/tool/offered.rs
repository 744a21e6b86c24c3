//! The tools that were offered to the model, per round of a turn.

use std::collections::HashSet;

use message_aggregator::Text;

use crate::{ToolSet, Turn};

/// The tools offered per round, stored as an extension of the turn.
#[derive(Default)]
struct OfferedTools(Vec<(u32, ToolSet)>);

/// The names of the tools that may be called in a turn, stored as an extension of it. `None` allows all.
#[derive(Clone, Default)]
struct AllowedTools(Option<HashSet<Text>>);

impl Turn {
    /// Returns the tools that were offered to the model in `round`, and forgets those of earlier rounds.
    ///
    /// Only these can be called in that round, whichever advisor added them to the request, and whether the model or an
    /// advisor answered it. `None` if the round was not asked for.
    #[must_use]
    pub fn take_offered_tools(&self, round: u32) -> Option<ToolSet> {
        let offered = self.extensions().update(|OfferedTools(offered)| {
            offered.retain(|(later, _)| *later >= round);
            offered.iter().find(|(of, _)| *of == round).map(|(_, tools)| tools.clone())
        })??;
        Some(match self.extensions().get() {
            Some(AllowedTools(Some(names))) => offered.filtered(|name| names.contains(name)),
            _ => offered,
        })
    }

    /// Allows only tools of these names from now on, in the rest of the turn. A tool needs the permission of each call of
    /// this. Calls of other tools do not run, whatever advisor adds the tools or makes the answer.
    pub fn allow_only(&self, names: &HashSet<Text>) {
        self.extensions().update(|AllowedTools(allowed)| match allowed {
            Some(allowed) => allowed.retain(|name| names.contains(name)),
            None => *allowed = Some(names.clone()),
        });
    }

    pub(crate) fn offer_tools(&self, round: u32, tools: ToolSet) {
        self.extensions().update(|OfferedTools(offered)| offered.push((round, tools)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TurnId;

    #[test]
    fn offered_tools_are_forgotten_with_the_rounds_before() {
        let turn = Turn::new(TurnId::random());
        let rounds: Vec<_> = (0..3).map(|_| turn.next_round()).collect();
        assert_eq!(rounds, [1, 2, 3]);
        rounds.iter().for_each(|round| turn.offer_tools(*round, ToolSet::new()));
        assert!(turn.take_offered_tools(2).is_some());
        assert!(turn.take_offered_tools(1).is_none(), "asking for round 2 forgets round 1");
        assert!(turn.take_offered_tools(3).is_some());
    }
}
