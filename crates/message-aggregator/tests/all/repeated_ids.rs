//! Law T6: servers repeat the ids of calls, and no call gets the name, the id or the arguments of another.

use crate::common::{Run, eager, run};
use message_aggregator::{
    AggregatorSettings, ChatResponse, Chunk, Delta, DeltaKind, FinishReason, ToolCall, ToolCallDelta,
};
use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, Strategy, any, prop_assert, prop_assert_eq, proptest};
use proptest::sample::{Index, select};

/// A fragment; an empty text is absent.
fn fragment(index: Option<i64>, id: &str, name: &str, arguments: &str) -> ToolCallDelta {
    let mut fragment = ToolCallDelta::default().with_arguments(arguments);
    fragment.index = index;
    fragment.call_id = Some(id.into());
    fragment.name = Some(name.into());
    fragment
}

fn delta(index: impl Into<Option<i64>>, id: &str, name: &str, arguments: &str) -> Delta {
    Delta::tool_call(fragment(index.into(), id, name, arguments))
}

fn finished(deltas: impl IntoIterator<Item = Delta>) -> Run {
    let run = run(
        AggregatorSettings::default(),
        deltas.into_iter().chain([Delta::finish(FinishReason::ToolCalls)]),
    );
    assert_eq!(run.error, None);
    run.assert_lawful();
    run
}

/// Returns the calls as `id name arguments`; a call that does not run is in brackets.
fn calls(response: &ChatResponse) -> Vec<String> {
    response
        .tool_calls()
        .map(|(_, call)| {
            let told = format!("{} {} {}", call.id, call.name, call.arguments);
            if call.complete { told } else { format!("[{told}]") }
        })
        .collect()
}

const PATH: &str = "{\"path\":\"b\"}";

/// Two calls under one id: the first with these arguments, the second cut into pieces: its header with the first piece, each other piece
/// under `key`.
fn two_calls_with_one_id(first: &str, pieces: &[&str], key: (Option<i64>, &str)) -> Vec<Delta> {
    let [head, rest @ ..] = pieces else { panic!("a call has one piece at least") };
    let begun = [delta(0, "x", "delete_all", first), delta(1, "x", "read", head)];
    let rest = rest.iter().map(|piece| delta(key.0, key.1, "", piece));
    begun.into_iter().chain(rest).collect()
}

#[test]
fn law_t6_piece_that_only_repeats_the_name_may_belong_to_either_call() {
    // The second call goes on under its name alone, which has begun a call of its own before.
    let pieces = [
        delta(0, "x", "g", "{}"),
        delta(None, "", "g", ""),
        delta(0, "x", "g", "{\""),
        delta(None, "", "g", "k"),
        delta(0, "", "", "\":1}"),
    ];
    assert!(calls(&finished(pieces).response).iter().all(|call| call.starts_with('[')));
}

#[test]
fn law_t6_bare_arguments_run_no_ambiguous_call() {
    // The second piece never gets a name. It may belong to the call that was open when it came.
    let begun = [delta(0, "", "f", "{"), delta(7, "", "", "\"a\":1,")];
    let last = Delta::from(DeltaKind::Arguments { index: Some(0), text: "}".into() });
    for last in [last, delta(0, "", "", "}")] {
        let run = finished(begun.iter().cloned().chain([last]));
        assert_eq!(calls(&run.response)[0], "[call_1_0 f {}]");
    }
}

/// The second call's pieces have its id alone, which the first call has, too.
#[test]
fn shared_id_without_index_runs_neither_candidate_call() {
    for first in ["", "{}", "{\"path\":"] {
        let run = finished(two_calls_with_one_id(first, &["", PATH], (None, "x")));
        assert_eq!(
            calls(&run.response),
            [format!("[x delete_all {first}]"), format!("[call_1_1 read {PATH}]")]
        );
    }
    // Whole arguments take no more.
    let run = finished(two_calls_with_one_id("{\"path\":\"a\"}", &["", PATH], (None, "x")));
    assert_eq!(calls(&run.response)[1], format!("call_1_1 read {PATH}"));
    // The name says which.
    let run = finished([
        delta(0, "x", "delete_all", ""),
        delta(1, "x", "read", ""),
        delta(None, "x", "read", PATH),
    ]);
    assert_eq!(calls(&run.response), ["x delete_all ".to_owned(), format!("call_1_1 read {PATH}")]);
}

/// The id and the index of one call: nothing says which of them is right.
#[test]
fn only_calls_outside_contradiction_run() {
    let run = finished([
        delta(0, "a", "delete_all", ""),
        delta(1, "b", "read", ""),
        delta(2, "c", "list", ""),
        delta(1, "a", "", PATH),
    ]);
    assert_eq!(calls(&run.response), [&format!("[a delete_all {PATH}]"), "[b read ]", "c list "]);
}

#[test]
fn new_name_under_same_key_is_another_call() {
    let whole = "{\"path\":\"a\"}";
    let run = finished([delta(0, "x", "delete_all", whole), delta(0, "x", "read", PATH)]);
    assert_eq!(calls(&run.response), [format!("x delete_all {whole}"), format!("call_1_1 read {PATH}")]);
    // Without arguments the first one may be a piece of a name, or its arguments may be those that come.
    for id in ["x", ""] {
        let run = finished([delta(0, "x", "delete_all", ""), delta(0, id, "read", PATH)]);
        assert_eq!(calls(&run.response), ["[x delete_all ]".to_owned(), format!("[call_1_1 read {PATH}]")]);
    }
}

/// Arguments that reached no call may be those of a call that has none.
#[test]
fn leftover_arguments_block_calls_without_arguments() {
    let nameless = delta(None, "new", "", PATH);
    let behind_whole_ones = [delta(1, "b", "list", PATH), delta(1, "", "", PATH)];
    for left_over in [vec![nameless], behind_whole_ones.to_vec()] {
        let run = finished([delta(0, "a", "delete_all", "")].into_iter().chain(left_over));
        assert_eq!(calls(&run.response)[0], "[a delete_all ]");
    }
    let run = finished([delta(0, "a", "delete_all", ""), delta(1, "b", "read", PATH)]);
    assert_eq!(calls(&run.response), ["a delete_all ".to_owned(), format!("b read {PATH}")]);
}

/// A call as the model makes it, and as a server sends it.
#[derive(Debug, Clone)]
struct Sent {
    index: i64,
    id: &'static str,
    name: &'static str,
    arguments: String,
    /// The positions at which the arguments are cut.
    cuts: Vec<Index>,
}

impl Sent {
    fn pieces(&self) -> Vec<&str> {
        let mut cuts: Vec<_> = self.cuts.iter().map(|cut| cut.index(self.arguments.len() + 1)).collect();
        cuts.sort_unstable();
        let starts = [0].into_iter().chain(cuts.iter().copied());
        let ends = cuts.iter().copied().chain([self.arguments.len()]);
        starts.zip(ends).map(|(start, end)| &self.arguments[start..end]).collect()
    }

    /// Returns the name and the arguments that may run.
    fn told(&self) -> (&str, &str) {
        (self.name, &self.arguments)
    }
}

/// Calls with different indexes, whose ids and names repeat.
fn sent() -> impl Strategy<Value = Vec<Sent>> {
    let arguments = (0_u8..6, 0_u8..9).prop_map(|(key, value)| match key {
        0 | 1 => String::new(),
        2 => "{}".to_owned(),
        key => format!("{{\"k{key}\":[{value},\"}}\"]}}"),
    });
    let id = select(vec!["", "x", "x", "x", "y", "call_1_1"]);
    let call = (id, select(vec!["f", "g"]), arguments, vec(any::<Index>(), 0..4));
    (vec(call, 1..6), -2_i64..3).prop_map(|(calls, first)| {
        let calls = (first..).zip(calls);
        calls.map(|(index, (id, name, arguments, cuts))| Sent { index, id, name, arguments, cuts }).collect()
    })
}

/// The same calls, each with an id.
fn with_ids(mut calls: Vec<Sent>) -> Vec<Sent> {
    for call in calls.iter_mut().filter(|call| call.id.is_empty()) {
        call.id = "z";
    }
    calls
}

/// The fragments of these calls, each in its order, in an order that `turns` decides.
fn interleaved(calls: &[Sent], turns: &[Index], later: impl Fn(&Sent, usize) -> ToolCallDelta) -> Vec<Delta> {
    let mut waiting: Vec<_> =
        calls.iter().map(|call| (call, call.pieces().into_iter().enumerate())).collect();
    let mut deltas = Vec::new();
    let mut turns = turns.iter().cycle();
    while !waiting.is_empty() {
        let at = turns.next().map_or(0, |turn| turn.index(waiting.len()));
        let (call, pieces) = &mut waiting[at];
        match pieces.next() {
            Some((0, piece)) => deltas.push(delta(call.index, call.id, call.name, piece)),
            Some((at, piece)) => deltas.push(Delta::tool_call(later(call, at).with_arguments(piece))),
            None => drop(waiting.remove(at)),
        }
    }
    deltas
}

/// The calls that run, as name and arguments.
fn running(response: &ChatResponse) -> Vec<(&str, &str)> {
    let calls = response.tool_calls().map(|(_, call)| call);
    let is_known = |call: &ToolCall| call.name != *ToolCall::UNNAMED;
    let has_object = |call: &ToolCall| call.parsed_arguments().is_ok_and(|arguments| arguments.is_object());
    let runs = calls.filter(|call| is_known(call) && call.complete && has_object(call));
    runs.map(|call| (call.name.as_str(), call.arguments.as_str())).collect()
}

proptest! {
    /// However calls with separate indexes interleave, each has its name, its arguments and a unique id.
    #[test]
    fn law_t6_numbered_calls_keep_own_arguments_despite_repeated_ids(
        calls in sent(),
        turns in vec(any::<Index>(), 1..40),
        repeats in vec(any::<bool>(), 1..8),
    ) {
        let run = finished(interleaved(&calls, &turns, |call, at| {
            let id = if repeats[at % repeats.len()] { call.id } else { "" };
            fragment(Some(call.index), id, "", "")
        }));
        let mut expected: Vec<_> = calls.iter().map(Sent::told).collect();
        let mut found = running(&run.response);
        prop_assert_eq!(run.response.tool_calls().count(), calls.len());
        expected.sort_unstable();
        found.sort_unstable();
        prop_assert_eq!(found, expected);
        let ids: std::collections::BTreeSet<_> = run.response.tool_calls().map(|(_, call)| &call.id).collect();
        prop_assert_eq!(ids.len(), calls.len());
    }

    /// Pieces with any ids, also those of other calls, run only calls that the model made.
    #[test]
    fn law_t6_calls_never_mix_arguments_under_any_ids(
        calls in sent(),
        turns in vec(any::<Index>(), 1..40),
        ids in vec(select(vec!["", "x", "y", "z", "call_1_1"]), 1..8),
    ) {
        let run = finished(interleaved(&calls, &turns, |call, at| {
            fragment(Some(call.index), ids[(at + call.index.unsigned_abs() as usize) % ids.len()], "", "")
        }));
        assert_only(&run, &calls)?;
    }

    /// Each piece has the index of its call, its id, or both.
    #[test]
    fn law_t6_calls_never_mix_arguments_with_missing_keys(
        calls in sent().prop_map(with_ids),
        turns in vec(any::<Index>(), 1..40),
        keys in vec(0..3, 1..8),
    ) {
        let run = finished(interleaved(&calls, &turns, |call, at| {
            let key = keys[at % keys.len()];
            fragment((key != 0).then_some(call.index), if key == 1 { "" } else { call.id }, "", "")
        }));
        assert_only(&run, &calls)?;
    }

    /// No call has an index; they come one after the other.
    #[test]
    fn law_t6_calls_never_mix_arguments_with_only_ids(
        calls in sent().prop_map(with_ids),
    ) {
        let pieces = calls.iter().flat_map(|call| {
            let pieces = call.pieces().into_iter().enumerate();
            pieces.map(|(at, piece)| delta(None, call.id, if at == 0 { call.name } else { "" }, piece))
        });
        assert_only(&finished(pieces), &calls)?;
    }
}

/// Fails if a call runs that is none of these, or one of them twice.
fn assert_only(run: &Run, calls: &[Sent]) -> Result<(), proptest::test_runner::TestCaseError> {
    let mut called: Vec<_> = calls.iter().map(Sent::told).collect();
    for ran in running(&run.response) {
        let at = called.iter().position(|call| *call == ran);
        prop_assert!(at.is_some(), "{ran:?} ran, of {called:?}");
        called.swap_remove(at.unwrap_or_default());
    }
    Ok(())
}

/// A server repeats one id and one name in the headers only. The beginning of the third call's arguments goes
/// to the first call. The remaining arguments must not run as a separate call.
#[test]
fn law_t6_no_call_runs_with_leftover_foreign_arguments() {
    let second = "{\"k\":1,\"v\":{\"a\":\"x1\"}}";
    for index in [None, Some(0)] {
        for first in ["{}", "{\"k\":0}"] {
            let run = finished([
                delta(index, "x", "t", first),
                delta(index, "x", "t", ""),
                delta(index, "", "t", second),
                delta(index, "x", "t", "{\"k\":2,\"v\":"),
                delta(index, "", "t", "{\"a\":\"x2\"}"),
                delta(index, "", "t", "}"),
            ]);
            let ran = run.response.tool_calls().filter(|(_, call)| call.complete);
            let ran: Vec<_> = ran.filter(|(_, call)| call.parsed_arguments().is_ok()).collect();
            assert_eq!(ran, [], "{:?}", calls(&run.response));
        }
    }
}

/// Runs these by both rules for the end of a call, with the ends of all blocks if they are wanted.
fn by_each_rule(deltas: &[Delta], ended: &[i64]) -> Vec<Vec<String>> {
    let ends = ended.iter().map(|index| Delta::from(DeltaKind::BlockEnd).with_block(*index));
    let deltas: Vec<_> = deltas.iter().cloned().chain(ends).collect();
    let run_by = |settings| {
        let run = run(settings, deltas.iter().cloned().chain([Delta::finish(FinishReason::ToolCalls)]));
        assert_eq!(run.error, None);
        run.assert_lawful();
        calls(&run.response)
    };
    vec![run_by(AggregatorSettings::default()), run_by(eager())]
}

/// The header of a call looks like a repeated header of an earlier call. The following arguments may belong to
/// the new call.
#[test]
fn law_t6_repeated_header_may_begin_further_call() {
    let a = "{\"path\":\"a\"}";
    for (index, second) in [(Some(0), ""), (None, ""), (Some(0), "{}"), (None, "{}")] {
        for key in [(index, ""), (index, "x"), (None, "")] {
            let deltas = [
                delta(index, "x", "read", a),
                delta(index, "x", "delete_all", second),
                delta(index, "x", "read", ""),
                delta(key.0, key.1, "", PATH),
            ];
            for calls in by_each_rule(&deltas, &[]) {
                assert_eq!(calls[0], format!("x read {a}"), "{deltas:?}");
                assert!(calls[1..].iter().all(|call| call.starts_with('[')), "{calls:?} of {deltas:?}");
            }
        }
    }
    // Sent again and no more, it says nothing of the other call.
    let deltas = [delta(0, "x", "read", a), delta(0, "x", "delete_all", ""), delta(0, "x", "read", "")];
    for calls in by_each_rule(&deltas, &[]) {
        assert_eq!(calls[0], format!("x read {a}"));
    }
}

/// As before, with the id of one call and the index of another.
#[test]
fn law_t6_repeated_header_may_have_index_of_another_call() {
    for key in [(Some(1), "p1"), (Some(1), ""), (None, "p1")] {
        let run = finished([
            delta(0, "p0", "read", "{\"k\":0}"),
            delta(1, "p0", "delete_all", "{\"k\":1}"),
            delta(0, "p1", "list", "{}"),
            delta(1, "p1", "delete_all", ""),
            delta(key.0, key.1, "", "{\"k\":3}"),
        ]);
        let may_run = [("read", "{\"k\":0}"), ("delete_all", "{\"k\":1}"), ("list", "{}")];
        assert!(running(&run.response).iter().all(|ran| may_run.contains(ran)), "{:?}", calls(&run.response));
    }
}

/// The header of a third call looks like that of the first one, sent again. A piece without a key may belong to it.
#[test]
fn law_t6_header_sent_again_leaves_next_piece_in_doubt() {
    for key in [(None, ""), (None, "x")] {
        for first in ["", "{\"path\":\"a\"}"] {
            let run = finished([
                delta(0, "x", "read", first),
                delta(1, "x", "delete_all", ""),
                delta(0, "x", "read", ""),
                delta(key.0, key.1, "", PATH),
            ]);
            let ran = running(&run.response);
            assert!(ran.iter().all(|(name, _)| *name != "delete_all"), "{:?}", calls(&run.response));
        }
    }
}

/// A name that another call has, without an id: its header again, a piece of its arguments, or the next call.
#[test]
fn law_t6_bare_name_may_belong_to_earlier_call() {
    for index in [Some(0), None] {
        let deltas =
            [delta(index, "", "read", PATH), delta(index, "", "list", PATH), delta(index, "", "read", "")];
        let ran = calls(&finished(deltas).response);
        assert!(ran[..2].iter().all(|call| call.ends_with(PATH)) && ran[2].starts_with('['), "{ran:?}");
    }
    let run = finished([
        delta(0, "x", "list", ""),
        delta(0, "x", "list", ""),
        delta(1, "x", "read", PATH),
        delta(0, "x", "list", "{\""),
        delta(None, "", "list", "k"),
        delta(None, "x", "list", "\":2}"),
    ]);
    assert_eq!(running(&run.response), [("read", PATH)]);
}

/// A server may send every header twice. Later fragments continue the call that began since.
#[test]
fn repeated_header_does_not_affect_later_calls() {
    let a = "{\"path\":\"a\"}";
    for index in [Some(0), None] {
        let deltas = [
            delta(index, "a", "read", ""),
            delta(index, "a", "read", ""),
            delta(index, "", "", a),
            delta(index, "b", "list", ""),
            delta(index, "b", "list", ""),
            delta(index, "", "", PATH),
        ];
        assert_eq!(calls(&finished(deltas).response), [format!("a read {a}"), format!("b list {PATH}")]);
    }
}

/// Without a name, arguments under a new id go to the call with the index. The name says that they may not be its own.
#[test]
fn law_t6_name_after_arguments_disputes_receiving_call() {
    for (index, id) in [(Some(0), "b"), (Some(1), "b"), (None, "b"), (Some(0), "")] {
        let deltas = [delta(0, "a", "delete_all", ""), delta(0, "b", "", PATH), delta(index, id, "read", "")];
        for calls in by_each_rule(&deltas, &[0]) {
            assert_eq!(calls[0], format!("[a delete_all {PATH}]"), "{index:?} {id}");
            assert!(calls[1].starts_with('['), "{calls:?}");
        }
    }
    // Its own id, and ids that change in every piece, dispute nothing.
    let own = [delta(0, "a", "read", ""), delta(0, "b", "", PATH), delta(0, "a", "read", "")];
    let third = [delta(0, "a", "read", ""), delta(0, "b", "", PATH), delta(0, "c", "list", "{}")];
    for deltas in [own, third] {
        assert!(calls(&finished(deltas).response).iter().all(|call| !call.starts_with('[')));
    }
}

/// A name for one of two calls that wait for theirs: the index means the one, the id the other.
#[test]
fn law_t6_name_matching_two_calls_runs_neither() {
    let deltas = [
        delta(0, "", "", "{}"),
        delta(1, "x", "", PATH),
        delta(0, "x", "delete_all", ""),
        delta(1, "x", "read", ""),
    ];
    for calls in by_each_rule(&deltas, &[]) {
        assert!(calls.iter().all(|call| call.starts_with('[')), "{calls:?}");
    }
}

/// The provider may end a call before the arguments come that may be its own.
#[test]
fn law_t6_ended_call_without_arguments_waits_for_answer_end() {
    let left_over = [delta(0, "x", "delete_all", ""), delta(1, "x", "", PATH)];
    for ended in [&[0, 1][..], &[]] {
        for calls in by_each_rule(&left_over, ended) {
            assert_eq!(calls[0], "[x delete_all ]");
        }
    }
    let end = Delta::from(DeltaKind::BlockEnd).with_block(0);
    let closes_early = |arguments| {
        let run = finished([delta(0, "x", "delete_all", arguments), end.clone(), Delta::text("a")]);
        assert!(run.response.tool_calls().all(|(_, call)| call.complete));
        let is_closed = |chunk: &Chunk| matches!(chunk, Chunk::Closed { .. });
        let is_text = |chunk: &Chunk| chunk.text().is_some();
        run.chunks.iter().position(is_closed) < run.chunks.iter().position(is_text)
    };
    assert!(closes_early("{\"path\":\"a\"}"));
    assert!(!closes_early(""));
}

/// The keys with which a server identifies its calls, the same in the whole answer.
#[derive(Debug, Clone)]
struct Server {
    ids: &'static [&'static str],
    indexes: &'static [Option<i64>],
    /// For each piece after the first: whether it repeats the id, the index and the name.
    repeats: Vec<(bool, bool, bool)>,
}

fn server() -> impl Strategy<Value = Server> {
    let ids = select(vec![&["x"; 4][..], &["p", "p", "q", "q"], &[""; 4], &["a", "b", "c", "d"]]);
    let indexes = select(vec![&[Some(0); 4][..], &[None; 4], &[Some(0), Some(1), Some(0), Some(1)]]);
    (ids, indexes, vec((any::<bool>(), any::<bool>(), proptest::bool::weighted(0.1)), 1..4))
        .prop_map(|(ids, indexes, repeats)| Server { ids, indexes, repeats })
}

/// Name and pieces of the arguments of a few calls, most of them short of arguments.
fn asked() -> impl Strategy<Value = Vec<(&'static str, Vec<String>)>> {
    let arguments = select(vec!["", "", "{}", "{\"k\":#}", "{\"k\":#}"]);
    let call = (select(vec!["f", "g", "h"]), arguments, vec(any::<Index>(), 0..3));
    vec(call, 2..5).prop_map(|calls| {
        let call = |(at, (name, arguments, cuts)): (usize, (_, &str, _))| {
            let arguments = arguments.replace('#', &at.to_string());
            let sent = Sent { index: 0, id: "", name, arguments, cuts };
            (name, sent.pieces().into_iter().map(str::to_owned).collect())
        };
        calls.into_iter().enumerate().map(call).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8_000))]

    /// Calls follow one another, each with its name first, and with repeated ids and indexes. Only calls that
    /// the model made run.
    #[test]
    fn law_t6_calls_never_mix_arguments_with_repeated_keys(
        server in server(),
        asked in asked(),
    ) {
        let mut deltas = Vec::new();
        for (call, (name, pieces)) in asked.iter().enumerate() {
            for (at, piece) in pieces.iter().enumerate() {
                let (id, index, again) = server.repeats[at % server.repeats.len()];
                let keep = |kept: bool| at == 0 || kept;
                let (id, name) = (if keep(id) { server.ids[call] } else { "" }, if keep(again) { name } else { "" });
                deltas.push(delta(server.indexes[call].filter(|_| keep(index)), id, name, piece));
            }
        }
        // No arguments and empty ones are the same to a tool.
        let told = |name: &str, arguments: &str| {
            (name.to_owned(), if arguments.is_empty() { "{}".to_owned() } else { arguments.to_owned() })
        };
        let mut called: Vec<_> = asked.iter().map(|(name, pieces)| told(name, &pieces.concat())).collect();
        for (name, arguments) in running(&finished(deltas).response) {
            let at = called.iter().position(|call| *call == told(name, arguments));
            prop_assert!(at.is_some(), "{name} {arguments} ran, of {called:?}");
            called.swap_remove(at.unwrap_or_default());
        }
    }
}
