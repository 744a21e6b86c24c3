use crate::open_call::OpenCall;
use crate::{Rule, ToolCallDelta};

/// Which call a fragment belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Identity {
    /// The call at this place.
    Known(usize),
    /// A call not seen before.
    New,
}

/// The place of a fragment among those of its wire event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) position: usize,
    pub(crate) count: usize,
}

/// Decides which call `fragment` belongs to, and by which rule. All of the identity of calls is here.
///
/// Numbers and ids are evidence, not truth: servers leave them out, repeat them, reuse them and
/// change them in the middle of a call.
pub(crate) fn identify(calls: &mut [OpenCall], fragment: &ToolCallDelta, place: Place) -> (Identity, Rule) {
    let id = fragment.call_id();
    if let Some(id) = id
        && let Some(known) = calls.iter().rposition(|call| call.id.as_ref() == Some(id))
    {
        return (Identity::Known(known), Rule::KnownId);
    }
    if let Some(index) = fragment.index
        && let Some(known) = calls.iter().rposition(|call| call.index == Some(index))
    {
        return by_known_index(calls, known, fragment);
    }
    if fragment.index.is_some() || id.is_some() {
        return match (fragment.name(), id) {
            (None, None) => (Identity::New, Rule::BufferedUntilNamed),
            _ => (Identity::New, Rule::NewCall),
        };
    }
    without_number_or_id(calls, fragment, place)
}

fn by_known_index(calls: &mut [OpenCall], known: usize, fragment: &ToolCallDelta) -> (Identity, Rule) {
    let Some(call) = calls.get_mut(known) else {
        return (Identity::New, Rule::NewCall);
    };
    if let Some(name) = fragment.name() {
        // An id that arrives late, beside the call's own name, belongs to the call.
        let late_id = call.id.is_none() && call.name.as_ref().is_none_or(|known| known == name);
        if fragment.call_id().is_some() && !late_id {
            return (Identity::New, Rule::IndexReusedWithNewId);
        }
        if call.arguments_complete() {
            return (Identity::New, Rule::IndexReusedAfterCompleteArguments);
        }
    }
    (Identity::Known(known), Rule::KnownIndex)
}

fn without_number_or_id(calls: &mut [OpenCall], fragment: &ToolCallDelta, place: Place) -> (Identity, Rule) {
    let last = calls.iter().rposition(|call| !call.ended);
    if let Some(name) = fragment.name() {
        let Some((last, call)) = last.and_then(|last| Some((last, calls.get_mut(last)?))) else {
            return (Identity::New, Rule::NewName);
        };
        let complete = call.arguments_complete();
        return match &call.name {
            // Arguments that came before any name wait for this one.
            None => (Identity::Known(last), Rule::LastOpen),
            Some(known) if known == name && !complete => (Identity::Known(last), Rule::NameRepeated),
            Some(_) => (Identity::New, Rule::NewName),
        };
    }
    match last {
        _ if place.count > 1 && place.position < calls.len() => {
            (Identity::Known(place.position), Rule::Position)
        }
        _ if place.count > 1 => (Identity::New, Rule::BufferedUntilNamed),
        Some(last) => (Identity::Known(last), Rule::LastOpen),
        None => (Identity::New, Rule::BufferedUntilNamed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Text;

    fn fragment(index: Option<i64>, id: &str, name: &str, arguments: &str) -> ToolCallDelta {
        ToolCallDelta {
            index,
            call_id: Some(Text::from(id)),
            name: Some(Text::from(name)),
            arguments_delta: Some(Text::from(arguments)),
            provider_data: None,
        }
    }

    fn open(index: Option<i64>, id: &str, name: &str, arguments: &str) -> OpenCall {
        let mut call = OpenCall::default();
        call.extend(&fragment(index, id, name, arguments));
        call
    }

    fn bare_call() -> OpenCall {
        open(None, "", "f", "")
    }

    fn ended(mut call: OpenCall) -> OpenCall {
        call.ended = true;
        call
    }

    const ALONE: Place = Place { position: 0, count: 1 };

    #[test]
    fn every_rule_decides_as_the_table_says() {
        use Identity::{Known, New};
        let cut = "{\"a\":";
        let whole = "{\"a\":1}";
        let two = || vec![open(Some(0), "a", "f", whole), open(Some(1), "b", "g", cut)];
        let bare = |arguments| vec![open(None, "", "f", arguments)];
        let second_of_two = Place { position: 1, count: 2 };
        type Row = (&'static str, Vec<OpenCall>, ToolCallDelta, Place, (Identity, Rule));
        let table: Vec<Row> = vec![
            (
                "a known id wins over the index",
                two(),
                fragment(Some(1), "a", "", "x"),
                ALONE,
                (Known(0), Rule::KnownId),
            ),
            ("a header sent again", two(), fragment(Some(0), "a", "f", ""), ALONE, (Known(0), Rule::KnownId)),
            ("a known index", two(), fragment(Some(1), "", "", "1}"), ALONE, (Known(1), Rule::KnownIndex)),
            (
                "a changing id without a name",
                two(),
                fragment(Some(1), "zz", "", "1}"),
                ALONE,
                (Known(1), Rule::KnownIndex),
            ),
            (
                "a name repeated while arguments run",
                two(),
                fragment(Some(1), "", "g", "1}"),
                ALONE,
                (Known(1), Rule::KnownIndex),
            ),
            (
                "a new id with a name",
                two(),
                fragment(Some(0), "c", "f", whole),
                ALONE,
                (New, Rule::IndexReusedWithNewId),
            ),
            (
                "a name after whole arguments",
                two(),
                fragment(Some(0), "", "h", ""),
                ALONE,
                (New, Rule::IndexReusedAfterCompleteArguments),
            ),
            (
                "a late id with its name repeated",
                vec![open(Some(0), "", "f", cut)],
                fragment(Some(0), "a", "f", ""),
                ALONE,
                (Known(0), Rule::KnownIndex),
            ),
            (
                "another id and another name",
                vec![open(Some(0), "", "f", cut)],
                fragment(Some(0), "a", "g", ""),
                ALONE,
                (New, Rule::IndexReusedWithNewId),
            ),
            ("a new index with a name", two(), fragment(Some(7), "", "h", ""), ALONE, (New, Rule::NewCall)),
            (
                "a negative index is an index",
                two(),
                fragment(Some(-1), "c", "", ""),
                ALONE,
                (New, Rule::NewCall),
            ),
            ("a new id without an index", two(), fragment(None, "c", "", ""), ALONE, (New, Rule::NewCall)),
            (
                "arguments before the name",
                two(),
                fragment(Some(2), "", "", "{"),
                ALONE,
                (New, Rule::BufferedUntilNamed),
            ),
            (
                "the same name, arguments running",
                bare(cut),
                fragment(None, "", "f", "1}"),
                ALONE,
                (Known(0), Rule::NameRepeated),
            ),
            (
                "the same name, arguments whole",
                bare(whole),
                fragment(None, "", "f", whole),
                ALONE,
                (New, Rule::NewName),
            ),
            ("another name", bare(cut), fragment(None, "", "g", ""), ALONE, (New, Rule::NewName)),
            (
                "a name for waiting arguments",
                vec![open(Some(0), "", "", cut)],
                fragment(None, "", "g", ""),
                ALONE,
                (Known(0), Rule::LastOpen),
            ),
            (
                "a place among several",
                two(),
                fragment(None, "", "", "x"),
                second_of_two,
                (Known(1), Rule::Position),
            ),
            (
                "a place not taken yet",
                bare(cut),
                fragment(None, "", "", "x"),
                second_of_two,
                (New, Rule::BufferedUntilNamed),
            ),
            ("nothing at all", two(), fragment(None, "", "", "x"), ALONE, (Known(1), Rule::LastOpen)),
            (
                "nothing at all, the last one ended",
                vec![open(Some(0), "a", "f", cut), ended(open(Some(1), "b", "g", whole))],
                fragment(None, "", "", "x"),
                ALONE,
                (Known(0), Rule::LastOpen),
            ),
            (
                "nothing at all, all ended",
                vec![ended(bare_call())],
                fragment(None, "", "", "x"),
                ALONE,
                (New, Rule::BufferedUntilNamed),
            ),
            (
                "the name of a call that ended without arguments",
                vec![ended(bare_call())],
                fragment(None, "", "f", ""),
                ALONE,
                (New, Rule::NewName),
            ),
            (
                "nothing at all, first",
                vec![],
                fragment(None, "", "", "x"),
                ALONE,
                (New, Rule::BufferedUntilNamed),
            ),
        ];
        for (what, mut calls, fragment, place, expected) in table {
            assert_eq!(identify(&mut calls, &fragment, place), expected, "{what}");
        }
    }
}
