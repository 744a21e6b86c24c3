//! `identify`: decides the call of a fragment, the rule applied, and the other calls in dispute.

#[cfg(test)]
mod tests;

use crate::aggregator::open_call::{Doubt, OpenCall};
use crate::{Rule, Text, ToolCallDelta};

/// The call that a fragment belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Identity {
    /// The call at this position.
    Known(usize),
    /// A call not seen before.
    New,
}

/// Position of a fragment among those of its wire event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PositionInEvent {
    pub(crate) position: usize,
    pub(crate) count: usize,
}

/// The assignment of a fragment to a call, with its effect on other calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) identity: Identity,
    pub(crate) rule: Rule,
    /// The doubt about a new call.
    pub(crate) doubt: Doubt,
    /// Calls that the fragment may belong to as well. None of them may run.
    pub(crate) disputed: Vec<usize>,
}

impl Decision {
    fn known(at: usize, rule: Rule) -> Self {
        Self { identity: Identity::Known(at), ..Self::new(rule) }
    }

    fn new(rule: Rule) -> Self {
        Self { identity: Identity::New, rule, doubt: Doubt::None, disputed: Vec::new() }
    }
}

/// Decides which call `fragment` belongs to, by which rule, and which other calls it may belong to. This module
/// contains all decisions about the identity of calls.
///
/// Indexes, ids and names are evidence, not truth: servers omit, repeat and reuse them and change them in the
/// middle of a call. If they contradict each other and nothing settles it, no call that may be meant runs.
pub(crate) fn identify(
    calls: &mut [OpenCall],
    fragment: &ToolCallDelta,
    in_event: PositionInEvent,
) -> Decision {
    let mut decision = by_evidence(calls, fragment, in_event);
    dispute_claimed(calls, fragment, &mut decision);
    decision
}

/// Disputes calls to which earlier fragments may have been assigned wrongly. Such fragments are a repeated header,
/// which may have begun another call, or arguments that arrived before their name.
fn dispute_claimed(calls: &mut [OpenCall], fragment: &ToolCallDelta, decision: &mut Decision) {
    let taken = match decision.identity {
        Identity::Known(at) => Some(at),
        Identity::New => None,
    };
    let says_something =
        |at: &usize| fragment.arguments_delta().is_some() || names_one(calls, &[*at], fragment);
    let goes_on = taken.filter(says_something);
    let mut is_claimed = false;
    for (at, call) in calls.iter_mut().enumerate().filter(|(at, _)| Some(*at) != taken) {
        let has_its_arguments = call.has_arguments_of(fragment);
        if has_its_arguments || goes_on.is_some_and(|taken| call.may_continue(fragment, taken)) {
            is_claimed = true;
            if has_its_arguments || call.can_take_more() {
                decision.disputed.push(at);
            }
        }
    }
    if is_claimed {
        match taken {
            Some(taken) => decision.disputed.push(taken),
            None => decision.doubt = Doubt::Disputed,
        }
        decision.rule = Rule::Contradiction;
        decision.disputed.sort_unstable();
        decision.disputed.dedup();
    }
}

fn by_evidence(calls: &mut [OpenCall], fragment: &ToolCallDelta, in_event: PositionInEvent) -> Decision {
    let id = fragment.call_id();
    if let Some(id) = id
        && calls.iter().any(|call| call.id.as_ref() == Some(id))
    {
        return by_known_id(calls, id, fragment);
    }
    if let Some(index) = fragment.index
        && let Some(known) = calls.iter().rposition(|call| call.index == Some(index))
    {
        return by_known_index(calls, known, fragment);
    }
    if fragment.index.is_some() || id.is_some() {
        return match (fragment.name(), id) {
            (None, None) => Decision::new(Rule::BufferedUntilNamed),
            _ => Decision::new(Rule::NewCall),
        };
    }
    without_index_or_id(calls, fragment, in_event)
}

/// Decides by a known id. Servers repeat ids, so several calls may have it; the index distinguishes them.
fn by_known_id(calls: &mut [OpenCall], id: &Text, fragment: &ToolCallDelta) -> Decision {
    let has_id = |call: &OpenCall| call.id.as_ref() == Some(id);
    let Some(index) = fragment.index else {
        return among(calls, fragment, has_id);
    };
    let has_index = |call: &OpenCall| call.index == Some(index);
    let has_both = |call: &OpenCall| has_id(call) && has_index(call);
    let may_get_index = |call: &OpenCall| has_id(call) && call.index.is_none();
    if calls.iter().any(has_both) {
        among(calls, fragment, has_both)
    } else if calls.iter().any(may_get_index) {
        among(calls, fragment, may_get_index)
    } else if calls.iter().any(has_index) {
        id_against_index(calls, fragment, |call| has_id(call) || has_index(call))
    } else if fragment.says_only_its_id() {
        among(calls, fragment, has_id)
    } else {
        Decision::new(Rule::IdRepeated)
    }
}

/// Picks among calls with the same id: the one with the fragment's name, or the only one.
fn among(
    calls: &mut [OpenCall],
    fragment: &ToolCallDelta,
    is_candidate: impl Fn(&OpenCall) -> bool,
) -> Decision {
    let fits = |call: &OpenCall| is_candidate(call) && has_name_of(call, fragment);
    let Some(last) = calls.iter().rposition(fits) else {
        return another_tool(calls, fragment);
    };
    let names_it = names_one(calls, &[last], fragment);
    let says_something = fragment.arguments_delta().is_some() || names_it;
    if !says_something || calls.iter().filter(|call| is_candidate(call)).count() == 1 {
        return Decision::known(last, Rule::KnownId);
    }
    if fragment.name().is_some() && !names_it && calls.iter().filter(|call| fits(call)).count() == 1 {
        return Decision::known(last, Rule::Contradiction);
    }
    // A repeated header and the header of a further call look the same. So it does not settle the case that only
    // one call can take arguments.
    let disputed = open(calls, fits);
    let at = disputed.last().copied().unwrap_or(last);
    Decision { disputed, ..Decision::known(at, Rule::Contradiction) }
}

/// Decides between the id of one call and the index of another. Complete arguments take no more, and a call with a
/// name needs none.
fn id_against_index(
    calls: &mut [OpenCall],
    fragment: &ToolCallDelta,
    is_candidate: impl Fn(&OpenCall) -> bool,
) -> Decision {
    let fits = |call: &OpenCall| is_candidate(call) && has_name_of(call, fragment);
    let Some(last) = calls.iter().rposition(fits) else {
        return another_tool(calls, fragment);
    };
    let open = open(calls, fits);
    let names_it = names_one(calls, &open, fragment);
    if fragment.arguments_delta().is_none() && !names_it {
        return Decision::known(last, Rule::KnownId);
    }
    let with_id = |at: &usize| calls.get(*at).is_some_and(|call| call.id.as_ref() == fragment.call_id());
    let at = open.iter().copied().rfind(with_id).or(open.last().copied()).unwrap_or(last);
    // If another call has the same name, the fragment may be that call's repeated header.
    let is_doubtful = open.len() > 1 || (names_it && calls.iter().filter(|call| fits(call)).count() > 1);
    let disputed = if is_doubtful { open } else { Vec::new() };
    Decision { disputed, ..Decision::known(at, Rule::Contradiction) }
}

/// Begins a new call: other calls have its id or index, but none of these has its name. Those that are not settled
/// may be meant nevertheless, so they are disputed.
fn another_tool(calls: &mut [OpenCall], fragment: &ToolCallDelta) -> Decision {
    let is_meant = |call: &OpenCall| {
        (fragment.index.is_some() && call.index == fragment.index)
            || (fragment.call_id().is_some() && call.id.as_ref() == fragment.call_id())
    };
    let disputed = unsettled(calls, is_meant);
    let doubt = if disputed.is_empty() { Doubt::RepeatedHeader } else { Doubt::Disputed };
    Decision { doubt, disputed, ..Decision::new(Rule::OtherName) }
}

fn by_known_index(calls: &mut [OpenCall], known: usize, fragment: &ToolCallDelta) -> Decision {
    let (Some(call), Some(name)) = (calls.get_mut(known), fragment.name()) else {
        return Decision::known(known, Rule::KnownIndex);
    };
    let is_same_name = call.name.as_ref().is_none_or(|known| known == name);
    // An id that arrives late, together with the call's own name, belongs to the call.
    let is_late_id = call.id.is_none() && is_same_name;
    if fragment.call_id().is_some() && !is_late_id {
        return Decision::new(Rule::IndexReusedWithNewId);
    }
    let (is_complete, is_settled) = (call.arguments_complete(), call.is_settled());
    match &call.name {
        // Arguments that arrived before any name wait for this one.
        None => Decision::known(known, Rule::KnownIndex),
        Some(_) if is_same_name && is_complete => Decision {
            doubt: Doubt::RepeatedHeader,
            ..Decision::new(Rule::IndexReusedAfterCompleteArguments)
        },
        Some(_) if is_same_name => Decision::known(known, Rule::KnownIndex),
        Some(_) if is_settled => by_name(calls, name, Rule::IndexReusedAfterCompleteArguments),
        Some(_) => another_tool(calls, fragment),
    }
}

fn without_index_or_id(
    calls: &mut [OpenCall],
    fragment: &ToolCallDelta,
    in_event: PositionInEvent,
) -> Decision {
    let last = calls.iter().rposition(|call| !call.ended);
    if let Some(name) = fragment.name() {
        let Some((last, call)) = last.and_then(|last| Some((last, calls.get_mut(last)?))) else {
            return by_name(calls, name, Rule::NewName);
        };
        let is_complete = call.arguments_complete();
        return match &call.name {
            // Arguments that arrived before any name wait for this one.
            None => Decision::known(last, Rule::LastOpen),
            Some(known) if known == name && !is_complete => Decision::known(last, Rule::NameRepeated),
            Some(_) => by_name(calls, name, Rule::NewName),
        };
    }
    match last {
        _ if in_event.count > 1 => by_position(calls, fragment, in_event),
        Some(last) => Decision::known(last, Rule::LastOpen),
        None => Decision::new(Rule::BufferedUntilNamed),
    }
}

/// Begins a new call that differs from the others only in its name. It may be the repeated header of a call with
/// that name, or a piece of a call whose arguments are incomplete.
fn by_name(calls: &mut [OpenCall], name: &Text, rule: Rule) -> Decision {
    let has_name = |call: &OpenCall| call.name.as_ref() == Some(name);
    let disputed = unsettled(calls, |call| has_name(call) && call.has_arguments());
    let doubt = match disputed.is_empty() {
        false => Doubt::Disputed,
        true if calls.iter().any(has_name) => Doubt::RepeatedHeader,
        true => Doubt::None,
    };
    Decision { doubt, disputed, ..Decision::new(rule) }
}

/// Decides by position: an event that lists several calls without other evidence lists the last ones.
fn by_position(calls: &mut [OpenCall], fragment: &ToolCallDelta, in_event: PositionInEvent) -> Decision {
    let before = calls.len().saturating_sub(in_event.count);
    let at = before + in_event.position;
    if at >= calls.len() {
        return Decision::new(Rule::BufferedUntilNamed);
    }
    let open = open(calls, |_| true);
    // If an earlier call can take arguments, the event may list that one.
    let is_certain = fragment.arguments_delta().is_none() || open.iter().all(|open| *open >= before);
    let disputed = if is_certain { Vec::new() } else { open };
    Decision { disputed, ..Decision::known(at, Rule::Position) }
}

/// Checks that the fragment's name does not contradict the call's.
fn has_name_of(call: &OpenCall, fragment: &ToolCallDelta) -> bool {
    match (&call.name, fragment.name()) {
        (Some(known), Some(name)) => known == name,
        _ => true,
    }
}

/// Checks whether the fragment has a name that one of these calls lacks.
fn names_one(calls: &[OpenCall], at: &[usize], fragment: &ToolCallDelta) -> bool {
    fragment.name().is_some() && at.iter().any(|at| calls.get(*at).is_some_and(|call| call.name.is_none()))
}

/// Returns the positions of the matching calls that lack their name or the end of their arguments.
fn unsettled(calls: &mut [OpenCall], is_meant: impl Fn(&OpenCall) -> bool) -> Vec<usize> {
    let calls = calls.iter_mut().enumerate();
    calls.filter_map(|(at, call)| (is_meant(call) && !call.is_settled()).then_some(at)).collect()
}

/// Returns the positions of the matching calls that can take more arguments, or a name.
pub(crate) fn open(calls: &mut [OpenCall], is_meant: impl Fn(&OpenCall) -> bool) -> Vec<usize> {
    let calls = calls.iter_mut().enumerate();
    calls.filter_map(|(at, call)| (is_meant(call) && call.can_take_more()).then_some(at)).collect()
}
