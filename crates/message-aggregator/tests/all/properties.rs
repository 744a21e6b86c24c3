//! Tests of properties that hold for any sequence of deltas.

use std::collections::{BTreeSet, VecDeque};

use crate::arbitrary::deltas;
use crate::common::{ROUND, Run, run};
use message_aggregator::{
    AggregateError, AggregatorLimits, AggregatorSettings, BlockContent, Chunk, ChunkFold, Delta, DeltaKind,
    FinishReason, MessageAggregator, Text, ToolCallDelta,
};
use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, proptest};

fn settings() -> impl Strategy<Value = AggregatorSettings> {
    (any::<bool>(), any::<bool>()).prop_map(|(eager, tight)| {
        let tight_limits =
            AggregatorLimits { answer_bytes: 100, block_bytes: 30, blocks: 8, calls: 3, provider_data: 2 };
        let limits = if tight { tight_limits } else { AggregatorLimits::default() };
        AggregatorSettings { limits, eager_calls: eager, ..AggregatorSettings::default() }
    })
}

proptest! {
    #[test]
    fn law_s3_blocks_are_well_formed(settings in settings(), deltas in deltas(), ended in any::<bool>()) {
        run(settings, deltas.into_iter().chain(ended.then(Delta::done))).assert_well_formed();
    }

    #[test]
    fn law_s4_chunks_fold_to_the_response(settings in settings(), deltas in deltas(), ended in any::<bool>()) {
        run(settings, deltas.into_iter().chain(ended.then(Delta::done))).assert_conserved();
    }

    #[test]
    fn readable_state_mid_answer_equals_emitted_chunks(settings in settings(), deltas in deltas()) {
        let mut aggregator = MessageAggregator::with_settings(ROUND, settings);
        let mut chunks = VecDeque::new();
        let mut fold = ChunkFold::default();
        let mut ended = BTreeSet::new();
        for delta in deltas {
            // It stays readable after an error, and takes more.
            let _ = aggregator.push(delta, &mut chunks);
            for chunk in chunks.drain(..) {
                fold.push(&chunk);
                if let Chunk::Closed { block, .. } = chunk {
                    ended.insert(block);
                }
            }
            let partial = aggregator.partial();
            prop_assert_eq!(partial.text(), fold.text(ROUND));
            prop_assert_eq!(&partial.finish.reason, &FinishReason::Interrupted);
            for (block, call) in partial.tool_calls() {
                let has_ended = ended.contains(&block);
                prop_assert!(has_ended || !call.complete, "only an ended call is complete");
            }
        }
    }

    #[test]
    fn every_call_has_name_and_unique_id(settings in settings(), deltas in deltas()) {
        let response = run(settings, deltas).response;
        let calls: Vec<_> = response.message().tool_calls().collect();
        let ids: BTreeSet<_> = calls.iter().map(|call| &call.id).collect();
        prop_assert_eq!(ids.len(), calls.len());
        prop_assert!(calls.iter().all(|call| !call.id.is_empty() && !call.name.is_empty()));
    }

    #[test]
    fn law_r1_no_answer_is_larger_than_its_bounds(settings in settings(), deltas in deltas()) {
        let limits = settings.limits;
        let Run { response, .. } = run(settings, deltas);
        let blocks = response.message().blocks();
        prop_assert!(response.tool_calls().count() <= limits.calls);
        prop_assert!(blocks.iter().all(|block| block.provider_data().len() <= limits.provider_data));
        prop_assert!(blocks.iter().all(|block| bytes(block.content()) <= limits.block_bytes));
        prop_assert!(blocks.iter().map(|block| bytes(block.content())).sum::<usize>() <= limits.answer_bytes);
        prop_assert!(blocks.len() <= limits.blocks);
    }

    #[test]
    fn text_is_visible_at_once_unless_empty(settings in settings(), deltas in deltas()) {
        let mut aggregator = MessageAggregator::with_settings(ROUND, settings);
        let mut done = false;
        for delta in deltas {
            let mut chunks = VecDeque::new();
            let kind = delta.kind.clone();
            if aggregator.push(delta, &mut chunks).is_err() {
                break;
            }
            if let DeltaKind::Text(text) = &kind {
                let expected = Some(text.as_str()).filter(|text| !text.is_empty() && !done);
                prop_assert_eq!(chunks.back().and_then(Chunk::text), expected);
            }
            done |= kind == DeltaKind::Done;
        }
    }

    #[test]
    fn after_the_end_marker_nothing_changes_the_message(
        settings in settings(),
        before in deltas(),
        after in deltas(),
    ) {
        let ended = || before.iter().cloned().chain([Delta::done()]);
        let first = run(settings.clone(), ended());
        let second = run(settings, ended().chain(after));
        prop_assert_eq!(first.response.message(), second.response.message());
        prop_assert_eq!(&first.response.finish, &second.response.finish);
        prop_assert_eq!(first.error, second.error);
    }

    #[test]
    fn numbered_calls_come_together_however_they_interleave(
        pieces in vec((0_usize..4, "[a-z:,\"é{]{1,6}"), 0..40),
        numbers in any::<[i64; 3]>().prop_filter("distinct", |[a, b, c]| a != b && b != c && a != c),
    ) {
        let mut deltas = Vec::new();
        let mut text = String::new();
        let mut calls: Vec<(usize, String)> = Vec::new();
        for (at, piece) in &pieces {
            // Number 0 is the text beside the calls.
            let Some(&number) = at.checked_sub(1).and_then(|at| numbers.get(at)) else {
                text.push_str(piece);
                deltas.push(Delta::text(piece.as_str()));
                continue;
            };
            let fragment = match calls.iter_mut().find(|(known, _)| known == at) {
                Some((_, arguments)) => {
                    arguments.push_str(piece);
                    ToolCallDelta::arguments(number, piece.as_str())
                }
                None => {
                    calls.push((*at, piece.clone()));
                    ToolCallDelta::start(number, format!("id{at}"), "f").with_arguments(piece.as_str())
                }
            };
            deltas.push(Delta::tool_call(fragment));
        }
        deltas.push(Delta::finish(FinishReason::ToolCalls));
        let run = run(AggregatorSettings::default(), deltas);
        prop_assert_eq!(&run.error, &None);
        run.assert_lawful();
        prop_assert_eq!(run.response.text(), text);
        let found: Vec<_> = run.response.tool_calls().map(|(_, call)| (call.id.as_str(), &call.arguments)).collect();
        let calls: Vec<_> = calls.iter().map(|(at, arguments)| (format!("id{at}"), arguments)).collect();
        let expected: Vec<_> = calls.iter().map(|(id, arguments)| (id.as_str(), *arguments)).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn arguments_alone_are_a_list_of_one_fragment(settings in settings(), deltas in deltas()) {
        let listed = run(settings.clone(), deltas.clone().into_iter().map(as_fragment));
        let alone = run(settings, deltas);
        prop_assert_eq!(alone.chunks, listed.chunks);
        prop_assert_eq!(alone.response, listed.response);
        prop_assert_eq!(alone.error, listed.error);
    }

    #[test]
    fn smaller_pieces_give_the_same_message(settings in settings(), deltas in deltas(), seed in any::<u64>()) {
        let deltas: Vec<_> = deltas.into_iter().map(without_empty_objects).collect();
        let mut cut = Cuts(seed);
        let smaller: Vec<_> = deltas.iter().flat_map(|delta| cut.delta(delta)).collect();
        let (whole, smaller) = (run(settings.clone(), deltas), run(settings, smaller));
        smaller.assert_lawful();
        // Where ids and indexes contradict each other, a name may settle it, which only the first piece has.
        if has_incomplete_call(&whole) || has_incomplete_call(&smaller) {
            return Ok(());
        }
        // Where a bound cuts the answer, smaller pieces come closer to it.
        if is_too_large(&whole) {
            prop_assert!(is_too_large(&smaller));
        } else {
            prop_assert_eq!(whole.response.message(), smaller.response.message());
        }
    }
}

fn bytes(content: &BlockContent) -> usize {
    match content {
        BlockContent::Text(text) | BlockContent::Reasoning(text) | BlockContent::Refusal(text) => text.len(),
        BlockContent::ToolCall(call) => call.arguments.len(),
        _ => 0,
    }
}

fn is_too_large(run: &Run) -> bool {
    matches!(run.error, Some(AggregateError::TooLarge { .. }))
}

fn has_incomplete_call(run: &Run) -> bool {
    run.response.tool_calls().any(|(_, call)| !call.complete)
}

/// Replaces `{}` and `{` in arguments, since the rule that drops a lone `{}` depends on their split.
fn without_empty_objects(mut delta: Delta) -> Delta {
    let texts: Vec<&mut Text> = match &mut delta.kind {
        DeltaKind::ToolCalls(fragments) => {
            fragments.iter_mut().filter_map(|fragment| fragment.arguments_delta.as_mut()).collect()
        }
        DeltaKind::Arguments { text, .. } => vec![text],
        _ => Vec::new(),
    };
    for text in texts.into_iter().filter(|text| **text == "{}" || **text == "{") {
        *text = "{\"".into();
    }
    delta
}

/// The same, with a list of fragments for arguments alone.
fn as_fragment(mut delta: Delta) -> Delta {
    if let DeltaKind::Arguments { index, text } = &delta.kind {
        let mut fragment = ToolCallDelta::default();
        (fragment.index, fragment.arguments_delta) = (*index, Some(text.clone()));
        delta.kind = DeltaKind::ToolCalls(vec![fragment]);
    }
    delta
}

/// Cuts deltas at places that a number decides.
struct Cuts(u64);

impl Cuts {
    fn delta(&mut self, delta: &Delta) -> Vec<Delta> {
        let same_place = |kind| {
            let mut piece = delta.clone();
            piece.kind = kind;
            piece
        };
        let all = |pieces: Vec<Text>, kind: fn(Text) -> DeltaKind| {
            pieces.into_iter().map(|piece| same_place(kind(piece))).collect()
        };
        match &delta.kind {
            DeltaKind::Text(text) => all(self.text(text), DeltaKind::Text),
            DeltaKind::Reasoning(text) => all(self.text(text), DeltaKind::Reasoning),
            DeltaKind::Refusal(text) => all(self.text(text), DeltaKind::Refusal),
            DeltaKind::Arguments { index, text } => {
                let piece = |text| same_place(DeltaKind::Arguments { index: *index, text });
                self.text(text).into_iter().map(piece).collect()
            }
            DeltaKind::ToolCalls(fragments) if one_or_keyed(fragments) => fragments
                .iter()
                .flat_map(|fragment| self.fragment(fragment))
                .map(|fragment| same_place(DeltaKind::ToolCalls(vec![fragment])))
                .collect(),
            _ => vec![delta.clone()],
        }
    }

    fn fragment(&mut self, fragment: &ToolCallDelta) -> Vec<ToolCallDelta> {
        let pieces = self.text(fragment.arguments_delta.as_deref().unwrap_or_default());
        let mut rest = ToolCallDelta::default();
        rest.index = fragment.index;
        rest.call_id = fragment.call_id.clone();
        let pieces = pieces.into_iter().enumerate();
        pieces
            .map(|(at, piece)| if at == 0 { fragment.clone() } else { rest.clone() }.with_arguments(piece))
            .collect()
    }

    /// One piece at least.
    fn text(&mut self, text: &str) -> Vec<Text> {
        let mut pieces = vec![String::new()];
        for character in text.chars() {
            self.0 = self.0.rotate_left(1);
            if self.0 & 1 == 1 {
                pieces.push(String::new());
            }
            pieces.last_mut().into_iter().for_each(|piece| piece.push(character));
        }
        pieces.into_iter().map(Text::from).collect()
    }
}

/// Returns whether pieces of these fragments find their calls without their position in the event.
fn one_or_keyed(fragments: &[ToolCallDelta]) -> bool {
    let has_key = |fragment: &ToolCallDelta| {
        fragment.index.is_some() || fragment.call_id.as_ref().is_some_and(|id| !id.is_empty())
    };
    match fragments {
        [] => false,
        [_] => true,
        several => several.iter().all(has_key),
    }
}
