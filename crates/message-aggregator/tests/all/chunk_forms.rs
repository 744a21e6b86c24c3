//! The JSON form of chunks: every chunk survives a round trip, and the form itself is pinned.

use crate::arbitrary::deltas;
use crate::common::run;
use crate::stored::again;
use message_aggregator::{
    AggregatorSettings, Block, BlockDelta, BlockHead, BlockId, BlockKind, ChatResponse, Chunk, FinishReason,
    Media, Message, NotStartedReason, Part, ToolCall, ToolEvent, ToolEventKind, ToolResult, Usage,
};
use proptest::prelude::{prop_assert_eq, proptest};
use serde_json::{Value, json};

proptest! {
    #[test]
    fn aggregated_chunks_survive_a_round_trip(deltas in deltas()) {
        let run = run(AggregatorSettings::default(), deltas);
        for chunk in run.chunks.into_iter().chain([Chunk::Completed(run.response)]) {
            prop_assert_eq!(again(&chunk), [chunk.clone(), chunk]);
        }
    }

    #[test]
    fn any_text_is_read_or_refused(json in ".{0,40}") {
        let _ = Chunk::from_json(&json);
    }
}

/// The JSON form of each kind of chunk. Other programs read these forms, so a change needs another version.
fn forms() -> Vec<(Value, Chunk)> {
    let id = BlockId::new(1, 0);
    let added = id.with_part(2).unwrap();
    let call = ToolCall::new("c1", "look", "{}");
    let result = ToolResult::new(&call, vec!["sunny".into()]);
    let result_form = json!({"call_id": "c1", "name": "look", "parts": [{"type": "text", "value": "sunny"}], "is_error": false});
    let delta = |delta| Chunk::Delta { block: id, delta };
    let delta_form = |delta: Value| json!({"type": "delta", "block": "1.0", "delta": delta});
    let event = |kind| {
        Chunk::Tool(Box::new(ToolEvent { block: id, call_id: "c1".into(), name: "look".into(), kind }))
    };
    let event_form = |event: Value| json!({"type": "tool", "block": "1.0", "call_id": "c1", "name": "look", "event": event});
    let answer = ChatResponse::new(2, Message::assistant("Hi."), FinishReason::Stop);
    let message_form = json!({"role": "assistant", "content": [{"type": "text", "value": "Hi."}]});
    let finish_form = json!({"reason": "stop", "inferred": false});
    let mut whole = answer.clone();
    whole.usage = Some(Usage::new(3, 1));
    whole.transcript = Message::user("Hello").into();
    vec![
        (
            json!({"type": "opened", "block": "1.0", "head": {"kind": "text"}}),
            Chunk::Opened { block: id, head: BlockHead::new(BlockKind::Text) },
        ),
        (
            json!({"type": "opened", "block": "1.0.2", "head": {"kind": "text"}}),
            Chunk::Opened { block: added, head: BlockHead::new(BlockKind::Text) },
        ),
        (
            json!({
                "type": "opened",
                "block": "1.0",
                "head": {"kind": "tool_call", "call": {"name": "look", "call_id": "c1"}},
            }),
            Chunk::Opened { block: id, head: BlockHead::from_block(&call.clone().into()) },
        ),
        (delta_form(json!({"type": "text", "value": "Hi"})), delta(BlockDelta::Text("Hi".into()))),
        (delta_form(json!({"type": "reasoning", "value": "hm"})), delta(BlockDelta::Reasoning("hm".into()))),
        (delta_form(json!({"type": "refusal", "value": "no"})), delta(BlockDelta::Refusal("no".into()))),
        (delta_form(json!({"type": "arguments", "value": "{"})), delta(BlockDelta::Arguments("{".into()))),
        (
            delta_form(
                json!({"type": "media", "value": {"mime": "image/png", "source": {"url": "https://a.b/c"}}}),
            ),
            delta(BlockDelta::Media(Box::new(Media::from_url("image/png", "https://a.b/c")))),
        ),
        (delta_form(json!({"type": "citation", "value": {}})), delta(BlockDelta::Citation(Box::default()))),
        (
            json!({"type": "closed", "block": "1.0", "content": {"type": "text", "value": "Hi"}}),
            Chunk::Closed { block: id, content: Block::text("Hi") },
        ),
        (
            event_form(json!({"type": "started", "arguments": "{}"})),
            event(ToolEventKind::Started { arguments: "{}".into() }),
        ),
        (
            event_form(json!({"type": "progress", "part": {"type": "json", "value": {"done": 0.5}}})),
            event(ToolEventKind::Progress { part: Part::Json(json!({"done": 0.5})) }),
        ),
        (
            event_form(json!({"type": "finished", "result": result_form})),
            event(ToolEventKind::Finished { result: result.clone() }),
        ),
        (
            event_form(json!({"type": "not_started", "reason": "denied", "result": result_form})),
            event(ToolEventKind::NotStarted { reason: NotStartedReason::Denied, result }),
        ),
        (
            json!({
                "type": "round_completed",
                "round": 2,
                "message": message_form,
                "block_ids": ["2.0"],
                "finish": finish_form,
            }),
            Chunk::RoundCompleted(answer),
        ),
        (
            json!({"type": "usage", "round": 1, "usage": {"input_tokens": 3, "output_tokens": 1}}),
            Chunk::Usage { round: 1, usage: Box::new(Usage::new(3, 1)) },
        ),
        (json!({"type": "attempt_restarted", "round": 1}), Chunk::AttemptRestarted { round: 1 }),
        (
            json!({
                "type": "completed",
                "round": 2,
                "message": message_form,
                "block_ids": ["2.0"],
                "finish": finish_form,
                "usage": {"input_tokens": 3, "output_tokens": 1},
                "transcript": [{"role": "user", "content": [{"type": "text", "value": "Hello"}]}],
            }),
            Chunk::Completed(whole),
        ),
    ]
}

#[test]
fn each_chunk_has_its_pinned_form() {
    for (form, chunk) in forms() {
        assert_eq!(serde_json::to_value(&chunk).unwrap(), form);
        assert_eq!(serde_json::from_value::<Chunk>(form).unwrap(), chunk);
    }
}

/// Adds a field to every object of a form that is not an enum with one field or a value of a tool.
fn with_unknown_fields(form: Value) -> Value {
    match form {
        Value::Object(mut fields) => {
            for value in fields.values_mut() {
                *value = with_unknown_fields(value.take());
            }
            if !fields.contains_key("url") && !fields.contains_key("done") {
                fields.insert("added_later".to_owned(), json!({"a": [1]}));
            }
            Value::Object(fields)
        }
        Value::Array(values) => values.into_iter().map(with_unknown_fields).collect(),
        other => other,
    }
}

#[test]
fn unknown_fields_of_chunks_are_ignored() {
    for (form, chunk) in forms() {
        let more = with_unknown_fields(form);
        assert_eq!(Chunk::from_json(&more.to_string()).unwrap(), Some(chunk), "{more}");
    }
}

#[test]
fn words_of_reasons_are_those_of_the_form() {
    use NotStartedReason::*;
    for reason in [
        UnknownTool, IncompleteCall, InvalidArguments, Denied, Limit, AnswerCutOff, AlreadyStarted,
        TurnFailed, Other,
    ] {
        assert_eq!(serde_json::to_value(reason).unwrap(), reason.as_str());
    }
    let later: NotStartedReason = serde_json::from_value(json!("of_a_later_version")).unwrap();
    assert_eq!(later, Other);
}

#[test]
fn response_without_a_message_is_refused() {
    for form in [json!({"round": 1}), json!({})] {
        assert!(serde_json::from_value::<ChatResponse>(form).is_err());
    }
}
