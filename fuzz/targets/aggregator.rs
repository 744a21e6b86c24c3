//! Checks for any deltas that blocks are well-formed (S3), that no content is lost or duplicated (S4), and that
//! the bounds hold.
//!
//! The input is two digits (whether calls end eagerly, whether the bounds are small), then steps:
//!
//! - `t1` `r1` `f1`: text, reasoning, refusal, each the first one of a fixed list.
//! - `k1113`: a fragment of a call: its index, id, name and arguments, each from a fixed list. 0 is none. 9 in place of an id
//!   or of arguments is a text up to the next `'`. `A11`: only arguments: an index and a text.
//! - `K2`: several fragments in one event.
//! - `m` `c` `o` `d1` `D1`: media, a citation, opaque content, data of the reasoning, data of a block.
//! - `b` `.0` `!`: the end of a block, a reason to finish, the end marker.
//! - `u1` `O1`: token counts, the origin of the answer.
//! - `@1`: the following deltas are in the first numbered block.
#![no_main]

#[path = "../../crates/message-aggregator/tests/all/common.rs"]
mod common;

use std::collections::{BTreeSet, VecDeque};

use advisor_fuzz::Script;
use common::{ROUND, run};
use libfuzzer_sys::fuzz_target;
use message_aggregator::{
    AggregatorLimits, AggregatorSettings, BlockContent, ChatResponse, Chunk, ChunkFold, Delta, DeltaKind,
    FinishReason, Media, MessageAggregator, Opaque, ProviderData, Text, ToolCallDelta, Usage,
};
use serde_json::json;

fuzz_target!(|script: &[u8]| {
    let mut script = Script::new(script);
    let settings = settings(&mut script);
    let deltas = deltas(&mut script);
    let first = run(settings.clone(), deltas.clone());
    first.assert_lawful();
    assert_calls_are_named(&first.response);
    assert_bounded(&first.response, &settings);

    let second = run(settings.clone(), deltas.clone());
    assert_eq!(
        (&second.chunks, &second.response, &second.error),
        (&first.chunks, &first.response, &first.error),
        "the same deltas give the same chunks"
    );
    assert_readable(settings, deltas);
});

fn assert_calls_are_named(response: &ChatResponse) {
    let calls: Vec<_> = response.message().tool_calls().collect();
    let ids: BTreeSet<_> = calls.iter().map(|call| &call.id).collect();
    assert_eq!(ids.len(), calls.len(), "every call has an id of its own: {calls:?}");
    assert!(calls.iter().all(|call| !call.id.is_empty() && !call.name.is_empty()), "{calls:?}");
}

fn assert_bounded(response: &ChatResponse, settings: &AggregatorSettings) {
    let limits = settings.limits;
    assert!(response.tool_calls().count() <= limits.calls);
    let mut bytes = 0;
    for (_, block) in response.blocks() {
        let size = match block.content() {
            BlockContent::Text(text) | BlockContent::Reasoning(text) | BlockContent::Refusal(text) => {
                text.len()
            }
            BlockContent::ToolCall(call) => call.arguments.len(),
            _ => 0,
        };
        assert!(size <= limits.block_bytes && block.provider_data().len() <= limits.provider_data);
        bytes += size;
    }
    assert!(response.blocks().count() <= limits.blocks && bytes <= limits.answer_bytes);
}

/// Checks that the partial answer equals the shown content, also after an error.
fn assert_readable(settings: AggregatorSettings, deltas: Vec<Delta>) {
    let mut aggregator = MessageAggregator::with_settings(ROUND, settings);
    let (mut chunks, mut fold, mut ended) = (VecDeque::new(), ChunkFold::default(), BTreeSet::new());
    for delta in deltas {
        let _ = aggregator.push(delta, &mut chunks);
        for chunk in chunks.drain(..) {
            fold.push(&chunk);
            if let Chunk::Closed { block, .. } = chunk {
                ended.insert(block);
            }
        }
        let partial = aggregator.partial();
        assert_eq!(partial.text(), fold.text(ROUND));
        assert_calls_are_named(&partial);
        for (block, call) in partial.tool_calls() {
            let has_ended = ended.contains(&block);
            assert!(has_ended || !call.complete, "only an ended call is complete");
        }
    }
}

fn settings(script: &mut Script<'_>) -> AggregatorSettings {
    let mut settings = AggregatorSettings::default();
    settings.eager_calls = script.pick(&[false, true]);
    if script.pick(&[false, true]) {
        let AggregatorLimits { answer_bytes, block_bytes, blocks, calls, provider_data } =
            &mut settings.limits;
        (*answer_bytes, *block_bytes, *blocks, *calls, *provider_data) = (100, 30, 8, 3, 2);
    }
    settings
}

/// The highest number of deltas, so that no input takes long.
const MOST_DELTAS: usize = 400;

fn deltas(script: &mut Script<'_>) -> Vec<Delta> {
    let mut deltas = Vec::new();
    let mut block = None;
    while let Some(letter) = script.letter(b"trfmcodDbu.O!kKA@") {
        match letter {
            b'@' => block = script.pick(&[None, Some(0), Some(1), Some(2), Some(-1), Some(i64::MAX)]),
            _ => {
                let mut delta = Delta::from(kind(letter, script));
                delta.block = block;
                deltas.push(delta);
            }
        }
        if deltas.len() == MOST_DELTAS {
            break;
        }
    }
    deltas
}

fn kind(letter: u8, script: &mut Script<'_>) -> DeltaKind {
    match letter {
        b't' => DeltaKind::Text(words(script)),
        b'r' => DeltaKind::Reasoning(words(script)),
        b'f' => DeltaKind::Refusal(words(script)),
        b'm' => Delta::media(Media::from_url("image/png", "https://example.org/a.png")).kind,
        b'c' => DeltaKind::Citation(Box::default()),
        b'o' => DeltaKind::Opaque(Box::new(Opaque::new("some-api", "search", json!({"query": "tern"})))),
        b'd' => DeltaKind::ReasoningData(Box::new(ProviderData::new("some-api", json!(script.number())))),
        b'D' => DeltaKind::BlockData(Box::new(ProviderData::new("some-api", json!(script.number())))),
        b'b' => DeltaKind::BlockEnd,
        b'u' => DeltaKind::Usage(Box::new(Usage::new(script.number() as u64, 2))),
        b'.' => DeltaKind::Finish(Box::new(reason(script).into())),
        b'O' => message_aggregator::Delta::origin(Some("answer".into()), Some(words(script))).kind,
        b'!' => DeltaKind::Done,
        b'K' => {
            let count = script.pick(&[0, 1, 2, 3]);
            DeltaKind::ToolCalls((0..count).map(|_| fragment(script)).collect())
        }
        b'A' => DeltaKind::Arguments { index: script.pick(&[None, Some(0), Some(1)]), text: words(script) },
        _ => DeltaKind::ToolCalls(vec![fragment(script)]),
    }
}

/// Four bytes: number, id, name and arguments; 0 is none of them.
fn fragment(script: &mut Script<'_>) -> ToolCallDelta {
    let mut fragment = ToolCallDelta::default();
    fragment.index =
        script.pick(&[None, Some(0), Some(1), Some(2), Some(-1), Some(i64::MAX), Some(i64::MIN)]);
    fragment.call_id = match script.number() % 10 {
        0 => None,
        9 => Some(script.quoted().into()),
        // Ids that are made for calls that come without one look like the last ones.
        number => {
            let ids = ["", "a", "b", "call_1_0", "call_1_1", "call_1_2", "call_1_0_2", "call_1_1_2"];
            ids.get(number - 1).map(|id| Text::from(*id))
        }
    };
    fragment.name = script.pick(&[None, Some("f"), Some("g"), Some("")]).map(Text::from);
    fragment.arguments_delta = match script.number() % 11 {
        0 => None,
        9 => Some(script.quoted().into()),
        10 => {
            fragment.provider_data = Some(ProviderData::new("some-api", json!({"signature": "s"})));
            None
        }
        number => {
            let pieces = ["{}", "{", "{\"k\":", "1}", "\"🐦\"", "}", " ", "{\"k\":1}"];
            pieces.get(number - 1).map(|piece| Text::from(*piece))
        }
    };
    fragment
}

fn words(script: &mut Script<'_>) -> Text {
    script.pick(&["", "a", " gull", "é", "🐦🐦", "{}", "a longer piece of text than fits inline"]).into()
}

fn reason(script: &mut Script<'_>) -> FinishReason {
    match script.number() % 6 {
        0 => FinishReason::Stop,
        1 => FinishReason::ToolCalls,
        2 => FinishReason::Length,
        3 => FinishReason::ContentFilter,
        4 => FinishReason::Refusal,
        _ => FinishReason::Other("odd".into()),
    }
}
