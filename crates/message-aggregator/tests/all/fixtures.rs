//! Tests that every fixture gives its expected result, whole and under the laws of a stream.

use std::collections::VecDeque;

use crate::common::{ROUND, complete, eager, run};
use crate::fixture::{Expected, Fixture};
use message_aggregator::{
    AggregateError, AggregatorSettings, Chunk, Delta, DeltaKind, FinishReason, Media, MessageAggregator,
    ToolCallDelta,
};

macro_rules! fixtures {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                assert_as_expected(stringify!($name));
            }
        )*

        const TESTED: &[&str] = &[$(stringify!($name)),*];
    };
}

fixtures! {
    empty_fragments
    known_id_with_another_number
    pattern1_content_only
    pattern2_calls_only
    pattern3_content_then_calls
    pattern4_long_content_then_calls
    q01_index_missing_new_name
    q01_index_missing_with_ids
    q01_index_null_several_in_one_event
    q02_index_0_for_every_call
    q02_index_0_in_one_event
    q03_index_reused_without_id
    q03_index_reused_without_name
    q04_index_from_1_with_gaps
    q05_index_negative
    q06_two_entries_with_one_index
    q07_calls_interleaved
    q07_headers_before_all_arguments
    q08_indices_out_of_order
    q09_id_and_name_repeated
    q10_id_empty_for_the_whole_call
    q10_id_empty_on_continuation
    q11_id_changes_in_every_piece
    q12_id_never_sent
    q13_id_comes_late
    q14_name_repeated
    q14_name_repeated_without_index
    q15_arguments_before_the_name
    q15_arguments_before_the_name_without_index
    q16_name_empty_on_arguments
    q17_name_in_pieces
    q18_name_never_sent
    q19_whole_call_in_one_event
    q19_whole_calls_in_one_event
    q20_arguments_as_an_object
    q21_arguments_absent
    q22_empty_object_first
}

fn assert_as_expected(name: &str) {
    let fixture = Fixture::read(name);
    let run = run(AggregatorSettings::default(), fixture.deltas);
    assert_eq!(Expected::of(&run.response, run.error.as_ref()), fixture.expected);
    run.assert_lawful();
}

#[test]
fn every_fixture_is_tested() {
    assert_eq!(Fixture::names(), TESTED);
}

#[test]
fn fixture_cut_before_finish_truncates_all_calls() {
    for name in TESTED {
        let fixture = Fixture::read(name);
        let cut = fixture.deltas.into_iter().take_while(|delta| !matches!(delta.kind, DeltaKind::Finish(_)));
        let run = run(AggregatorSettings::default(), cut);
        let cut = Expected::of(&run.response, run.error.as_ref());
        assert_eq!(cut.error.as_deref(), Some("truncated"), "{name}");
        assert_eq!(cut.text, fixture.expected.text, "{name}");
        assert!(cut.calls.iter().all(|call| !call.complete), "{name}");
        run.assert_lawful();
    }
}

/// Returns the order in which the blocks of an answer open and close.
fn openings_and_ends(settings: AggregatorSettings, deltas: Vec<Delta>) -> Vec<String> {
    let run = run(settings, deltas);
    run.assert_lawful();
    run.chunks
        .iter()
        .filter_map(|chunk| match chunk {
            Chunk::Opened { block, .. } => Some(format!("+{}", block.position())),
            Chunk::Closed { block, .. } => Some(format!("-{}", block.position())),
            _ => None,
        })
        .collect()
}

#[test]
fn calls_end_with_answer_or_eagerly_with_next() {
    let deltas = || Fixture::read("pattern3_content_then_calls").deltas;
    assert_eq!(
        openings_and_ends(AggregatorSettings::default(), deltas()),
        ["+0", "-0", "+1", "+2", "+3", "-1", "-2", "-3"]
    );
    assert_eq!(openings_and_ends(eager(), deltas()), ["+0", "-0", "+1", "-1", "+2", "-2", "+3", "-3"]);
}

#[test]
fn eager_call_ends_when_next_block_of_any_kind_begins() {
    let call = |index: i64, arguments: &str| {
        Delta::tool_call(ToolCallDelta::start(index, format!("c{index}"), "look").with_arguments(arguments))
    };
    let next: [Delta; 7] = [
        Delta::text("so"),
        Delta::reasoning("hm"),
        DeltaKind::Refusal("no".into()).into(),
        DeltaKind::Citation(Box::default()).into(),
        Delta::media(Media::from_url("image/png", "https://a.b")),
        Delta::text("so").with_block(7),
        call(1, ""),
    ];
    for next in next {
        let what = format!("{next:?}");
        let deltas = || vec![call(0, "{\"a\":1}"), next.clone(), Delta::finish(FinishReason::Length)];
        let eager = run(eager(), deltas());
        eager.assert_lawful();
        let is_end = |chunk: &Chunk| matches!(chunk, Chunk::Closed { .. });
        let is_next = |chunk: &Chunk| matches!(chunk, Chunk::Opened { block, .. } if block.position() == 1);
        let position = |is: &dyn Fn(&Chunk) -> bool| eager.chunks.iter().position(is);
        assert!(position(&is_end) < position(&is_next), "{what}");
        assert!(eager.response.tool_calls().next().unwrap().1.complete, "{what}");
        let lazy = run(AggregatorSettings::default(), deltas());
        assert!(!lazy.response.tool_calls().next().unwrap().1.complete, "{what}");
    }
    // Empty text, as some servers send beside each piece of a call, begins no block.
    let arguments = |text: &str| Delta::tool_call(ToolCallDelta::arguments(0, text));
    let deltas = [call(0, ""), Delta::text(""), arguments("{\"a\""), Delta::text(""), arguments(":1}")];
    let run = run(eager(), deltas.into_iter().chain([Delta::finish(FinishReason::ToolCalls)]));
    assert_eq!(run.error, None);
    assert_eq!(run.response.blocks().count(), 1);
}

#[test]
fn eager_call_takes_no_more_after_next_block() {
    let late = Delta::tool_call(ToolCallDelta::arguments(0, "}"));
    let start = Delta::tool_call(ToolCallDelta::start(0, "c0", "look").with_arguments("{\"a\":1"));
    let run = run(eager(), [start, Delta::text("so"), late]);
    assert_eq!(run.error, Some(AggregateError::BlockEnded { block: 0 }));
    run.assert_lawful();
}

#[test]
fn eager_rule_gives_same_response_for_sequential_answers() {
    for name in TESTED.iter().filter(|name| name.starts_with("pattern")) {
        let lazy = complete(AggregatorSettings::default(), Fixture::read(name).deltas);
        assert_eq!(complete(eager(), Fixture::read(name).deltas), lazy, "{name}");
    }
}

#[test]
fn law_s2_text_is_visible_in_its_own_push() {
    let mut aggregator = MessageAggregator::new(ROUND);
    let mut chunks = VecDeque::new();
    for delta in Fixture::read("pattern4_long_content_then_calls").deltas {
        let DeltaKind::Text(text) = &delta.kind else {
            continue;
        };
        let text = text.clone();
        aggregator.push(delta, &mut chunks).unwrap();
        let shown: String = chunks.drain(..).filter_map(|chunk| chunk.text().map(str::to_owned)).collect();
        assert_eq!(shown, text.as_str());
    }
    assert_eq!(aggregator.partial().text().split(' ').count(), 98);
}
