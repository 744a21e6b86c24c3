//! Tests of the ends of an answer: which are complete, which are cut, and which calls are complete then.

use std::collections::VecDeque;

use crate::common::{ROUND, complete, run};
use message_aggregator::{
    AggregateError, AggregatorSettings, Chunk, Delta, DeltaKind, Finish, FinishReason, MessageAggregator,
    ToolCallDelta, Usage,
};

fn call(arguments: &str) -> Delta {
    call_at(0, arguments)
}

fn call_at(index: i64, arguments: &str) -> Delta {
    Delta::tool_call(ToolCallDelta::start(index, format!("c{index}"), "lookup").with_arguments(arguments))
}

fn block_end(block: i64) -> Delta {
    Delta::from(DeltaKind::BlockEnd).with_block(block)
}

fn finish(reason: FinishReason) -> Delta {
    Delta::finish(reason)
}

const WHOLE: &str = "{\"key\": 1}";
const CUT: &str = "{\"key\": ";

/// An answer that completes: its name, its deltas, its finish, and which of its calls are complete.
type Row = (&'static str, Vec<Delta>, Finish, Vec<bool>);

#[test]
fn answers_that_complete() {
    use FinishReason::{ContentFilter, Empty, Length, Refusal, Stop, ToolCalls};
    let inferred = Finish::inferred;
    let table: Vec<Row> = vec![
        (
            "finish, then the end marker",
            vec![Delta::text("a"), finish(Stop), Delta::done()],
            Stop.into(),
            vec![],
        ),
        (
            "finish, then the end of the body",
            vec![call(WHOLE), finish(ToolCalls)],
            ToolCalls.into(),
            vec![true],
        ),
        (
            "a finish alone ends nothing: calls may follow it",
            vec![finish(Stop), call(WHOLE), Delta::done()],
            Stop.into(),
            vec![true],
        ),
        (
            "a call after the finish reason that may be cut",
            vec![call_at(0, WHOLE), finish(ToolCalls), call_at(1, "")],
            ToolCalls.into(),
            vec![true, false],
        ),
        (
            "a call that went on after the finish reason, for all that is known to its end",
            vec![
                call(""),
                Delta::tool_call(ToolCallDelta::arguments(0, CUT)),
                finish(ToolCalls),
                Delta::tool_call(ToolCallDelta::arguments(0, "1}")),
            ],
            ToolCalls.into(),
            vec![false],
        ),
        (
            "a header sent again after the finish reason",
            vec![call(WHOLE), finish(ToolCalls), call("")],
            ToolCalls.into(),
            vec![true],
        ),
        (
            "calls after the finish reason, one of them cut, and the end marker",
            vec![finish(ToolCalls), call_at(0, WHOLE), call_at(1, CUT), Delta::done()],
            ToolCalls.into(),
            vec![true, false],
        ),
        (
            "a second finish reason vouches for what came before it",
            vec![call_at(0, WHOLE), finish(ToolCalls), call_at(1, ""), finish(ToolCalls)],
            ToolCalls.into(),
            vec![true, true],
        ),
        (
            "an unknown reason may have cut a call anywhere",
            vec![call(WHOLE), finish(FinishReason::Other("odd".into())), Delta::done()],
            FinishReason::Other("odd".into()).into(),
            vec![false],
        ),
        (
            "a call that the wire ended is whole under an unknown reason",
            vec![
                call_at(0, WHOLE),
                block_end(0),
                call_at(1, WHOLE),
                finish(FinishReason::Other("odd".into())),
            ],
            FinishReason::Other("odd".into()).into(),
            vec![true, false],
        ),
        (
            "a known reason after an unknown one counts",
            vec![call(WHOLE), finish(FinishReason::Other("odd".into())), finish(Stop)],
            Stop.into(),
            vec![true],
        ),
        (
            "what a call's arguments are is no matter of the end",
            vec![call(CUT), finish(ToolCalls)],
            ToolCalls.into(),
            vec![true],
        ),
        (
            "the last of two reasons counts",
            vec![finish(Stop), call(WHOLE), finish(ToolCalls), Delta::done()],
            ToolCalls.into(),
            vec![true],
        ),
        (
            "no later reason takes back that the answer is cut",
            vec![call(WHOLE), finish(Length), finish(ToolCalls), Delta::done()],
            Length.into(),
            vec![false],
        ),
        (
            "of two reasons that cut, the last counts",
            vec![call(WHOLE), finish(Length), finish(Refusal), finish(ToolCalls)],
            Refusal.into(),
            vec![false],
        ),
        ("the end marker alone, with text", vec![Delta::text("a"), Delta::done()], inferred(Stop), vec![]),
        (
            "the end marker alone, with a whole call",
            vec![Delta::text("a"), call(WHOLE), Delta::done()],
            inferred(ToolCalls),
            vec![true],
        ),
        (
            "the end marker alone, with a cut call",
            vec![call(CUT), Delta::done()],
            inferred(ToolCalls),
            vec![false],
        ),
        (
            "the end marker alone, arguments that are no object",
            vec![call("[1]"), Delta::done()],
            inferred(ToolCalls),
            vec![false],
        ),
        (
            "the end marker alone, no arguments",
            vec![call(""), Delta::done()],
            inferred(ToolCalls),
            vec![true],
        ),
        (
            "the end marker alone, a call the provider ended",
            vec![call(CUT), block_end(0), Delta::done()],
            inferred(ToolCalls),
            vec![true],
        ),
        (
            "the length cuts open calls",
            vec![call(WHOLE), finish(Length), Delta::done()],
            Length.into(),
            vec![false],
        ),
        (
            "the length leaves ended calls",
            vec![call_at(0, WHOLE), block_end(0), call_at(1, WHOLE), finish(Length)],
            Length.into(),
            vec![true, false],
        ),
        ("nothing but the end marker", vec![Delta::done()], inferred(Empty), vec![]),
        (
            "empty pieces and the end marker",
            vec![Delta::text(""), Delta::reasoning(""), Delta::done()],
            inferred(Empty),
            vec![],
        ),
        ("nothing, then stop", vec![finish(Stop), Delta::done()], Empty.into(), vec![]),
        ("text, then tool calls", vec![Delta::text("a"), finish(ToolCalls)], ToolCalls.into(), vec![]),
        ("nothing, then a filter", vec![finish(ContentFilter), Delta::done()], ContentFilter.into(), vec![]),
        (
            "after the end marker nothing counts",
            vec![
                Delta::text("a"),
                finish(Stop),
                Delta::done(),
                Delta::text("b"),
                call(WHOLE),
                finish(Length),
            ],
            Stop.into(),
            vec![],
        ),
    ];
    for (what, deltas, finish, calls) in table {
        let run = run(AggregatorSettings::default(), deltas);
        assert_eq!(run.error, None, "{what}");
        run.assert_lawful();
        assert_eq!(run.response.finish, finish, "{what}");
        let complete: Vec<_> = run.response.tool_calls().map(|(_, call)| call.complete).collect();
        assert_eq!(complete, calls, "{what}");
    }
}

#[test]
fn numbered_piece_does_not_extend_another_open_block() {
    let run = run(
        AggregatorSettings::default(),
        [Delta::text("a"), Delta::text("b").with_block(7), finish(FinishReason::Stop)],
    );
    run.assert_lawful();
    assert_eq!(run.response.blocks().count(), 2);
}

#[test]
fn an_empty_answer_keeps_the_providers_word() {
    let finish = Finish::written(FinishReason::ToolCalls, "tool_use");
    let response = complete(AggregatorSettings::default(), [Delta::finish(finish)]);
    assert_eq!(response.finish, Finish::written(FinishReason::Empty, "tool_use"));
}

#[test]
fn answers_that_are_cut() {
    let table = [
        ("nothing at all", vec![], "", vec![]),
        ("nothing but usage", vec![Delta::usage(Usage::new(1, 1))], "", vec![]),
        ("text", vec![Delta::text("so f"), Delta::text("ar")], "so far", vec![]),
        ("a whole call", vec![Delta::text("a"), call(WHOLE)], "a", vec![false]),
        (
            "an ended call and an open one",
            vec![call_at(0, WHOLE), block_end(0), call_at(1, WHOLE)],
            "",
            vec![true, false],
        ),
    ];
    for (what, deltas, text, calls) in table {
        let run = run(AggregatorSettings::default(), deltas);
        run.assert_lawful();
        let Some(AggregateError::Truncated { partial }) = run.error else {
            panic!("{what}: {:?}", run.error);
        };
        assert_eq!(*partial, run.response, "{what}");
        assert_eq!(partial.finish, FinishReason::Interrupted.into(), "{what}");
        assert_eq!(partial.text(), text, "{what}");
        let complete: Vec<_> = partial.tool_calls().map(|(_, call)| call.complete).collect();
        assert_eq!(complete, calls, "{what}");
    }
}

#[test]
fn interrupted_answer_keeps_provider_finish_reason() {
    let mut aggregator = MessageAggregator::new(ROUND);
    let finish = Finish::written(FinishReason::Length, "model_length");
    for delta in [Delta::text("a"), Delta::finish(finish)] {
        aggregator.push(delta, &mut VecDeque::new()).expect("within the bounds");
    }
    let expected = Finish::written(FinishReason::Interrupted, "model_length");
    assert_eq!(aggregator.partial().finish, expected);
}

#[test]
fn truncated_answer_has_usage_and_origin() {
    let origin = Delta::origin(Some("answer-9".into()), Some("tiny".into()));
    let run = run(AggregatorSettings::default(), [origin, Delta::text("a"), Delta::usage(Usage::new(3, 4))]);
    assert!(matches!(run.error, Some(AggregateError::Truncated { .. })));
    assert_eq!(run.response.response_id.as_deref(), Some("answer-9"));
    assert_eq!(run.response.model.as_deref(), Some("tiny"));
    assert_eq!(run.response.usage, Some(Usage::new(3, 4)));
}

#[test]
fn first_non_empty_origin_counts() {
    let origin = |response_id: &str, model: &str| Delta::origin(Some(response_id.into()), Some(model.into()));
    let deltas = [origin("", ""), origin("one", ""), origin("two", "tiny"), Delta::done()];
    let response = complete(AggregatorSettings::default(), deltas);
    assert_eq!((response.response_id.as_deref(), response.model.as_deref()), (Some("one"), Some("tiny")));
}

#[test]
fn largest_usage_wins_even_after_end_marker() {
    let mut later = Usage::default();
    later.output_tokens = Some(9);
    let deltas = [
        Delta::usage(Usage::new(5, 1)),
        Delta::text("a"),
        Delta::usage(Usage::new(5, 2)),
        finish(FinishReason::Stop),
        Delta::done(),
        Delta::usage(later),
        Delta::usage(Usage::new(0, 0)),
    ];
    let run = run(AggregatorSettings::default(), deltas);
    assert_eq!(run.response.usage, Some(Usage::new(5, 9)));
    assert_eq!(run.chunks.last(), Some(&Chunk::Usage { round: ROUND, usage: Box::new(Usage::new(5, 9)) }));
}

#[test]
fn without_usage_there_is_no_chunk_of_it() {
    let run = run(AggregatorSettings::default(), [Delta::text("a"), Delta::done()]);
    assert_eq!(run.response.usage, None);
    assert!(!run.chunks.iter().any(|chunk| matches!(chunk, Chunk::Usage { .. })));
}
