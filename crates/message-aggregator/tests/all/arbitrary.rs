//! Any deltas at all, as no sane server would send them.

use message_aggregator::{
    Delta, DeltaKind, FinishReason, Media, MediaDelta, Opaque, ProviderData, ToolCallDelta, Usage,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{Just, Strategy, any};
use proptest::prop_oneof;
use proptest::sample::select;
use serde_json::json;

/// A sequence of deltas.
pub(crate) fn deltas() -> impl Strategy<Value = Vec<Delta>> {
    vec(delta(), 0..40)
}

fn delta() -> impl Strategy<Value = Delta> {
    (option::weighted(0.2, -1_i64..3), kind()).prop_map(|(block, kind)| {
        let delta = Delta::from(kind);
        match block {
            Some(block) => delta.with_block(block),
            None => delta,
        }
    })
}

fn kind() -> impl Strategy<Value = DeltaKind> {
    prop_oneof![
        8 => words().prop_map(|text| DeltaKind::Text(text.into())),
        3 => words().prop_map(|text| DeltaKind::Reasoning(text.into())),
        1 => words().prop_map(|text| DeltaKind::Refusal(text.into())),
        8 => vec(fragment(), 0..4).prop_map(DeltaKind::ToolCalls),
        4 => fragment().prop_map(|fragment| Delta::tool_call(fragment).kind),
        2 => (option::of(-1_i64..3), arguments()).prop_map(|(index, text)| DeltaKind::Arguments { index, text: text.into() }),
        1 => option::of(data()).prop_map(|data| {
            let mut media = MediaDelta::from(Media::from_url("image/png", "https://example.org/a.png"));
            media.provider_data = data;
            Delta::media(media).kind
        }),
        1 => Just(DeltaKind::Citation(Box::default())),
        1 => Just(DeltaKind::Opaque(Box::new(Opaque::new("some-api", "search", json!({"query": "tern"}))))),
        1 => data().prop_map(|data| DeltaKind::ReasoningData(Box::new(data))),
        1 => data().prop_map(|data| DeltaKind::BlockData(Box::new(data))),
        2 => Just(DeltaKind::BlockEnd),
        1 => (0_u64..9, 0_u64..9).prop_map(|(input, output)| DeltaKind::Usage(Box::new(Usage::new(input, output)))),
        2 => reason().prop_map(|reason| DeltaKind::Finish(Box::new(reason.into()))),
        1 => Just(Delta::origin(Some("answer".into()), None).kind),
        1 => Just(DeltaKind::Done),
    ]
}

/// A fragment of a call, with anything missing, empty or repeated.
pub(crate) fn fragment() -> impl Strategy<Value = ToolCallDelta> {
    let index = prop_oneof![6 => -1_i64..3, 1 => any::<i64>()];
    // The last ones look like those that are made for calls that come without one.
    let id = select(vec!["", "a", "b", "call_1_0", "call_1_1", "call_1_0_2"]);
    let name = select(vec!["", "f", "g"]);
    (
        option::of(index),
        option::of(id),
        option::of(name),
        option::of(arguments()),
        option::weighted(0.1, data()),
    )
        .prop_map(|(index, id, name, arguments, data)| {
            let mut fragment = ToolCallDelta::default();
            fragment.index = index;
            fragment.call_id = id.map(Into::into);
            fragment.name = name.map(Into::into);
            fragment.arguments_delta = arguments.map(Into::into);
            fragment.provider_data = data;
            fragment
        })
}

fn words() -> impl Strategy<Value = &'static str> {
    select(vec!["", "a", " gull", "é", "🐦🐦", "{}", "a longer piece of text than fits inline"])
}

fn arguments() -> impl Strategy<Value = &'static str> {
    select(vec!["", "{}", "{", "{\"k\":", "1}", "\"🐦\"", "}", " ", "null", "{\"k\":1}"])
}

fn data() -> impl Strategy<Value = ProviderData> {
    (0..3).prop_map(|number| ProviderData::new("some-api", json!(number)))
}

fn reason() -> impl Strategy<Value = FinishReason> {
    select(vec![
        FinishReason::Stop,
        FinishReason::Length,
        FinishReason::ToolCalls,
        FinishReason::ContentFilter,
        FinishReason::Refusal,
        FinishReason::Other("odd".into()),
    ])
}
