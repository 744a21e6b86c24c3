//! Tests that every bound holds at its value and fails beyond it, typed. Earlier content stays readable.

use crate::common::run;
use message_aggregator::{
    AggregateError, AggregatorLimits, AggregatorSettings, Citation, Delta, DeltaKind, FinishReason, Media,
    Opaque, ProviderData, ToolCallDelta,
};
use serde_json::json;

fn settings() -> AggregatorSettings {
    let limits = AggregatorLimits {
        block_bytes: 8,
        blocks: 3,
        calls: 2,
        provider_data: 2,
        ..AggregatorLimits::default()
    };
    AggregatorSettings { limits, ..AggregatorSettings::default() }
}

fn start(index: i64) -> Delta {
    Delta::tool_call(ToolCallDelta::start(index, format!("c{index}"), "lookup"))
}

fn arguments(arguments: &str) -> Delta {
    Delta::tool_call(ToolCallDelta::arguments(0, arguments))
}

fn citation() -> Delta {
    DeltaKind::Citation(Box::default()).into()
}

fn signature() -> Delta {
    DeltaKind::ReasoningData(Box::new(ProviderData::new("some-api", json!("sig")))).into()
}

fn block_data() -> Delta {
    DeltaKind::BlockData(Box::new(ProviderData::new("some-api", json!("sig")))).into()
}

fn signed_call() -> Delta {
    let mut fragment = ToolCallDelta::start(0, "c0", "lookup");
    fragment.provider_data = Some(ProviderData::new("some-api", json!("sig")));
    Delta::tool_call(fragment)
}

/// Deltas within a bound, a delta that exceeds it, and the name of the bound.
type Row = (Vec<Delta>, Delta, &'static str);

#[test]
fn law_r1_each_bound_is_exact_and_typed() {
    let table: Vec<Row> = vec![
        (vec![Delta::text("1234"), Delta::text("5678")], Delta::text("9"), "bytes in one block"),
        (vec![Delta::reasoning("12345678")], Delta::reasoning("é"), "bytes in one block"),
        (vec![], Delta::text("123456789"), "bytes in one block"),
        (vec![start(0), arguments("{\"a\""), arguments(":12}")], arguments(" "), "bytes in one tool call"),
        (vec![start(0)], arguments("{\"a\":123}"), "bytes in one tool call"),
        (vec![start(0), arguments("{\"a\"")], arguments(":1234}"), "bytes in one tool call"),
        (vec![start(0), start(1)], start(2), "tool calls in one answer"),
        (vec![citation(), citation(), citation()], citation(), "blocks in one answer"),
        (vec![citation(), citation(), Delta::text("a")], start(0), "blocks in one answer"),
        (vec![signature(), signature()], signature(), "pieces of provider data on one block"),
        (vec![signed_call(), signed_call()], signed_call(), "pieces of provider data on one block"),
        (
            vec![Delta::text("a"), block_data(), block_data()],
            block_data(),
            "pieces of provider data on one block",
        ),
        (vec![citation(), citation(), citation()], block_data().with_block(7), "blocks in one answer"),
    ];
    for (fits, beyond, expected) in table {
        let done = || [Delta::done()];
        let within = run(settings(), fits.iter().cloned().chain(done()));
        assert_eq!(within.error, None, "{expected}");
        within.assert_lawful();

        let exceeded = run(settings(), fits.iter().cloned().chain([beyond]).chain(done()));
        let Some(AggregateError::TooLarge { what, limit }) = exceeded.error else {
            panic!("{expected}: {:?}", exceeded.error);
        };
        assert_eq!(what, expected);
        let message = format!("the answer has more than {limit} {what}");
        assert!(exceeded.error.as_ref().unwrap().to_string().starts_with(&message));
        exceeded.assert_lawful();
        assert_eq!(exceeded.response.text(), within.response.text(), "{expected}");
        let arguments = |run: &crate::common::Run| -> Vec<String> {
            run.response.tool_calls().map(|(_, call)| call.arguments.clone()).collect()
        };
        assert_eq!(arguments(&exceeded), arguments(&within), "{expected}");
    }
}

/// Returns the name of some content, its deltas, and the number of bytes that are kept.
fn kept() -> Vec<(&'static str, Vec<Delta>, usize)> {
    let nameless = |arguments: &str| Delta::tool_call(ToolCallDelta::arguments(7, arguments));
    let repeated =
        |arguments: &str| Delta::tool_call(ToolCallDelta::start(0, "c0", "lookup").with_arguments(arguments));
    let mut citation = Citation::default();
    citation.url = Some("https://a.b".into());
    citation.quote = Some("so".into());
    let media = Media::from_bytes("image/png", vec![0; 20]).with_name("a.png");
    let opaque = Opaque::new("some-api", "search", json!({"query": ["a\n", 1, null]}));
    let origin = || Delta::origin(Some("r1".into()), Some("m".into()));
    vec![
        ("text in several blocks", vec![Delta::text("1234"), Delta::reasoning("hm"), Delta::text("é")], 8),
        ("a refusal", vec![Delta::from(DeltaKind::Refusal("No.".into()))], 3),
        ("an id and a name, once", vec![repeated("{\"a\""), repeated(":12}")], 8 + 8),
        ("a call that waits for its name", vec![nameless("1234"), nameless("5678")], 8),
        ("media", vec![Delta::media(media)], 9 + 20 + 5),
        ("media elsewhere", vec![Delta::media(Media::from_url("image/*", "https://a.b"))], 7 + 11),
        ("a citation", vec![DeltaKind::Citation(Box::new(citation)).into()], 13),
        ("what only the provider understands", vec![DeltaKind::Opaque(Box::new(opaque)).into()], 8 + 6 + 24),
        ("provider data, each time", vec![signature(), signature()], 2 * (8 + 5)),
        ("provider data of a call", vec![signed_call()], 8 + (8 + 5)),
        ("provider data of a text", vec![Delta::text("so"), block_data()], 2 + (8 + 5)),
        ("provider data without a text", vec![block_data()], 8 + 5),
        ("where it is from, once", vec![origin(), origin()], 3),
        ("a reason of the provider's own", vec![Delta::finish(FinishReason::Other("eos".into()))], 3),
    ]
}

#[test]
fn law_r1_the_bytes_of_a_whole_answer_are_bounded() {
    for (what, deltas, bytes) in kept() {
        let settings = |bytes| {
            let limits = AggregatorLimits { answer_bytes: bytes, ..AggregatorLimits::default() };
            AggregatorSettings { limits, ..AggregatorSettings::default() }
        };
        let within = run(settings(bytes), deltas.iter().cloned().chain([Delta::done()]));
        assert_eq!(within.error, None, "{what}");
        within.assert_lawful();

        let exceeded = run(settings(bytes - 1), deltas);
        let error = Some(AggregateError::TooLarge { what: "bytes in one answer", limit: bytes - 1 });
        assert_eq!(exceeded.error, error, "{what}");
        exceeded.assert_lawful();
    }
}

/// The sum of blocks that are each within their bound may exceed the bound of the answer.
#[test]
fn law_r1_blocks_within_limits_still_form_bounded_answer() {
    let limits = AggregatorSettings::default().limits;
    assert!(limits.block_bytes < limits.answer_bytes);
    let piece = "x".repeat(1 << 20);
    let deltas = (0..).flat_map(|_| [Delta::text(piece.as_str()), Delta::reasoning(piece.as_str())]);
    let run = run(AggregatorSettings::default(), deltas.take(2 * limits.blocks));
    let limit = limits.answer_bytes;
    assert_eq!(run.error, Some(AggregateError::TooLarge { what: "bytes in one answer", limit }));
}

#[test]
fn new_fragment_for_ended_call_is_error() {
    let ended = || vec![start(0), Delta::from(DeltaKind::BlockEnd).with_block(0)];
    let again = run(AggregatorSettings::default(), ended().into_iter().chain([start(0), Delta::done()]));
    assert_eq!(again.error, None);
    again.assert_lawful();
    assert_eq!(again.response.tool_calls().count(), 1);

    let late = run(AggregatorSettings::default(), ended().into_iter().chain([arguments("{}")]));
    assert_eq!(late.error, Some(AggregateError::BlockEnded { block: 0 }));
    late.assert_lawful();
}

#[test]
fn data_after_end_of_its_block_is_kept() {
    let signature = ProviderData::new("some-api", json!("sig"));
    let response = crate::common::complete(
        AggregatorSettings::default(),
        [
            Delta::reasoning("hm"),
            Delta::text("so"),
            DeltaKind::ReasoningData(Box::new(signature.clone())).into(),
            start(0),
            Delta::from(DeltaKind::BlockEnd).with_block(0),
            signed_call(),
            Delta::done(),
        ],
    );
    let data: Vec<_> = response.blocks().map(|(_, block)| block.provider_data().to_vec()).collect();
    assert_eq!(data, [vec![signature.clone()], vec![], vec![signature]]);
}
