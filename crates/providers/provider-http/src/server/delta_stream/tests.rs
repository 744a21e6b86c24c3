//! Tests of `server::delta_stream`.

use advisor_core::{
    FinishReason, Media, MessageAggregator, Opaque, ProviderData, Text, ToolCallDelta, Usage,
};

use futures::{FutureExt, StreamExt};

use super::*;
use crate::answer::Framing;
use crate::answer::tests::{Sayings, decoder};
use crate::answer::{AnswerEvent, Meaning};
use crate::redaction::Redaction;
use crate::sse::SseLimits;

#[test]
fn visible_deltas_are_those_that_produce_chunks() {
    let reasoning = |text: &str| DeltaKind::Reasoning(text.into());
    let call = |call: ToolCallDelta| DeltaKind::ToolCalls(vec![call]);
    let data = || ProviderData::new("f", serde_json::json!({"a": 1}));
    let mut late_name = ToolCallDelta::default();
    late_name.name = Some("f".into());
    let mut with_data = ToolCallDelta::arguments(0, "{");
    with_data.provider_data = Some(data());
    let kinds = [
        DeltaKind::Text("a".into()),
        DeltaKind::Text(Text::default()),
        reasoning("a"),
        reasoning(""),
        DeltaKind::Refusal("a".into()),
        DeltaKind::Refusal(Text::default()),
        DeltaKind::Media(Box::new(Media::from_url("image/*", "u").into())),
        DeltaKind::Citation(Box::default()),
        DeltaKind::Opaque(Box::new(Opaque::new("f", "n", serde_json::json!(1)))),
        DeltaKind::ReasoningData(Box::new(data())),
        DeltaKind::BlockData(Box::new(data())),
        DeltaKind::ToolCalls(Vec::new()),
        call(ToolCallDelta::default()),
        call(ToolCallDelta::arguments(0, "{")),
        call(with_data),
        call(ToolCallDelta::start(0, "c", "")),
        call(ToolCallDelta::start(0, "c", "f")),
        call(late_name),
        DeltaKind::Usage(Box::new(Usage::new(1, 2))),
        Delta::origin(Some("r".into()), None).kind,
        DeltaKind::Finish(Box::new(FinishReason::Stop.into())),
        DeltaKind::BlockEnd,
        DeltaKind::Done,
    ];
    for kind in kinds {
        let mut chunks = VecDeque::new();
        let what = format!("{kind:?}");
        let expected = shows(&kind);
        MessageAggregator::new(1).push(kind.into(), &mut chunks).expect(&what);
        assert_eq!(!chunks.is_empty(), expected, "{what}");
    }
}

/// Returns the deltas of a body that has ended.
fn stream_of<W: WireFormat>(decoder: AnswerDecoder<W>) -> DeltaStream<W> {
    DeltaStream {
        body: None,
        ahead: VecDeque::new(),
        decoder,
        broken: None,
        events: 0,
        progress: Deadline::new(Clock::Progress, None),
        whole_body: Deadline::new(Clock::WholeBody, None),
        after_finish: Deadline::new(Clock::Idle, None),
        drain: Deadline::new(Clock::Idle, None),
    }
}

#[test]
fn buffered_first_deltas_precede_later_ones() {
    let event = |text: &str| format!("data: {{\"say\":\"{text}\"}}\n\n");
    let mut decoder = decoder::<Sayings>();
    decoder.push(["a", "b", "c", "d"].map(event).concat().into());
    let ahead = [decoder.next().expect("a").expect("a"), decoder.next().expect("b").expect("b")];
    let mut stream = DeltaStream { ahead: ahead.into(), ..stream_of(decoder) };
    let mut said = Vec::new();
    while let Some(delta) = stream.next().now_or_never().expect("it is there") {
        said.push(delta.expect("a text"));
    }
    assert_eq!(said, ["a", "b", "c", "d"].map(Delta::text));
}

#[test]
fn ids_and_finish_reasons_count_as_held_bytes() {
    let id = DeltaKind::ToolCalls(vec![ToolCallDelta::start(0, "call", "")]);
    let finish = advisor_core::Finish::written(FinishReason::Stop, "eos");
    assert_eq!((length(&id), length(&DeltaKind::Finish(Box::new(finish)))), (4, 3));
}

/// A format whose every line is a piece of a call without a name.
#[derive(Debug)]
struct Nameless;

impl WireFormat for Nameless {
    const FRAMING: Framing = Framing::Lines;

    fn read(&mut self, event: AnswerEvent<'_>, deltas: &mut VecDeque<Delta>) -> serde_json::Result<Meaning> {
        let mut fragment = ToolCallDelta::arguments(0, event.data);
        fragment.call_id = Some("c".into());
        deltas.push_back(Delta::tool_call(fragment));
        Ok(Meaning::Piece)
    }
}

#[tokio::test]
async fn law_r1_deltas_held_back_are_bounded() {
    for (line, most) in [("1".to_owned(), MOST_AHEAD), ("1".repeat(30 << 10), 3)] {
        let mut decoder = AnswerDecoder::new(Nameless, SseLimits::default(), Redaction::default());
        decoder.push(format!("{line}\n").repeat(MOST_AHEAD + 1).into());
        let mut stream = stream_of(decoder);
        stream.begin().await.expect("no error");
        assert_eq!(stream.ahead.len(), most);
    }
}
