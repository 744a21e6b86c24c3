//! Cases of [`identify`], with the reason for each decision.

use super::*;

/// Sections of calls, and the decision about each of several fragments.
///
/// A call is `id index name arguments`. A fragment is `id index name` and `+` with arguments, `-` without, `*`
/// either. `-` stands for an absent value. `&` joins several fragments of a call; the first of them came before
/// all other calls began. Arguments marked `~` are tried as empty, open and whole: a row has one outcome for each
/// of these, or one for all. An outcome is the position of the call (`#1`) or `new`, and the rule. `?` marks a new
/// call that runs only with its own arguments. `!0,1` lists disputed calls, which do not run; a new call is then
/// disputed as well.
const TABLE: &[(&str, &str)] = &[
    (
        "one call is meant, #1, and another is there: every id, index, name and state of the arguments",
        "r 1 h open, a 0 f ~
        a 0 f - | #1 KnownId | a header that is sent again
        a 0 f + | #1 KnownId | all says so; behind whole arguments these are no JSON, and nothing runs
        a 0 - * | #1 KnownId | all says so
        a 0 g * | new OtherName !1 | new OtherName !1 | new OtherName ? | another tool or a name in pieces: only whole arguments tell
        a 7 f * | new IdRepeated | a server that repeats ids, as indexes are its own numbers
        a 7 g * | new IdRepeated | D1
        a 7 - + | new IdRepeated | arguments before their name: if none comes, they are left over
        a 7 - - | #1 KnownId | says nothing
        a 1 f - | #1 KnownId | nothing to take
        a 1 f + | #1 Contradiction | name and id against the index
        a 1 h - | #0 KnownId | nothing to take
        a 1 h + | #0 Contradiction | name and index against the id, which servers repeat
        a 1 g * | new OtherName !0,1 | new OtherName !0,1 | new OtherName !0 | a third tool under the id of one call and the index of another
        a 1 - - | #1 KnownId | nothing to take
        a 1 - + | #1 Contradiction !0,1 | #1 Contradiction !0,1 | #0 Contradiction | either may take it, unless its arguments are whole
        a - f * | #1 KnownId | all says so
        a - - * | #1 KnownId | all says so
        a - g * | new OtherName !1 | new OtherName !1 | new OtherName ? | as with the index
        n 0 f * | new IndexReusedWithNewId | a server that uses one index for all calls
        n 0 g * | new IndexReusedWithNewId | the same
        n 0 - * | #1 KnownIndex | a server that gives each piece an id
        n 7 f * | new NewCall | nothing is known
        n 7 g * | new NewCall | nothing is known
        n 7 - * | new NewCall | it waits for its name
        n - f * | new NewCall | an id says more than a name
        n - g * | new NewCall | nothing is known
        n - - * | new NewCall | it waits for its name
        - 0 f * | #1 KnownIndex | #1 KnownIndex | new IndexReusedAfterCompleteArguments ? | a repeated name, or the next call
        - 0 g * | new OtherName !1 | new OtherName !1 | new IndexReusedAfterCompleteArguments | another tool or a name in pieces: only whole arguments tell
        - 0 - * | #1 KnownIndex | what most fragments are
        - 7 f * | new NewCall | an index says more than a name
        - 7 g * | new NewCall | nothing is known
        - 7 - * | new BufferedUntilNamed | it waits for its name
        - - f * | #1 NameRepeated | #1 NameRepeated | new NewName ? | a repeated name, or the next call
        - - g * | new NewName | nothing but a name, and it is another one
        - - - * | #1 LastOpen | nothing at all",
    ),
    (
        "two calls have the id, and the arguments of the first are whole",
        "x 0 f whole, x 1 g ~
        x 0 - * | #0 KnownId | the index says which
        x 1 - * | #1 KnownId | the index says which
        x 1 g * | #1 KnownId | the index says which
        x 2 h * | new IdRepeated | a third one
        x 2 f * | new IdRepeated | a third one, of the first one's tool
        x 2 - + | new IdRepeated | a third one that waits for its name
        x 2 - - | #1 KnownId | says nothing
        x - - - | #1 KnownId | nothing to take
        x - - + | #1 Contradiction !1 | #1 Contradiction !1 | #1 Contradiction | a header of a third call may have been taken for one sent again
        x - f + | #0 Contradiction | the name says which; its arguments are no JSON now
        x - g + | #1 Contradiction | the name says which
        x - h * | new OtherName !1 | new OtherName !1 | new OtherName ? | a third tool
        x 1 f * | new OtherName !1 | new OtherName !1 | new OtherName ? | the name of the one, the index of the other
        x 0 g * | new OtherName !1 | new OtherName !1 | new OtherName ? | the same the other way round
        - 1 - * | #1 KnownIndex | the index is enough
        - - - * | #1 LastOpen | the last one",
    ),
    (
        "two calls have the id, and the first has no arguments yet",
        "x 0 f empty, x 1 g ~
        x 0 - + | #0 KnownId | the index says which
        x 1 - + | #1 KnownId | the index says which
        x - - + | #1 Contradiction !0,1 | #1 Contradiction !0,1 | #0 Contradiction !0 | nothing says which
        x - f + | #0 Contradiction | the name says which
        x - g + | #1 Contradiction | the name says which
        x 0 g * | new OtherName !0,1 | new OtherName !0,1 | new OtherName !0 | the index of the one, the name of the other",
    ),
    (
        "a lone `{}` may give way to other arguments",
        "x 0 f bare, x 1 g ~
        x - - + | #1 Contradiction !0,1 | #1 Contradiction !0,1 | #0 Contradiction !0 | nothing says which
        x 0 g * | new OtherName !1 | new OtherName !1 | new OtherName ? | it is whole beside another name",
    ),
    (
        "two calls have the id and the name",
        "x 0 f open, x 1 f ~
        x 1 f * | #1 KnownId | the index says which
        x - f + | #1 Contradiction !0,1 | #1 Contradiction !0,1 | #0 Contradiction !0 | nothing says which
        x - f - | #1 KnownId | nothing to take",
    ),
    (
        "two calls have id and index",
        "x 0 f whole, x 0 g ~
        x 0 - + | #1 Contradiction !1 | #1 Contradiction !1 | #1 Contradiction | a header of a third call may have been taken for one sent again
        - 0 - + | #1 KnownIndex | the last one with that index",
    ),
    (
        "two calls have the id, and the second has no name yet",
        "x 0 f whole, x 1 - ~
        x 1 g * | #1 KnownId | its name
        - 1 g * | #1 KnownIndex | its name
        x - g * | #1 Contradiction !1 | its name, or a third call
        x - - + | #1 Contradiction !1 | nothing says which",
    ),
    (
        "a call without an id",
        "- 0 f ~
        n 0 f * | #0 KnownIndex | #0 KnownIndex | new IndexReusedAfterCompleteArguments ? | a late id, or the next call
        n 0 g * | new IndexReusedWithNewId | another id and another name
        n 0 - * | #0 KnownIndex | a late id
        n - - + | new NewCall | if no name comes, these arguments are left over",
    ),
    (
        "a call without an index",
        "a - f ~
        a 7 f * | #0 KnownId | a late index
        a 7 - * | #0 KnownId | a late index
        a 7 g * | new OtherName !0 | new OtherName !0 | new OtherName ? | another tool or a name in pieces
        - 7 - + | new BufferedUntilNamed | if no name comes, these arguments are left over",
    ),
    (
        "a call without a name",
        "a 0 - ~
        a 0 f * | #0 KnownId | its name
        - 0 f * | #0 KnownIndex | its name
        - - f * | #0 LastOpen | its name
        n 0 f * | new IndexReusedWithNewId | another id
        a 7 f * | new IdRepeated | another index",
    ),
    (
        "a call with an index and nothing else",
        "- 0 - ~
        n 0 f * | #0 KnownIndex | its name and its id",
    ),
    (
        "a call that has ended",
        "a 0 f ended
        a 0 f * | #0 KnownId | a header that is sent again says nothing, arguments are an error
        - 0 f * | #0 KnownIndex | the same
        a 0 g * | new OtherName ? | another tool, unless the header is sent again
        - 0 g * | new IndexReusedAfterCompleteArguments | another tool
        - - f * | new NewName ? | another call, unless the header is sent again
        - - - * | new BufferedUntilNamed | nothing can take it",
    ),
    (
        "a header came again under the same id and index: it may have begun a further call of f",
        "x 0 f whole & x 0 f -, x 0 g ~
        - 0 - + | #1 Contradiction !1 | the further call or g
        - - - + | #1 Contradiction !1 | the further call or g
        x 0 - + | #1 Contradiction !1 | the further call or g
        x 0 f - | #0 KnownId | nothing to take
        - 7 - + | new BufferedUntilNamed | another index",
    ),
    (
        "a header came again, and other ids and indexes are there",
        "x 0 f empty & x 0 f -, y 1 g ~
        - - - + | #1 Contradiction !0,1 | f, a further call of it, or g
        - 1 - + | #1 KnownIndex | the index says which
        y - - + | #1 KnownId | the id says which
        - 0 - + | #0 KnownIndex | either way a call of f",
    ),
    (
        "a header came again with the index of another call",
        "p 0 f whole & p 1 f -, q 1 g ~
        - 1 - + | #1 Contradiction !1 | the further call or g
        p - - + | #0 KnownId | either way a call of f",
    ),
    (
        "a header came again with the id of another call, and without its index",
        "p 0 f whole & q 0 f - & q - f -, q 1 g ~
        q - - + | #1 Contradiction !1 | the further call or g
        q 1 - + | #1 Contradiction !1 | the index of the further call is not certain",
    ),
    (
        "arguments came under another id, before any name of that",
        "a 0 f empty & b 0 - ~
        b 0 g * | new IndexReusedWithNewId | new Contradiction !0 | new Contradiction !0 | the arguments may be its own
        b 0 f * | new IndexReusedWithNewId | new Contradiction !0 | new Contradiction !0 | the same
        b 7 g * | new NewCall | new Contradiction !0 | new Contradiction !0 | the same
        - 0 g * | new OtherName !0 | new Contradiction !0 | new Contradiction !0 | its id may be the one that came
        c 0 g * | new IndexReusedWithNewId | a third id
        b 0 - + | #0 KnownIndex | a server that gives each piece an id
        a 0 - + | #0 KnownId | its own id",
    ),
    (
        "two calls without a name, one has the index and the other the id",
        "- 0 - whole, x 1 - ~
        x 0 f * | #1 Contradiction !0,1 | the name of either
        x 0 - - | #1 KnownId | says nothing",
    ),
    (
        "a call without a name has the id, and one with a name the index",
        "- 0 f whole, x 1 - ~
        x 0 f * | #1 Contradiction !1 | its name, or a header that is sent again
        x 0 g * | #1 Contradiction | its name: the other call has one",
    ),
    (
        "only names tell calls apart",
        "- - f ~, - - g whole
        - - f * | new NewName ? | new NewName !0 | new NewName ? | its header may be sent again, or a piece of its arguments, or the next call
        - - h * | new NewName | another name",
    ),
    (
        "only names tell calls apart, and an index that all have",
        "- 0 f ~, - 0 g whole
        - 0 f * | new IndexReusedAfterCompleteArguments ? | new IndexReusedAfterCompleteArguments !0 | new IndexReusedAfterCompleteArguments ? | as without",
    ),
    (
        "an open call before one that has ended",
        "a 0 f open, b 1 g ended
        - - - * | #0 LastOpen | the last one that can take it",
    ),
    (
        "indexes that are no places",
        "a 0 f whole
        n -1 - * | new NewCall | a negative index is an index",
    ),
];

const ALONE: PositionInEvent = PositionInEvent { position: 0, count: 1 };
const STATES: [&str; 3] = ["empty", "open", "whole"];

fn fragment(id: &str, index: &str, name: &str, arguments: &str) -> ToolCallDelta {
    let said = |word: &str| (word != "-").then(|| Text::from(word));
    ToolCallDelta {
        index: index.parse().ok(),
        call_id: said(id),
        name: said(name),
        arguments_delta: Some(arguments.into()),
        provider_data: None,
    }
}

fn call(written: &str, state: &str) -> OpenCall {
    let mut call = OpenCall::default();
    for written in written.split('&') {
        let [id, index, name, arguments] = words(written);
        let state = if arguments == "~" { state } else { arguments };
        let arguments = match state {
            "empty" | "ended" | "-" => "",
            "open" => "{\"a\":",
            "whole" => "{\"a\":1}",
            "bare" => "{}",
            other => panic!("no state of arguments: {other}"),
        };
        let fragment = fragment(id, index, name, arguments);
        call.note_header(&fragment, usize::MAX);
        call.extend(&fragment);
        call.ended = state == "ended";
    }
    call
}

fn words<const COUNT: usize>(text: &str) -> [&str; COUNT] {
    let words: Vec<_> = text.split_whitespace().collect();
    words.try_into().unwrap_or_else(|_| panic!("not {COUNT} words: {text}"))
}

/// Formats a decision as in the table.
fn told(decision: &Decision) -> String {
    let call = match decision.identity {
        Identity::Known(at) => format!("#{at}"),
        Identity::New => "new".to_owned(),
    };
    let disputed: Vec<_> = decision.disputed.iter().map(usize::to_string).collect();
    let is_disputed = decision.identity == Identity::New && !disputed.is_empty();
    assert_eq!(
        decision.doubt == Doubt::Disputed,
        is_disputed,
        "a new call is disputed with those that are known"
    );
    let doubt = if decision.doubt == Doubt::RepeatedHeader { " ?" } else { "" };
    let disputed = if disputed.is_empty() { String::new() } else { format!(" !{}", disputed.join(",")) };
    format!("{call} {:?}{doubt}{disputed}", decision.rule)
}

type Row<'a> = ([&'a str; 4], Vec<&'a str>);

/// Returns each row as its evidence and its outcome per state of the arguments.
fn rows(section: &str) -> (Vec<&str>, Vec<Row<'_>>) {
    let mut lines = section.lines().map(str::trim);
    let calls = lines.next().unwrap_or_default().split(", ").collect();
    let rows = lines.map(|line| {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        match cells.as_slice() {
            [evidence, all, _why] => (words(evidence), vec![*all; 3]),
            [evidence, outcomes @ .., _why] => (words(evidence), outcomes.to_vec()),
            _ => panic!("no row: {line}"),
        }
    });
    (calls, rows.collect())
}

/// Returns the argument pieces for `+`, `-` or `*`.
fn pieces(arguments: &str) -> &'static [&'static str] {
    match arguments {
        "+" => &["1}"],
        "-" => &[""],
        "*" => &["", "1}"],
        other => panic!("neither with nor without arguments: {other}"),
    }
}

#[test]
fn every_case_is_decided_as_the_table_says() {
    for (what, section) in TABLE {
        let (calls, rows) = rows(section);
        for ([id, index, name, arguments], outcomes) in rows {
            assert_eq!(outcomes.len(), STATES.len(), "{what}: {id} {index} {name}");
            for (state, expected) in STATES.into_iter().zip(outcomes) {
                for piece in pieces(arguments) {
                    let mut calls: Vec<_> = calls.iter().map(|written| call(written, state)).collect();
                    let decision = identify(&mut calls, &fragment(id, index, name, piece), ALONE);
                    assert_eq!(
                        told(&decision),
                        expected,
                        "{what}: {id} {index} {name} with `{piece}`, arguments {state}"
                    );
                }
            }
        }
    }
}

/// 31 kinds of evidence, with and without arguments, in three states: 186 cases. A known id and a known index may
/// belong to one call or to two, and the name may be that of either. Otherwise each of the three is known, new or
/// absent.
#[test]
fn the_first_section_has_every_case() {
    let mut cases = Vec::new();
    for id in ["a", "n", "-"] {
        for index in ["0", "7", "-"] {
            cases.extend(["f", "g", "-"].map(|name| [id, index, name]));
        }
    }
    cases.extend(["f", "h", "g", "-"].map(|name| ["a", "1", name]));
    let expected: Vec<_> = cases.iter().flat_map(|case| [(*case, ""), (*case, "1}")]).collect();
    assert_eq!(expected.len() * STATES.len(), 186);

    let (_, rows) = rows(TABLE[0].1);
    let listed = rows.iter().flat_map(|([id, index, name, arguments], _)| {
        pieces(arguments).iter().map(|piece| ([*id, *index, *name], *piece))
    });
    let mut listed: Vec<_> = listed.collect();
    let mut expected = expected;
    listed.sort_unstable();
    expected.sort_unstable();
    assert_eq!(listed, expected);
}

#[test]
fn first_fragment_of_answer_begins_call() {
    for (fragment, rule) in [
        (fragment("-", "-", "-", "x"), Rule::BufferedUntilNamed),
        (fragment("-", "-", "f", ""), Rule::NewName),
        (fragment("-", "0", "-", "x"), Rule::BufferedUntilNamed),
        (fragment("a", "0", "f", ""), Rule::NewCall),
    ] {
        assert_eq!(identify(&mut [], &fragment, ALONE), Decision::new(rule));
    }
}

/// The only evidence is the position in an event of several fragments.
#[test]
fn places_mean_the_last_calls() {
    let table: [(&str, &[&str], usize, usize, &str); 7] = [
        ("as many calls as places", &["- - f open", "- - g open"], 1, 2, "#1 Position"),
        ("more calls, the others whole", &["- - f whole", "- - g open", "- - h empty"], 0, 2, "#1 Position"),
        (
            "more calls, another one open",
            &["- - f open", "- - g open", "- - h empty"],
            0,
            2,
            "#1 Position !0,1,2",
        ),
        (
            "more calls, another one empty",
            &["- - f empty", "- - g whole", "- - h open"],
            1,
            2,
            "#2 Position !0,2",
        ),
        ("fewer calls, a place that is taken", &["- - f open"], 0, 2, "#0 Position"),
        ("fewer calls, a place that is not", &["- - f open"], 1, 2, "new BufferedUntilNamed"),
        ("no calls", &[], 0, 2, "new BufferedUntilNamed"),
    ];
    for (what, calls, position, count, expected) in table {
        let mut calls: Vec<_> = calls.iter().map(|written| call(written, "")).collect();
        let decision =
            identify(&mut calls, &fragment("-", "-", "-", "x"), PositionInEvent { position, count });
        assert_eq!(told(&decision), expected, "{what}");
    }
}
