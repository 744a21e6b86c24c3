//! Makes the chunks of an answer, and writes the events of a `SegmentHandler` as short lines.

use advisor_core::{Chunk, Delta, DeltaKind, FinishReason, MessageAggregator, ToolCallDelta, ToolDefinition};
use serde_json::json;
use text_tool_calls::TextTools;
use text_tool_calls::segments::{BrokenEnd, SegmentEvent, SegmentEventType, SegmentHandler};

pub(crate) fn tools() -> TextTools {
    let object = |names: &[&str]| {
        let properties: serde_json::Map<_, _> =
            names.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
        json!({"type": "object", "properties": properties})
    };
    TextTools::new(&[
        ToolDefinition::new("weather", "", object(&["city"])),
        ToolDefinition::new("time", "", object(&[])),
        ToolDefinition::new("write_file", "", object(&["path", "content"])),
        ToolDefinition::new("edit_file", "", object(&["path", "patch"])),
        ToolDefinition::new("run_bash", "", object(&["command", "timeout_seconds"])),
    ])
}

pub(crate) fn call(index: i64, id: &str, name: &str) -> Delta {
    Delta::tool_call(ToolCallDelta::start(index, id, name))
}

pub(crate) fn arguments(index: i64, arguments: &str) -> Delta {
    Delta::tool_call(ToolCallDelta::arguments(index, arguments))
}

/// The chunks of an answer, up to its completion.
pub(crate) fn chunks(deltas: impl IntoIterator<Item = Delta>) -> Vec<Chunk> {
    answer(1, deltas)
}

/// The chunks of the answer of a round.
pub(crate) fn answer(round: u32, deltas: impl IntoIterator<Item = Delta>) -> Vec<Chunk> {
    let mut aggregator = MessageAggregator::new(round);
    let mut chunks = Default::default();
    for delta in deltas.into_iter().chain([Delta::finish(FinishReason::Stop), DeltaKind::Done.into()]) {
        aggregator.push(delta, &mut chunks).unwrap();
    }
    aggregator.finish(&mut chunks).unwrap();
    chunks.into_iter().collect()
}

pub(crate) fn texts<'a>(pieces: impl IntoIterator<Item = &'a str>) -> Vec<Chunk> {
    chunks(pieces.into_iter().map(Delta::text))
}

/// Feeds all chunks and finalizes. Returns the events, in short.
pub(crate) fn run(handler: &mut SegmentHandler, chunks: &[Chunk]) -> Vec<String> {
    let mut events = Vec::new();
    for chunk in chunks {
        events.extend(handler.feed(chunk).unwrap());
    }
    events.extend(handler.finalize().unwrap());
    assert_eq!(handler.events(), events, "all events are kept");
    short(&events)
}

/// Each event in one line; neighbouring contents of a segment are joined.
pub(crate) fn short(events: &[SegmentEvent]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for event in events {
        let id = &event.segment_id;
        let metadata = &event.payload.metadata;
        let data = if metadata.is_empty() { String::new() } else { format!(" {}", json!(metadata)) };
        let line = match (event.event_type, &event.payload.broken) {
            (SegmentEventType::Start, _) => format!("{id} start {}{data}", json!(event.segment_type)),
            (SegmentEventType::Content, _) => format!("{id}: {}", event.payload.delta),
            (SegmentEventType::End, None) => format!("{id} end{data}"),
            (SegmentEventType::End, Some(BrokenEnd::Failed(error))) => format!("{id} failed: {error}"),
            (SegmentEventType::End, Some(BrokenEnd::Interrupted(reason))) => {
                format!("{id} interrupted: {reason}")
            }
            (SegmentEventType::End, Some(other)) => panic!("{other:?}"),
        };
        match lines.last_mut().filter(|last| last.starts_with(&format!("{id}: "))) {
            Some(last) if event.event_type == SegmentEventType::Content => {
                last.push_str(&event.payload.delta)
            }
            _ => lines.push(line),
        }
    }
    lines
}

pub(crate) fn invocations(handler: &SegmentHandler) -> Vec<String> {
    handler
        .invocations()
        .map(|found| format!("{} {} {}", found.id, found.name, json!(found.arguments)))
        .collect()
}
