//! `Segments`: the segments of an answer, independent of the pieces in which it came.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use message_aggregator::{Delta, DeltaKind, FinishReason, MessageAggregator};
use serde_json::{Map, Value};
use text_tool_calls::ParserError;
use text_tool_calls::segments::{BrokenEnd, SegmentEventType, SegmentHandler, SegmentType};

/// The segments of an answer, independent of the pieces in which it came.
#[derive(Debug, Default, PartialEq)]
pub struct Segments {
    /// In the order of their starts.
    segments: Vec<Segment>,
    /// The id, the name and the arguments of each invocation.
    invocations: Vec<(String, String, Map<String, Value>)>,
    error: Option<ParserError>,
}

#[derive(Debug, PartialEq)]
struct Segment {
    id: String,
    kind: Option<SegmentType>,
    /// The metadata of the start and of the end.
    metadata: [Map<String, Value>; 2],
    content: String,
    broken: Option<BrokenEnd>,
}

impl Segments {
    /// Returns the segments of an answer of these deltas, whose law is checked.
    #[must_use]
    pub fn of(mut handler: SegmentHandler, deltas: impl IntoIterator<Item = Delta>) -> Self {
        let mut aggregator = MessageAggregator::new(1);
        let mut chunks = VecDeque::new();
        for delta in deltas.into_iter().chain([Delta::finish(FinishReason::Stop), DeltaKind::Done.into()]) {
            aggregator.push(delta, &mut chunks).expect("within the bounds");
        }
        aggregator.finish(&mut chunks).expect("a whole answer");
        let fed: Result<(), _> = chunks.iter().try_for_each(|chunk| handler.feed(chunk).map(|_| ()));
        let error = fed.and_then(|()| handler.finalize().map(|_| ())).err();
        assert_eq!(handler.finalize(), Ok(Vec::new()), "it ends once");
        let mut segments = Self { error, ..Self::default() };
        segments.read(&handler);
        if segments.error.is_some() {
            // How far the text was read before the error depends on the pieces.
            segments.segments.clear();
            segments.invocations.clear();
        }
        segments
    }

    /// Joins the events. Each segment has one start, then contents, then one end.
    fn read(&mut self, handler: &SegmentHandler) {
        let mut open = BTreeMap::new();
        let mut ids = BTreeSet::new();
        for event in handler.events() {
            let (id, payload) = (event.segment_id.to_string(), &event.payload);
            match event.event_type {
                SegmentEventType::Start => {
                    assert!(ids.insert(id.clone()), "the id {id} is used once");
                    open.insert(id.clone(), self.segments.len());
                    let metadata = [payload.metadata.clone(), Map::new()];
                    let (kind, content) = (event.segment_type, String::new());
                    self.segments.push(Segment { id, kind, metadata, content, broken: None });
                }
                SegmentEventType::Content => {
                    self.segments[open[&id]].content.push_str(&payload.delta);
                }
                SegmentEventType::End => {
                    let segment = &mut self.segments[open.remove(&id).expect("an end has a start")];
                    (segment.metadata[1], segment.broken) =
                        (payload.metadata.clone(), payload.broken.clone());
                }
            }
        }
        assert_eq!(open, BTreeMap::new(), "each segment ends");
        for found in handler.invocations() {
            let of = self.segments.iter().find(|segment| segment.id == *found.id).expect("its segment");
            assert!(of.broken.is_none(), "a broken call is no invocation");
            assert_eq!(of.metadata[1]["arguments"], Value::Object(found.arguments.clone()));
            let (id, name) = (found.id.to_string(), found.name.to_string());
            self.invocations.push((id, name, found.arguments.clone()));
        }
    }
}
