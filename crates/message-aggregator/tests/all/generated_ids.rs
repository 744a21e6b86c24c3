//! The ids that calls are given which come without one.

use std::collections::VecDeque;

use crate::common::{ROUND, complete, eager, run};
use message_aggregator::{
    AggregatorSettings, ChatResponse, Chunk, Delta, FinishReason, MessageAggregator, ToolCallDelta,
};

/// The beginning of a call, with this id; empty is none.
fn call(index: i64, id: &str) -> Delta {
    Delta::tool_call(ToolCallDelta::start(index, id, "lookup").with_arguments("{\"a\":1}"))
}

/// A piece of a call; empty is none.
fn piece(index: Option<i64>, id: &str, name: &str, arguments: &str) -> Delta {
    let mut fragment = ToolCallDelta::default().with_arguments(arguments);
    fragment.index = index;
    fragment.call_id = Some(id.into());
    fragment.name = Some(name.into());
    Delta::tool_call(fragment)
}

fn finish() -> Delta {
    Delta::finish(FinishReason::ToolCalls)
}

fn ids(response: &ChatResponse) -> Vec<&str> {
    response.tool_calls().map(|(_, call)| call.id.as_str()).collect()
}

/// An answer: its name, its deltas, and the ids of its calls.
type Row = (&'static str, Vec<Delta>, Vec<&'static str>);

fn answers() -> Vec<Row> {
    let whole = "{\"a\":1}";
    vec![
        ("ids from the start", vec![call(0, "a"), call(1, "b")], vec!["a", "b"]),
        ("no ids", vec![call(0, ""), call(1, "")], vec!["call_1_0", "call_1_1"]),
        ("an id twice", vec![call(0, "a"), call(1, "a")], vec!["a", "call_1_1"]),
        (
            "an id after the name",
            vec![piece(Some(0), "", "lookup", "{"), piece(Some(0), "a", "", "}")],
            vec!["call_1_0"],
        ),
        (
            "an id before the name",
            vec![piece(Some(0), "a", "", "{"), piece(Some(0), "", "lookup", "}")],
            vec!["a"],
        ),
        (
            "neither, until the name comes",
            vec![piece(Some(0), "", "", whole), call(1, "b"), piece(Some(0), "", "lookup", "")],
            vec!["call_1_0", "b"],
        ),
        (
            "a late id that another call has",
            vec![piece(Some(0), "", "lookup", "{"), call(1, "a"), piece(Some(0), "a", "", "}")],
            vec!["call_1_0", "a"],
        ),
        (
            "a late id that another call gets",
            vec![piece(Some(0), "", "lookup", ""), piece(Some(0), "a", "", whole), call(1, "a")],
            vec!["call_1_0", "a"],
        ),
        ("an id before a lone `{}`", vec![piece(Some(0), "a", "lookup", "{}")], vec!["a"]),
        (
            "an id after a lone `{}`",
            vec![piece(Some(0), "", "lookup", "{}"), piece(Some(0), "a", "", whole)],
            vec!["call_1_0"],
        ),
        ("no name", vec![piece(Some(0), "", "", whole)], vec!["call_1_0"]),
    ]
}

#[test]
fn law_s4_call_has_one_id_from_its_opening() {
    for (what, deltas, expected) in answers() {
        let mut aggregator = MessageAggregator::new(ROUND);
        let mut chunks = VecDeque::new();
        for delta in deltas.into_iter().chain([finish()]) {
            aggregator.push(delta, &mut chunks).unwrap();
            for (block, id) in chunks.iter().filter_map(head) {
                let partial = aggregator.partial();
                let call = partial.tool_calls().find(|(known, _)| *known == block);
                assert_eq!(call.unwrap().1.id, id, "{what}");
            }
        }
        let response = aggregator.finish(&mut chunks).unwrap();
        assert_eq!(ids(&response), expected, "{what}");
        for (block, call) in response.tool_calls() {
            let closed = chunks.iter().find_map(|chunk| match chunk {
                Chunk::Closed { block: closed, content } if *closed == block => content.as_tool_call(),
                _ => None,
            });
            assert_eq!(closed, Some(call), "{what}");
            assert!(chunks.iter().filter_map(head).any(|head| head == (block, call.id.as_str())), "{what}");
        }
    }
}

#[test]
fn law_t6_late_id_identifies_fragments_but_is_not_shown() {
    let deltas = [
        piece(Some(0), "", "lookup", "{"),
        piece(Some(1), "b", "lookup", "{\"b\":2}"),
        piece(Some(0), "a", "", "\"a\""),
        piece(None, "a", "", ":1}"),
    ];
    let run = run(AggregatorSettings::default(), deltas.into_iter().chain([finish()]));
    assert_eq!(run.error, None);
    run.assert_lawful();
    let calls = run.response.tool_calls().map(|(_, call)| (call.id.as_str(), call.arguments.as_str()));
    assert_eq!(calls.collect::<Vec<_>>(), [("call_1_0", "{\"a\":1}"), ("b", "{\"b\":2}")]);
    assert!(run.response.tool_calls().all(|(_, call)| call.complete));
}

#[test]
fn made_id_differs_from_every_provider_id() {
    let table = [
        (vec![call(0, ""), call(1, "call_1_0")], vec!["call_1_0", "call_1_1"]),
        (vec![call(0, "call_1_1"), call(1, "")], vec!["call_1_1", "call_1_1_2"]),
        (
            vec![call(0, ""), call(1, "call_1_0_2"), call(2, "call_1_0")],
            vec!["call_1_0", "call_1_0_2", "call_1_2"],
        ),
        (vec![piece(Some(7), "call_1_1", "", "{}"), call(1, "")], vec!["call_1_1", "call_1_1_2"]),
    ];
    for (deltas, expected) in table {
        let response = complete(AggregatorSettings::default(), deltas.iter().cloned().chain([finish()]));
        assert_eq!(ids(&response), expected);
        assert_eq!(ids(&run(AggregatorSettings::default(), deltas).response), expected, "also when cut");
    }
}

#[test]
fn emitted_made_id_stays_and_later_call_changes() {
    let deltas = [
        call(0, ""),
        piece(Some(1), "", "lookup", ""),
        piece(Some(1), "call_1_0", "", "{\"a\":"),
        piece(None, "call_1_0", "", "2}"),
        finish(),
    ];
    let run = run(eager(), deltas);
    assert_eq!(run.error, None);
    run.assert_lawful();
    assert_eq!(ids(&run.response), ["call_1_0", "call_1_1"]);
    let pieces: Vec<_> = run.response.tool_calls().map(|(_, call)| call.arguments.as_str()).collect();
    assert_eq!(
        pieces,
        ["{\"a\":1}", "{\"a\":2}"],
        "its fragments are known by the provider's id all the same"
    );
}

/// The block of a call that opens here, and its id.
fn head(chunk: &Chunk) -> Option<(message_aggregator::BlockId, &str)> {
    match chunk {
        Chunk::Opened { block, head } => Some((*block, head.call.as_ref()?.call_id.as_str())),
        _ => None,
    }
}
