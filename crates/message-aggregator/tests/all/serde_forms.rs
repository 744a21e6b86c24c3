//! Stored messages: every kind survives a round trip, and forms with less or more in them are read.

use crate::stored::{again, message};
use message_aggregator::{
    Block, BlockContent, Citation, Finish, FinishReason, Limit, Media, Message, MessageList, Opaque, Part,
    ProviderData, ToolCall, ToolResult, Usage,
};
use proptest::collection::vec;
use proptest::prelude::{any, prop_assert_eq, proptest};
use serde_json::{Value, json};

proptest! {
    #[test]
    fn messages_survive_a_round_trip(messages in vec(message(), 0..4)) {
        for message in &messages {
            prop_assert_eq!(again(message), [message.clone(), message.clone()]);
        }
        let list = MessageList::from(messages);
        prop_assert_eq!(again(&list), [list.clone(), list]);
    }

    #[test]
    fn usage_survives_a_round_trip(counts in any::<[Option<u64>; 6]>()) {
        let mut usage = Usage::default();
        [
            usage.input_tokens,
            usage.output_tokens,
            usage.total_tokens,
            usage.cached_input_tokens,
            usage.cache_write_tokens,
            usage.reasoning_tokens,
        ] = counts;
        prop_assert_eq!(again(&usage), [usage, usage]);
    }
}

#[test]
fn finish_reasons_survive_a_round_trip() {
    let reasons = [
        FinishReason::Stop,
        FinishReason::Length,
        FinishReason::ToolCalls,
        FinishReason::ContentFilter,
        FinishReason::Refusal,
        FinishReason::Paused,
        FinishReason::ReturnDirect,
        FinishReason::Limit(Limit::Rounds(3)),
        FinishReason::Limit(Limit::Calls(4)),
        FinishReason::Limit(Limit::CallsPerTool { tool: "rate".into(), limit: 2 }),
        FinishReason::Limit(Limit::SameCall { tool: "rate".into(), limit: 2 }),
        FinishReason::Limit(Limit::Other("the budget".into())),
        FinishReason::Limit(Limit::Time(1500)),
        FinishReason::Empty,
        FinishReason::Interrupted,
        FinishReason::Other("odd".into()),
    ];
    for reason in reasons {
        for finish in [
            Finish::from(reason.clone()),
            Finish::inferred(reason.clone()),
            Finish::written(reason.clone(), "end_turn"),
        ] {
            assert_eq!(again(&finish), [finish.clone(), finish]);
        }
    }
}

/// Returns a stored form of every kind, and its message. These forms are in stores, so they must stay readable.
fn stored_forms() -> Vec<(Value, Message)> {
    let block = |content| Message::assistant_blocks(vec![Block::new(content)]);
    let assistant = |content: Value| json!({"role": "assistant", "content": [content]});
    let user = |part: Value| json!({"role": "user", "content": [part]});
    let said = |part| Message::user_parts(vec![part]);
    let mut cut = ToolCall::new("c1", "rate", "{");
    cut.complete = false;
    let mut source = Citation::default();
    source.url = Some("https://example.org".into());
    vec![
        (json!({"role": "system", "content": "Be brief."}), Message::system("Be brief.")),
        (json!({"role": "system", "content": "s", "ephemeral": true}), Message::system("s").ephemeral()),
        (user(json!({"type": "text", "value": "Hi"})), Message::user("Hi")),
        (
            user(
                json!({"type": "image", "value": {"mime": "image/png", "source": {"url": "https://example.org/a"}}}),
            ),
            said(Part::Image(Media::from_url("image/png", "https://example.org/a"))),
        ),
        (
            user(json!({"type": "audio", "value": {"mime": "audio/wav", "source": {"bytes": "AAEC"}}})),
            said(Part::Audio(Media::from_bytes("audio/wav", vec![0, 1, 2]))),
        ),
        (
            user(
                json!({"type": "file", "value": {"mime": "text/csv", "source": {"bytes": ""}, "name": "t.csv"}}),
            ),
            said(Part::File(Media::from_bytes("text/csv", vec![]).with_name("t.csv"))),
        ),
        (user(json!({"type": "json", "value": null})), said(Part::Json(Value::Null))),
        (assistant(json!({"type": "text", "value": "Hi"})), Message::assistant("Hi")),
        (assistant(json!({"type": "reasoning", "value": "hm"})), block(BlockContent::Reasoning("hm".into()))),
        (assistant(json!({"type": "refusal", "value": "no"})), block(BlockContent::Refusal("no".into()))),
        (
            assistant(json!({"type": "citation", "value": {}})),
            block(BlockContent::Citation(Citation::default())),
        ),
        (
            assistant(json!({"type": "citation", "value": {"url": "https://example.org"}})),
            block(BlockContent::Citation(source)),
        ),
        (
            assistant(json!({"type": "tool_call", "value": {"id": "c1", "name": "rate", "arguments": "{}"}})),
            block(BlockContent::ToolCall(ToolCall::new("c1", "rate", "{}"))),
        ),
        (
            assistant(json!({
                "type": "tool_call",
                "value": {"id": "c1", "name": "rate", "arguments": "{", "complete": false},
            })),
            block(BlockContent::ToolCall(cut)),
        ),
        (
            assistant(
                json!({"type": "opaque", "value": {"format": "some-api", "name": "search", "value": [1]}}),
            ),
            block(BlockContent::Opaque(Opaque::new("some-api", "search", json!([1])))),
        ),
        (
            assistant(json!({
                "type": "reasoning",
                "value": "",
                "provider_data": [{"format": "some-api", "value": "signature"}],
            })),
            Message::assistant_blocks(vec![Block::with_data(
                BlockContent::Reasoning(String::new()),
                vec![ProviderData::new("some-api", json!("signature"))],
            )]),
        ),
        (
            json!({"role": "tool", "content": {"call_id": "c1", "name": "rate", "parts": [], "is_error": false}}),
            Message::tool(ToolResult::new(&ToolCall::new("c1", "rate", ""), vec![])),
        ),
    ]
}

#[test]
fn stored_forms_round_trip_unchanged() {
    for (form, message) in stored_forms() {
        assert_eq!(serde_json::to_value(&message).unwrap(), form);
        assert_eq!(serde_json::from_value::<Message>(form).unwrap(), message);
    }
}

#[test]
fn unknown_fields_are_passed_over_wherever_they_stand() {
    for (form, message) in stored_forms() {
        let more = with_unknown_fields(form);
        assert_eq!(serde_json::from_value::<Message>(more.clone()).unwrap(), message, "{more}");
    }
}

/// Adds a field to every object of a form but those that are a value of the user's or the provider's own.
fn with_unknown_fields(form: Value) -> Value {
    match form {
        Value::Object(mut fields) => {
            // The place of bytes is an enum with one field; a second one would be a second place.
            let is_source = fields.contains_key("url") && fields.len() == 1 || fields.contains_key("bytes");
            for value in fields.values_mut() {
                *value = with_unknown_fields(value.take());
            }
            if !is_source {
                fields.insert("added_later".to_owned(), json!({"a": [1]}));
            }
            Value::Object(fields)
        }
        Value::Array(values) => values.into_iter().map(with_unknown_fields).collect(),
        other => other,
    }
}

#[test]
fn missing_optional_fields_have_their_defaults() {
    let result = json!({"call_id": "c1", "name": "rate", "parts": [{"type": "text", "value": "9"}]});
    let result: ToolResult = serde_json::from_value(result).unwrap();
    assert_eq!((result.text().as_str(), result.is_error), ("9", false));
    let finish: Finish = serde_json::from_value(json!({"reason": "stop"})).unwrap();
    assert_eq!(finish, Finish::from(FinishReason::Stop));
    let usage: Usage = serde_json::from_value(json!({"output_tokens": 3, "price": 0.1})).unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens), (None, Some(3)));
}

#[test]
fn bytes_that_are_no_base64_are_an_error() {
    let form = json!({"mime": "image/png", "source": {"bytes": "no!"}});
    assert!(serde_json::from_value::<Media>(form).is_err());
}
