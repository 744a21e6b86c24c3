//! `identify`: decides which call a fragment belongs to, and which calls it throws doubt on.

#[cfg(test)]
mod tests;

use crate::ToolCallDelta;
use crate::aggregator::call::{Doubt, OpenCall};

/// Position of a fragment among those of its wire event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PositionInEvent {
    pub(crate) position: usize,
    pub(crate) count: usize,
}

/// The call of a fragment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Assignment {
    /// The position of the call; `None` for a call not seen before.
    pub(crate) known: Option<usize>,
    /// The doubt about a new call.
    pub(crate) doubt: Doubt,
    /// The known calls that the fragment may belong to as well. None of them may run.
    pub(crate) disputed: Vec<usize>,
}

impl Assignment {
    fn known(at: usize) -> Self {
        Self { known: Some(at), ..Self::default() }
    }
}

/// Decides which call `fragment` belongs to. This module contains all decisions about the identity of calls.
///
/// Indexes, ids and names are evidence, not truth: servers omit, repeat and reuse them and change them in the
/// middle of a call. The rules, in their order:
/// 1. The id of a call: that call. With another index that no call has: a new call, since servers repeat ids.
/// 2. The index of a call: the last call with it. With a new id and a name: a new call, since servers reuse indexes. So
///    it is with a name alone, once the arguments of the known call are complete.
/// 3. An id or an index that no call has: a new call, which waits for its name.
/// 4. Neither: a name that the last call does not have begins a new call. Without a name, the position in an event of
///    several fragments counts, or else the last open call is meant.
/// 5. Evidence that contradicts itself: each call that may be meant is disputed, and does not run.
pub(crate) fn identify(
    calls: &mut [OpenCall],
    fragment: &ToolCallDelta,
    in_event: PositionInEvent,
) -> Assignment {
    let mut assignment = by_evidence(calls, fragment, in_event);
    // Arguments that came before this name, under its id, went to another call.
    let is_claimed = |call: &mut OpenCall| call.has_arguments_of(fragment);
    let mut claimed = positions(calls, is_claimed);
    claimed.retain(|at| Some(*at) != assignment.known);
    if !claimed.is_empty() {
        assignment.doubt = Doubt::Disputed;
        assignment.disputed.extend(claimed.into_iter().chain(assignment.known));
    }
    // A header that came again after the call began may have begun a further call, which these arguments belong to.
    if let Some(taken) = assignment.known
        && fragment.name().is_none()
        && fragment.arguments_delta().is_some()
    {
        let is_other = |call: &mut OpenCall| call.named_again > taken && call.may_have_key_of(fragment);
        let mut others = positions(calls, is_other);
        others.retain(|at| *at != taken);
        if !others.is_empty() {
            others.retain(|at| calls.get_mut(*at).is_some_and(OpenCall::can_take_more));
            assignment.disputed.extend(others.into_iter().chain([taken]));
        }
    }
    assignment.disputed.sort_unstable();
    assignment.disputed.dedup();
    assignment
}

fn by_evidence(calls: &mut [OpenCall], fragment: &ToolCallDelta, in_event: PositionInEvent) -> Assignment {
    let (id, index) = (fragment.call_id(), fragment.index);
    let has_id = |call: &OpenCall| id.is_some() && call.id.as_ref() == id;
    let has_index = |call: &OpenCall| index.is_some() && call.index == index;
    if let Some(last) = calls.iter().rposition(has_id) {
        return by_known_id(calls, last, fragment);
    }
    if let Some(last) = calls.iter().rposition(has_index) {
        return by_known_index(calls, last, fragment);
    }
    if id.is_some() || index.is_some() {
        return Assignment::default();
    }
    without_id_or_index(calls, fragment, in_event)
}

/// Decides by the id of known calls. Servers repeat ids, so several calls may have it; the index distinguishes them.
fn by_known_id(calls: &mut [OpenCall], last_with_id: usize, fragment: &ToolCallDelta) -> Assignment {
    let has_id = |call: &OpenCall| call.id.as_ref() == fragment.call_id();
    let has_key = |call: &OpenCall| has_id(call) || call.index == fragment.index;
    let Some(index) = fragment.index else {
        let first = calls.iter().find(|call| has_id(call)).and_then(|call| call.index);
        let is_numbered = calls.iter().any(|call| has_id(call) && call.index != first);
        // Calls without numbers of their own come one after the other.
        return match is_numbered {
            true => among(calls, fragment, has_id, has_id),
            false => go_on(calls, last_with_id, fragment, has_id),
        };
    };
    let with_index = |number| move |call: &OpenCall| has_id(call) && call.index == number;
    let both = calls.iter().rposition(with_index(Some(index)));
    if let Some(at) = both.or_else(|| calls.iter().rposition(with_index(None))) {
        return go_on(calls, at, fragment, has_key);
    }
    if fragment.says_only_its_id() {
        return Assignment::known(last_with_id);
    }
    match calls.iter().any(|call| call.index == Some(index)) {
        false => Assignment::default(),
        // The id of one call, the index of another.
        true if fragment.name().is_some() => begin(calls, fragment, has_key),
        true => among(calls, fragment, has_id, has_key),
    }
}

/// Decides by the index of a known call, under a new id or none.
fn by_known_index(calls: &mut [OpenCall], at: usize, fragment: &ToolCallDelta) -> Assignment {
    let Some(call) = calls.get_mut(at).filter(|_| fragment.name().is_some()) else {
        return Assignment::known(at);
    };
    // An id that arrives late, together with the call's own name, belongs to the call.
    let is_late_id = call.id.is_none() && call.may_have_name_of(fragment);
    if fragment.call_id().is_some() && !is_late_id {
        return Assignment::default();
    }
    if call.name.is_some() && call.arguments_complete() {
        return begin_by_name(calls, fragment);
    }
    go_on(calls, at, fragment, |call| call.index == fragment.index)
}

fn without_id_or_index(
    calls: &mut [OpenCall],
    fragment: &ToolCallDelta,
    in_event: PositionInEvent,
) -> Assignment {
    let last = calls.iter().rposition(|call| !call.ended);
    if fragment.name().is_none() {
        return match last {
            _ if in_event.count > 1 => by_position(calls, fragment, in_event),
            Some(last) => Assignment::known(last),
            None => Assignment::default(),
        };
    }
    if let Some((last, call)) = last.and_then(|last| Some((last, calls.get_mut(last)?)))
        && call.may_have_name_of(fragment)
        && (call.name.is_none() || !call.arguments_complete())
    {
        return Assignment::known(last);
    }
    begin_by_name(calls, fragment)
}

/// Decides by position: an event that lists several calls without other evidence lists the last ones.
fn by_position(calls: &mut [OpenCall], fragment: &ToolCallDelta, in_event: PositionInEvent) -> Assignment {
    let before = calls.len().saturating_sub(in_event.count);
    let at = before + in_event.position;
    if at >= calls.len() {
        return Assignment::default();
    }
    let open = positions(calls, OpenCall::can_take_more);
    // If an earlier call can take arguments, the event may list that one.
    let is_certain = fragment.arguments_delta().is_none() || open.iter().all(|open| *open >= before);
    let disputed = if is_certain { Vec::new() } else { open };
    Assignment { disputed, ..Assignment::known(at) }
}

/// Continues the call at `at`, unless the fragment has another name: then it begins a call.
fn go_on(
    calls: &mut [OpenCall],
    at: usize,
    fragment: &ToolCallDelta,
    has_key: impl Fn(&OpenCall) -> bool,
) -> Assignment {
    match calls.get(at) {
        Some(call) if !call.may_have_name_of(fragment) => begin(calls, fragment, has_key),
        _ => Assignment::known(at),
    }
}

/// Begins a call that has another name than those with its key. Of these, the ones that lack their name or the end of
/// their arguments may be meant, since a name may come in pieces.
fn begin(
    calls: &mut [OpenCall],
    fragment: &ToolCallDelta,
    has_key: impl Fn(&OpenCall) -> bool,
) -> Assignment {
    // If an earlier call has key and name, its header may be sent again, and what follows belongs to another one.
    let is_again = calls.iter().any(|call| has_key(call) && call.name.as_ref() == fragment.name());
    let disputed =
        positions(calls, |call| has_key(call) && (!call.is_settled() || (is_again && call.can_take_more())));
    begin_beside(calls, fragment, disputed)
}

/// Begins a call that nothing but its name tells from others. It may be a piece of a call of that tool.
fn begin_by_name(calls: &mut [OpenCall], fragment: &ToolCallDelta) -> Assignment {
    let disputed = positions(calls, |call| {
        call.name.as_ref() == fragment.name() && call.has_arguments() && !call.is_settled()
    });
    begin_beside(calls, fragment, disputed)
}

fn begin_beside(calls: &[OpenCall], fragment: &ToolCallDelta, disputed: Vec<usize>) -> Assignment {
    let doubt = match disputed.is_empty() {
        false => Doubt::Disputed,
        true if calls.iter().any(|call| call.name.as_ref() == fragment.name()) => Doubt::RepeatedName,
        true => Doubt::None,
    };
    Assignment { known: None, doubt, disputed }
}

/// Picks one of several calls that may be meant, those `preferred` first. If several can take the fragment, they are
/// disputed.
fn among(
    calls: &mut [OpenCall],
    fragment: &ToolCallDelta,
    preferred: impl Fn(&OpenCall) -> bool,
    is_meant: impl Fn(&OpenCall) -> bool,
) -> Assignment {
    let fits = |call: &OpenCall| is_meant(call) && call.may_have_name_of(fragment);
    let Some(last) = calls.iter().rposition(|call| fits(call) && preferred(call)) else {
        return begin(calls, fragment, is_meant);
    };
    let has_one = calls.iter().filter(|call| fits(call)).count() == 1;
    if has_one || (fragment.arguments_delta().is_none() && fragment.name().is_none()) {
        return Assignment::known(last);
    }
    let open = positions(calls, |call| fits(call) && call.can_take_more());
    let is_preferred = |at: &usize| calls.get(*at).is_some_and(&preferred);
    let at = open.iter().copied().rfind(is_preferred).or(open.last().copied()).unwrap_or(last);
    let disputed = if open.len() > 1 { open } else { Vec::new() };
    Assignment { disputed, ..Assignment::known(at) }
}

/// Returns the positions of the matching calls.
pub(crate) fn positions(
    calls: &mut [OpenCall],
    mut is_meant: impl FnMut(&mut OpenCall) -> bool,
) -> Vec<usize> {
    calls.iter_mut().enumerate().filter_map(|(at, call)| is_meant(call).then_some(at)).collect()
}
