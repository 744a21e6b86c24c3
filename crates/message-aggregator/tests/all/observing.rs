//! Tests of reading an answer while it arrives: the chunks of each delta, and the state so far.

use std::collections::VecDeque;

use crate::common::ROUND;
use message_aggregator::{
    Chunk, Delta, DeltaKind, FinishReason, MessageAggregator, ProviderData, ToolCall, ToolCallDelta, Usage,
};
use serde_json::json;

/// Each chunk as one line.
fn lines(chunks: &mut VecDeque<Chunk>) -> Vec<String> {
    let line = |chunk: Chunk| match chunk {
        Chunk::Opened { block, head } => {
            let call = head.call.map(|call| format!(" {} {}", call.name, call.call_id));
            Some(format!("{block} opened {:?}{}", head.kind, call.unwrap_or_default()))
        }
        Chunk::Delta { block, delta } => Some(format!("{block} {delta:?}")),
        Chunk::Closed { block, content } => {
            let complete = content.as_tool_call().map(|call| call.complete);
            Some(format!("{block} closed {:?} {complete:?}", content.kind()))
        }
        _ => None,
    };
    chunks.drain(..).filter_map(line).collect()
}

fn answer() -> Vec<Delta> {
    vec![
        Delta::reasoning("hm"),
        Delta::text("Let me"),
        DeltaKind::ReasoningData(Box::new(ProviderData::new("some-api", json!("signature")))).into(),
        Delta::text(" look."),
        Delta::tool_call(ToolCallDelta::start(0, "", "rate")),
        Delta::tool_call(ToolCallDelta::start(1, "c1", "date").with_arguments("{}")),
        Delta::tool_call(ToolCallDelta::arguments(0, "{\"from\": \"NOK\"}")),
        Delta::usage(Usage::new(7, 1)),
        Delta::finish(FinishReason::ToolCalls),
        Delta::text("Done."),
        Delta::usage(Usage::new(7, 9)),
        Delta::done(),
    ]
}

#[test]
fn chunks_come_in_order_within_causing_push() {
    let mut aggregator = MessageAggregator::new(ROUND);
    let mut chunks = VecDeque::new();
    let mut pushes = Vec::new();
    for delta in answer() {
        aggregator.push(delta, &mut chunks).unwrap();
        pushes.push(lines(&mut chunks));
    }
    aggregator.finish(&mut chunks).unwrap();
    pushes.push(lines(&mut chunks));
    let expected: [&[&str]; 13] = [
        &["1.0 opened Reasoning", "1.0 Reasoning(\"hm\")"],
        &["1.0 closed Reasoning None", "1.1 opened Text", "1.1 Text(\"Let me\")"],
        &[],
        &["1.1 Text(\" look.\")"],
        &["1.1 closed Text None", "1.2 opened ToolCall rate call_1_2"],
        &["1.3 opened ToolCall date c1"],
        &["1.2 Arguments(\"{\\\"from\\\": \\\"NOK\\\"}\")"],
        &[],
        &[],
        &["1.4 opened Text", "1.4 Text(\"Done.\")"],
        &[],
        &[],
        // Empty arguments are certain only when nothing can follow them.
        &[
            "1.2 closed ToolCall Some(true)",
            "1.3 Arguments(\"{}\")",
            "1.3 closed ToolCall Some(true)",
            "1.4 closed Text None",
        ],
    ];
    assert_eq!(pushes, expected);
}

#[test]
fn everything_so_far_is_readable_after_each_delta() {
    let mut aggregator = MessageAggregator::new(ROUND);
    let mut chunks = VecDeque::new();
    let mut seen = Vec::new();
    for delta in answer() {
        aggregator.push(delta, &mut chunks).unwrap();
        let partial = aggregator.partial();
        seen.push((
            partial.text(),
            partial.tool_calls().map(|(_, call)| call.arguments.clone()).collect::<Vec<_>>(),
            aggregator.finish_reason().map(|finish| finish.reason.clone()),
            partial.usage.and_then(|usage| usage.output_tokens),
        ));
    }
    let whole = "{\"from\": \"NOK\"}";
    let both = || vec![whole.to_owned(), "{}".to_owned()];
    let text = |text: &str| text.to_owned();
    let finish = || Some(FinishReason::ToolCalls);
    let expected = [
        (text(""), vec![], None, None),
        (text("Let me"), vec![], None, None),
        (text("Let me"), vec![], None, None),
        (text("Let me look."), vec![], None, None),
        (text("Let me look."), vec![text("")], None, None),
        (text("Let me look."), vec![text(""), text("{}")], None, None),
        (text("Let me look."), both(), None, None),
        (text("Let me look."), both(), None, Some(1)),
        (text("Let me look."), both(), finish(), Some(1)),
        (text("Let me look.Done."), both(), finish(), Some(1)),
        (text("Let me look.Done."), both(), finish(), Some(9)),
        (text("Let me look.Done."), both(), finish(), Some(9)),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn open_call_has_final_id_and_is_incomplete() {
    let mut aggregator = MessageAggregator::new(ROUND);
    let mut chunks = VecDeque::new();
    let fragment = ToolCallDelta::start(0, "", "rate").with_arguments("{\"from\"");
    aggregator.push(Delta::tool_call(fragment), &mut chunks).unwrap();
    let mut open = ToolCall::new("call_1_0", "rate", "{\"from\"");
    open.complete = false;
    assert!(aggregator.partial().tool_calls().map(|(_, call)| call).eq([&open]));

    aggregator.push(Delta::tool_call(ToolCallDelta::arguments(0, ": 1}")), &mut chunks).unwrap();
    aggregator.push(Delta::finish(FinishReason::ToolCalls), &mut chunks).unwrap();
    let call = aggregator.partial().tool_calls().next().unwrap().1.complete;
    assert!(!call, "a finish reason ends nothing");
    let response = aggregator.finish(&mut chunks).unwrap();
    let call = response.tool_calls().next().unwrap().1;
    assert_eq!((&call.id, call.complete), (&open.id, true));
}
