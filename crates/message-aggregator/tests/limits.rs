//! Every bound holds at its value and fails beyond it, typed, and what came before stays readable.

mod common;

use common::run;
use message_aggregator::{
    AggregateError, AggregatorSettings, Citation, Delta, DeltaKind, ProviderData, ToolCallDelta,
};
use serde_json::json;

fn settings() -> AggregatorSettings {
    let mut settings = AggregatorSettings::default();
    settings.limits.block_bytes = 8;
    settings.limits.blocks = 3;
    settings.limits.calls = 2;
    settings.limits.provider_data = 2;
    settings.choices = 2;
    settings
}

fn start(index: i64) -> Delta {
    Delta::tool_call(ToolCallDelta::start(index, format!("c{index}"), "lookup"))
}

fn arguments(arguments: &str) -> Delta {
    Delta::tool_call(ToolCallDelta::arguments(0, arguments))
}

fn citation() -> Delta {
    DeltaKind::Citation(Citation::default()).into()
}

fn signature() -> Delta {
    DeltaKind::ReasoningData(ProviderData::new("some-api", json!("sig"))).into()
}

fn signed_call() -> Delta {
    let mut fragment = ToolCallDelta::start(0, "c0", "lookup");
    fragment.provider_data = Some(ProviderData::new("some-api", json!("sig")));
    Delta::tool_call(fragment)
}

/// What fits, what is too much, and what there is too much of.
type Row = (Vec<Delta>, Delta, &'static str);

#[test]
fn law_r1_each_bound_is_exact_and_typed() {
    let table: Vec<Row> = vec![
        (vec![Delta::text("1234"), Delta::text("5678")], Delta::text("9"), "bytes in one block"),
        (vec![Delta::reasoning("12345678")], Delta::reasoning("é"), "bytes in one block"),
        (vec![], Delta::text("123456789"), "bytes in one block"),
        (vec![start(0), arguments("{\"a\""), arguments(":12}")], arguments(" "), "bytes in one tool call"),
        (vec![start(0)], arguments("{\"a\":123}"), "bytes in one tool call"),
        (vec![start(0), start(1)], start(2), "tool calls in one answer"),
        (vec![citation(), citation(), citation()], citation(), "blocks in one answer"),
        (vec![citation(), citation(), Delta::text("a")], start(0), "blocks in one answer"),
        (
            vec![citation().in_choice(1), citation(), Delta::text("a")],
            Delta::text("b").in_choice(1),
            "blocks in one answer",
        ),
        (vec![signature(), signature()], signature(), "pieces of provider data on one block"),
        (vec![signed_call(), signed_call()], signed_call(), "pieces of provider data on one block"),
        (vec![Delta::text("a"), Delta::text("b").in_choice(7)], Delta::text("c").in_choice(3), "choices"),
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
        let arguments = |run: &common::Run| -> Vec<String> {
            run.response.tool_calls().map(|(_, call)| call.arguments.clone()).collect()
        };
        assert_eq!(arguments(&exceeded), arguments(&within), "{expected}");
    }
}

#[test]
fn a_fragment_for_an_ended_call_is_an_error_unless_it_says_nothing_new() {
    let ended = || vec![start(0), Delta::from(DeltaKind::BlockEnd).in_block(0)];
    let again = run(AggregatorSettings::default(), ended().into_iter().chain([start(0), Delta::done()]));
    assert_eq!(again.error, None);
    again.assert_lawful();
    assert_eq!(again.response.tool_calls().count(), 1);

    let late = run(AggregatorSettings::default(), ended().into_iter().chain([arguments("{}")]));
    assert_eq!(late.error, Some(AggregateError::BlockEnded { block: 0 }));
    late.assert_lawful();
}

#[test]
fn data_that_comes_after_the_end_of_its_block_is_kept() {
    let signature = ProviderData::new("some-api", json!("sig"));
    let response = common::complete(
        AggregatorSettings::default(),
        [
            Delta::reasoning("hm"),
            Delta::text("so"),
            DeltaKind::ReasoningData(signature.clone()).into(),
            start(0),
            Delta::from(DeltaKind::BlockEnd).in_block(0),
            signed_call(),
            Delta::done(),
        ],
    );
    let data: Vec<_> = response.blocks().map(|(_, block)| block.provider_data().to_vec()).collect();
    assert_eq!(data, [vec![signature.clone()], vec![], vec![signature]]);
}
