//! Cases of [`identify`], with the reason for each decision.

use super::*;
use crate::Text;

const OPEN: &str = "{\"a\":";
const WHOLE: &str = "{\"a\":1}";
const END: &str = "1}";

/// A fragment; an empty text is absent.
fn piece(id: &str, index: impl Into<Option<i64>>, name: &str, arguments: &str) -> ToolCallDelta {
    let [call_id, name, arguments_delta] = [id, name, arguments].map(|text| Some(Text::from(text)));
    ToolCallDelta { index: index.into(), call_id, name, arguments_delta, provider_data: None }
}

/// A call of one fragment.
fn call(id: &str, index: impl Into<Option<i64>>, name: &str, arguments: &str) -> OpenCall {
    let mut call = OpenCall::default();
    call.extend(&piece(id, index, name, arguments));
    call
}

fn ended(mut call: OpenCall) -> OpenCall {
    call.ended = true;
    call
}

fn known(at: usize) -> Assignment {
    Assignment::known(at)
}

fn new() -> Assignment {
    Assignment::default()
}

/// A new call that runs only with its own arguments.
fn new_with_arguments() -> Assignment {
    Assignment { doubt: Doubt::RepeatedName, ..new() }
}

/// A new call that does not run, and neither do these.
fn new_disputed(with: &[usize]) -> Assignment {
    Assignment { doubt: Doubt::Disputed, disputed: with.to_vec(), ..new() }
}

fn known_disputed(at: usize, with: &[usize]) -> Assignment {
    Assignment { disputed: with.to_vec(), ..known(at) }
}

/// What is decided about fragments, for the calls so far.
type Section = (Vec<OpenCall>, Vec<(ToolCallDelta, Assignment, &'static str)>);

fn sections() -> Vec<Section> {
    vec![
        (
            vec![],
            vec![
                (piece("", None, "", "x"), new(), "it waits for its name"),
                (piece("a", 0, "f", ""), new(), "the first call"),
            ],
        ),
        (
            vec![call("b", 1, "h", OPEN), call("a", 0, "f", OPEN)],
            vec![
                (piece("a", 0, "f", ""), known(1), "a header that is sent again"),
                (piece("a", 0, "", END), known(1), "all says so"),
                (piece("a", None, "f", END), known(1), "all says so"),
                (piece("a", 0, "g", ""), new_disputed(&[1]), "another tool, or a name in pieces"),
                (piece("a", None, "g", ""), new_disputed(&[1]), "the same without the index"),
                (piece("a", 7, "f", ""), new(), "a server that repeats ids"),
                (piece("a", 7, "g", END), new(), "the same"),
                (piece("a", 7, "", END), new(), "the same, before its name"),
                (piece("a", 7, "", ""), known(1), "says nothing"),
                (piece("a", 1, "", ""), known(1), "says nothing"),
                (piece("a", 1, "", END), known_disputed(1, &[0, 1]), "the id of one, the index of another"),
                (piece("a", 1, "f", END), new_disputed(&[0, 1]), "name and id against the index"),
                (piece("a", 1, "h", END), new_disputed(&[0, 1]), "name and index against the id"),
                (piece("a", 1, "g", END), new_disputed(&[0, 1]), "a third tool"),
                (piece("n", 0, "f", ""), new(), "a server that uses one index for all calls"),
                (piece("n", 0, "g", END), new(), "the same"),
                (piece("n", 0, "", END), known(1), "a server that gives each piece an id"),
                (piece("n", 7, "f", ""), new(), "nothing is known"),
                (piece("n", 7, "", END), new(), "it waits for its name"),
                (piece("n", None, "f", ""), new(), "an id says more than a name"),
                (piece("", 0, "f", END), known(1), "a name that is sent again"),
                (piece("", 0, "g", ""), new_disputed(&[1]), "another tool, or a name in pieces"),
                (piece("", 0, "", END), known(1), "what most fragments are"),
                (piece("", 7, "f", ""), new(), "an index says more than a name"),
                (piece("", 7, "", END), new(), "it waits for its name"),
                (piece("", -1, "", END), new(), "a negative index is an index"),
                (piece("", None, "f", END), known(1), "a name that is sent again"),
                (piece("", None, "g", ""), new(), "nothing but a name, and it is another one"),
                (piece("", None, "h", ""), new_disputed(&[0]), "a piece of the other call, or the next one"),
                (piece("", None, "", END), known(1), "nothing at all"),
            ],
        ),
        (
            vec![call("b", 1, "h", OPEN), call("a", 0, "f", WHOLE)],
            vec![
                (piece("a", 0, "f", END), known(1), "these are no JSON now, and nothing runs"),
                (piece("a", 0, "g", ""), new(), "another tool: the arguments before it are whole"),
                (piece("a", 1, "", END), known(0), "only one can take it"),
                (piece("", 0, "f", ""), new_with_arguments(), "a name that is sent again, or the next call"),
                (piece("", 0, "g", ""), new(), "another tool"),
                (
                    piece("", None, "f", ""),
                    new_with_arguments(),
                    "a name that is sent again, or the next call",
                ),
            ],
        ),
        (
            vec![call("x", 0, "f", WHOLE), call("x", 1, "g", OPEN)],
            vec![
                (piece("x", 0, "", END), known(0), "the index says which"),
                (piece("x", 1, "g", END), known(1), "the index says which"),
                (piece("x", 2, "h", ""), new(), "a third one"),
                (piece("x", None, "", END), known(1), "only one can take it"),
                (piece("x", None, "f", END), known(0), "the name says which"),
                (piece("x", None, "h", ""), new_disputed(&[1]), "a third tool"),
                (piece("x", 0, "g", ""), new_disputed(&[1]), "the index of the one, the name of the other"),
            ],
        ),
        (
            vec![call("x", 0, "f", ""), call("x", 1, "g", OPEN)],
            vec![
                (piece("x", None, "", END), known_disputed(1, &[0, 1]), "nothing says which"),
                (piece("x", None, "", ""), known(1), "nothing to take"),
                (piece("x", None, "g", END), known(1), "the name says which"),
            ],
        ),
        (
            vec![call("x", 0, "f", "{}"), call("x", 1, "f", OPEN)],
            vec![(piece("x", None, "f", END), known_disputed(1, &[0, 1]), "`{}` may give way to others")],
        ),
        (
            vec![call("x", 0, "f", WHOLE), call("x", 0, "g", "{}")],
            vec![
                (piece("x", 0, "", END), known(1), "the last one with that key"),
                (piece("", 0, "", END), known(1), "the last one with that index"),
                (piece("x", 0, "f", ""), new_disputed(&[1]), "a header sent again, or a further call"),
            ],
        ),
        (
            vec![call("x", None, "f", WHOLE), call("x", None, "g", "")],
            vec![(piece("x", None, "", END), known(1), "calls without an index follow one another")],
        ),
        (
            vec![call("", 0, "f", OPEN)],
            vec![
                (piece("n", 0, "f", ""), known(0), "a late id"),
                (piece("n", 0, "", END), known(0), "a late id"),
                (piece("n", 0, "g", ""), new(), "another id and another name"),
                (piece("n", None, "", END), new(), "if no name comes, they are left over"),
            ],
        ),
        (
            vec![call("a", None, "f", OPEN)],
            vec![
                (piece("a", 7, "f", ""), known(0), "a late index"),
                (piece("", 7, "", END), new(), "if no name comes, they are left over"),
            ],
        ),
        (
            vec![call("a", 0, "", OPEN)],
            vec![
                (piece("a", 0, "f", ""), known(0), "its name"),
                (piece("", 0, "f", ""), known(0), "its name"),
                (piece("", None, "f", ""), known(0), "its name"),
                (piece("n", 0, "f", ""), new(), "another id"),
            ],
        ),
        (
            vec![call("", 0, "", WHOLE), call("x", 1, "", OPEN)],
            vec![(piece("x", 0, "f", ""), new_disputed(&[0, 1]), "the name of either")],
        ),
        (
            vec![ended(call("a", 0, "f", ""))],
            vec![
                (piece("a", 0, "f", ""), known(0), "a header that is sent again"),
                (piece("a", 0, "g", ""), new(), "another tool"),
                (piece("", None, "", END), new(), "nothing can take it"),
            ],
        ),
        (
            vec![call("a", 0, "f", OPEN), ended(call("b", 1, "g", WHOLE))],
            vec![(piece("", None, "", END), known(0), "the last one that is open")],
        ),
    ]
}

#[test]
fn each_fragment_belongs_to_the_call_that_the_evidence_says() {
    for (calls, cases) in sections() {
        for (fragment, expected, why) in cases {
            let decided = identify(&mut calls.clone(), &fragment, PositionInEvent { position: 0, count: 1 });
            assert_eq!(decided, expected, "{why}: {fragment:?} after {calls:?}");
        }
    }
}

#[test]
fn arguments_under_the_id_of_a_later_call_may_be_its_own() {
    let mut taken = call("a", 0, "f", "");
    taken.extend(&piece("b", 0, "", WHOLE));
    for (fragment, expected) in [
        (piece("b", 0, "g", ""), new_disputed(&[0])),
        (piece("b", 7, "g", ""), new_disputed(&[0])),
        (piece("", 0, "g", ""), new_disputed(&[0])),
        (piece("c", 0, "g", ""), new()),
        (piece("a", 0, "f", ""), known(0)),
        (piece("b", 0, "", END), known(0)),
    ] {
        let decided = identify(&mut [taken.clone()], &fragment, PositionInEvent { position: 0, count: 1 });
        assert_eq!(decided, expected, "{fragment:?}");
    }
}

/// The only evidence is the position in an event of several fragments.
#[test]
fn positions_mean_the_last_calls() {
    let of =
        |arguments: &[&str]| -> Vec<_> { arguments.iter().map(|all| call("", None, "f", all)).collect() };
    for (mut calls, position, expected, why) in [
        (of(&[OPEN, OPEN]), 1, known(1), "as many calls as positions"),
        (of(&[WHOLE, OPEN, ""]), 0, known(1), "more calls, the others whole"),
        (of(&[OPEN, OPEN, ""]), 0, known_disputed(1, &[0, 1, 2]), "more calls, another one open"),
        (of(&["", WHOLE, OPEN]), 1, known_disputed(2, &[0, 2]), "more calls, another one empty"),
        (of(&[OPEN]), 0, known(0), "fewer calls, a position that is taken"),
        (of(&[OPEN]), 1, new(), "fewer calls, a position that is not"),
    ] {
        let decided = identify(&mut calls, &piece("", None, "", "x"), PositionInEvent { position, count: 2 });
        assert_eq!(decided, expected, "{why}");
    }
}
