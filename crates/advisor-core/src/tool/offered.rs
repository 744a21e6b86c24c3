//! The tools of a turn: those that were offered to the model, those that may be called, and the pass that finds them.

use std::collections::HashSet;
use std::mem;
use std::sync::Arc;

use message_aggregator::Text;
use tokio::sync::oneshot;

use crate::{ToolSet, Turn};

/// The tools of a turn. An extension of it, since tools know their turn.
#[derive(Default)]
struct Tools {
    /// Those that were offered to the model, by round.
    offered: Vec<(u32, ToolSet)>,
    /// The names of those that may be called; `None` allows all.
    allowed: Option<HashSet<Text>>,
    resolving: Resolving,
}

/// Whether the request on its way only finds the tools of the turn.
#[derive(Default)]
enum Resolving {
    #[default]
    No,
    /// It has not arrived beside the model.
    OnItsWay(oneshot::Sender<ToolSet>),
    Arrived,
}

impl Turn {
    pub(crate) fn offer_tools(&self, round: u32, tools: ToolSet) {
        self.extensions().update(|of_turn: &mut Tools| of_turn.offered.push((round, tools)));
    }

    /// Returns the tools that were offered to the model in `round`, and forgets those of earlier rounds.
    ///
    /// Only these can be called in that round, whichever advisor added them to the request, and whether the model or an
    /// advisor answered it. `None` if the round was not asked for.
    #[must_use]
    pub fn take_offered_tools(&self, round: u32) -> Option<ToolSet> {
        let (offered, allowed) = self.extensions().update(|Tools { offered, allowed, .. }| {
            offered.retain(|(later, _)| *later >= round);
            let (_, tools) = offered.iter().find(|(of, _)| *of == round)?;
            Some((tools.clone(), allowed.clone()))
        })??;
        Some(match allowed {
            Some(names) => offered.filtered(|name| names.contains(name)),
            None => offered,
        })
    }

    /// Allows only tools of these names from now on, in the rest of the turn. A tool needs the permission of each call of
    /// this. Calls of other tools do not run, whatever advisor adds the tools or makes the answer.
    pub fn allow_only(&self, names: &HashSet<Text>) {
        self.extensions().update(|Tools { allowed, .. }| match allowed {
            Some(allowed) => allowed.retain(|name| names.contains(name)),
            None => *allowed = Some(names.clone()),
        });
    }

    /// Checks whether the request on its way only finds the tools of the turn.
    ///
    /// Approved calls run before the first round, with the tools that its request has beside the model. To find them, the
    /// request passes the advisors inside memory once more before. It is dropped beside the model, as a cancelled one, so no
    /// model is asked. An advisor that counts calls of the model leaves it out.
    #[must_use]
    pub fn resolves_tools(&self) -> bool {
        let is_on = self.extensions().update(|Tools { resolving, .. }| !matches!(resolving, Resolving::No));
        is_on.unwrap_or_default()
    }

    /// Begins to find the tools. The receiver gets those of the first request that arrives beside the model.
    pub(crate) fn begin_resolving(self: &Arc<Self>) -> (oneshot::Receiver<ToolSet>, ResolvingPass) {
        let (sender, receiver) = oneshot::channel();
        self.extensions().update(|of_turn: &mut Tools| of_turn.resolving = Resolving::OnItsWay(sender));
        (receiver, ResolvingPass(Arc::clone(self)))
    }

    /// Notes that a request with these tools has arrived. Returns whether the turn only finds its tools: the request must
    /// not be answered then.
    pub(crate) fn note_arrival(&self, tools: &ToolSet) -> bool {
        let before = self.extensions().update(|Tools { resolving, .. }| match resolving {
            Resolving::No => Resolving::No,
            _ => mem::replace(resolving, Resolving::Arrived),
        });
        match before {
            Some(Resolving::OnItsWay(waiting)) => {
                // Without a receiver, the pass is being dropped.
                let _ = waiting.send(tools.clone());
                true
            }
            Some(Resolving::Arrived) => true,
            Some(Resolving::No) | None => false,
        }
    }
}

/// Ends the pass of a request that only finds the tools of its turn, when it is dropped.
pub(crate) struct ResolvingPass(Arc<Turn>);

impl Drop for ResolvingPass {
    fn drop(&mut self) {
        // Its drop wakes who waits, so it must not be under the lock.
        let before = self.0.extensions().update(|Tools { resolving, .. }| mem::take(resolving));
        drop(before);
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
