//! The ids that calls are given which come without one.

mod common;

use common::{complete, eager, run};
use message_aggregator::{AggregatorSettings, ChatResponse, Chunk, Delta, FinishReason, Rule, ToolCallDelta};

/// The beginning of a call, with this id; empty is none.
fn call(index: i64, id: &str) -> Delta {
    Delta::tool_call(ToolCallDelta::start(index, id, "lookup").with_arguments("{\"a\":1}"))
}

fn finish() -> Delta {
    Delta::finish(FinishReason::ToolCalls)
}

fn ids(response: &ChatResponse) -> Vec<&str> {
    response.tool_calls().map(|(_, call)| call.id.as_str()).collect()
}

#[test]
fn made_id_differs_from_every_provider_id() {
    let table = [
        (vec![call(0, ""), call(1, "call_1_0")], vec!["call_1_0_2", "call_1_0"]),
        (vec![call(0, "call_1_1"), call(1, "")], vec!["call_1_1", "call_1_1_2"]),
        (
            vec![call(0, ""), call(1, "call_1_0_2"), call(2, "call_1_0")],
            vec!["call_1_0_3", "call_1_0_2", "call_1_0"],
        ),
    ];
    for (deltas, expected) in table {
        let response = complete(AggregatorSettings::default(), deltas.iter().cloned().chain([finish()]));
        assert_eq!(ids(&response), expected);
        assert_eq!(response.diagnostics().count(Rule::IdMade), 1);
        assert_eq!(ids(&run(AggregatorSettings::default(), deltas).response), expected, "also when cut");
    }
}

#[test]
fn emitted_made_id_stays_and_later_call_changes() {
    let mut late = arguments("call_1_0", "{\"a\":");
    late.index = Some(1);
    let late = Delta::tool_call(late);
    let rest = Delta::tool_call(arguments("call_1_0", "2}"));
    let named = Delta::tool_call(ToolCallDelta::start(1, "", "lookup"));
    let run = run(eager(), [call(0, ""), named, late, rest, finish()]);
    assert_eq!(run.error, None);
    run.assert_lawful();
    assert_eq!(ids(&run.response), ["call_1_0", "call_1_1"]);
    let pieces: Vec<_> = run.response.tool_calls().map(|(_, call)| call.arguments.as_str()).collect();
    assert_eq!(
        pieces,
        ["{\"a\":1}", "{\"a\":2}"],
        "its fragments are known by the provider's id all the same"
    );
    assert_eq!(run.response.diagnostics().count(Rule::IdMade), 2);

    let known_at_once = common::run(eager(), [call(0, ""), call(1, "call_1_0"), finish()]);
    assert_eq!(
        heads(&known_at_once.chunks),
        [None, Some("call_1_0")],
        "the head says the same as the response"
    );
    assert_eq!(ids(&known_at_once.response), ["call_1_0_2", "call_1_0"]);
}

fn arguments(id: &str, arguments: &str) -> ToolCallDelta {
    let mut fragment = ToolCallDelta::default();
    fragment.call_id = Some(id.into());
    fragment.with_arguments(arguments)
}

/// The ids that are known when the blocks of calls open.
fn heads(chunks: &[Chunk]) -> Vec<Option<&str>> {
    chunks.iter().filter_map(head).collect()
}

fn head(chunk: &Chunk) -> Option<Option<&str>> {
    match chunk {
        Chunk::Opened { head, .. } => head.call.as_ref().map(|call| call.call_id.as_deref()),
        _ => None,
    }
}
