//! Blocks that the provider numbers and ends itself, as Anthropic's Messages and OpenAI's Responses do.

use std::collections::VecDeque;

use crate::common::{ROUND, Run, run};
use message_aggregator::{
    AggregatorSettings, Block, BlockContent, Chunk, Citation, Delta, DeltaKind, FinishReason,
    MessageAggregator, ToolCallDelta,
};
use proptest::collection::vec;
use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

fn text(number: i64, text: &str) -> Delta {
    Delta::text(text).with_block(number)
}

fn end(number: i64) -> Delta {
    Delta::from(DeltaKind::BlockEnd).with_block(number)
}

fn call(number: i64) -> Delta {
    Delta::tool_call(ToolCallDelta::start(number, format!("c{number}"), "look"))
}

fn arguments(number: i64, text: &str) -> Delta {
    Delta::from(DeltaKind::Arguments { index: Some(number), text: text.into() }).with_block(number)
}

fn citation(title: &str) -> Delta {
    let mut citation = Citation::default();
    citation.title = Some(title.into());
    DeltaKind::Citation(Box::new(citation)).into()
}

fn finished(deltas: impl IntoIterator<Item = Delta>) -> Run {
    let run =
        run(AggregatorSettings::default(), deltas.into_iter().chain([Delta::finish(FinishReason::Stop)]));
    assert_eq!(run.error, None);
    run.assert_lawful();
    run
}

fn line(block: &Block) -> String {
    match block.content() {
        BlockContent::Text(text) => text.clone(),
        BlockContent::Reasoning(text) => format!("({text})"),
        BlockContent::ToolCall(call) => {
            format!("{} {}{}", call.id, call.arguments, if call.complete { "" } else { "…" })
        }
        BlockContent::Citation(citation) => format!("[{}]", citation.title.as_deref().unwrap_or_default()),
        other => panic!("{other:?}"),
    }
}

fn blocks(run: &Run) -> Vec<String> {
    run.response.blocks().map(|(_, block)| line(block)).collect()
}

/// The order in which blocks open, grow (once for several pieces) and close.
fn events(run: &Run) -> String {
    let mut events: Vec<String> = Vec::new();
    for chunk in &run.chunks {
        let event = match chunk {
            Chunk::Opened { block, .. } => format!("+{}", block.position()),
            Chunk::Delta { block, .. } => format!("{}", block.position()),
            Chunk::Closed { block, .. } => format!("-{}", block.position()),
            other => panic!("{other:?}"),
        };
        if events.last() != Some(&event) {
            events.push(event);
        }
    }
    events.join(" ")
}

/// Anthropic numbers all blocks, calls included, and sends one after the other.
#[test]
fn sequential_blocks_share_numbers_with_calls() {
    let run = finished([
        Delta::reasoning("hm").with_block(0),
        end(0),
        text(1, "Let me "),
        text(1, "look."),
        end(1),
        call(2),
        arguments(2, "{\"a\""),
        arguments(2, ":1}"),
        end(2),
        text(3, "And "),
        text(3, "then."),
        end(3),
        call(4),
        end(4),
    ]);
    assert_eq!(blocks(&run), ["(hm)", "Let me look.", "c2 {\"a\":1}", "And then.", "c4 "]);
    assert_eq!(events(&run), "+0 0 -0 +1 1 -1 +2 2 -2 +3 3 -3 +4 -4");
}

/// Some gateways interleave blocks, and end them in any order.
#[test]
fn numbered_blocks_stay_open_until_provider_ends_them() {
    let run = finished([
        text(0, "one"),
        call(1),
        arguments(1, "{\"a\""),
        text(0, " more"),
        text(2, "other"),
        arguments(1, ":1}"),
        text(0, "."),
        end(1),
        end(0),
        end(2),
        end(7),
    ]);
    assert_eq!(blocks(&run), ["one more.", "c1 {\"a\":1}", "other"]);
    assert_eq!(events(&run), "+0 0 +1 1 0 +2 2 1 0 -1 -0 -2");
}

/// A number may be used again, or for a text and a call: the last block with it is the one meant.
#[test]
fn end_of_number_means_its_last_block() {
    let run =
        finished([text(0, "a"), end(0), text(0, "b"), call(0), arguments(0, "{\"a\":1}"), end(0), end(0)]);
    assert_eq!(blocks(&run), ["a", "b", "c0 {\"a\":1}"]);
    assert_eq!(events(&run), "+0 0 -0 +1 1 +2 2 -2 -1");
    let run = finished([call(0), arguments(0, "{\"a\":1}"), text(0, "b"), end(0), Delta::text("c")]);
    assert_eq!(events(&run), "+0 0 +1 1 -1 +2 2 -0 -2");
}

#[test]
fn citation_leaves_text_open() {
    let cited = [
        text(0, "Terns "),
        citation("birds").with_block(0),
        text(0, "migrate"),
        text(0, " far"),
        citation("seas").with_block(0),
        citation("ice").with_block(0),
        text(0, "."),
        end(0),
        text(1, "So."),
    ];
    let run = finished(cited);
    assert_eq!(blocks(&run), ["Terns migrate far.", "[birds]", "[seas]", "[ice]", "So."]);
    assert_eq!(events(&run), "+0 0 +1 1 -1 0 +2 2 -2 +3 3 -3 0 -0 +4 4 -4");
    let unnumbered = [
        Delta::reasoning("Hm"),
        citation("hm"),
        Delta::text("Mal"),
        citation("birds"),
        citation("seas"),
        Delta::text("lory"),
        Delta::from(DeltaKind::BlockEnd),
        citation("ice"),
        Delta::text("So."),
    ];
    let run = finished(unnumbered);
    assert_eq!(blocks(&run), ["(Hm)", "[hm]", "Mallory", "[birds]", "[seas]", "[ice]", "So."]);
    assert_eq!(events(&run), "+0 0 +1 1 -1 -0 +2 2 +3 3 -3 +4 4 -4 2 -2 +5 5 -5 +6 6 -6");
}

#[test]
fn unnumbered_text_ends_when_numbered_one_goes_on() {
    let run = finished([text(0, "a"), Delta::text("b"), text(0, "c"), Delta::text("d")]);
    assert_eq!(blocks(&run), ["ac", "b", "d"]);
    assert_eq!(events(&run), "+0 0 +1 1 -1 0 +2 2 -0 -2");
}

proptest! {
    /// However the pieces of numbered texts interleave, each goes to its text, in a chunk of its own.
    #[test]
    fn law_s4_interleaved_numbered_texts_stay_whole(pieces in vec((0_i64..3, "[a-z]{1,3}"), 0..30)) {
        let mut aggregator = MessageAggregator::new(ROUND);
        let mut chunks = VecDeque::new();
        let mut texts: Vec<(i64, String)> = Vec::new();
        for (number, piece) in &pieces {
            aggregator.push(text(*number, piece), &mut chunks).unwrap();
            let shown = chunks.pop_back();
            prop_assert_eq!(shown.as_ref().and_then(Chunk::text), Some(piece.as_str()));
            match texts.iter_mut().find(|(known, _)| known == number) {
                Some((_, text)) => text.push_str(piece),
                None => texts.push((*number, piece.clone())),
            }
        }
        prop_assert!(chunks.iter().all(|chunk| matches!(chunk, Chunk::Opened { .. })), "none has ended");
        aggregator.push(Delta::done(), &mut chunks).unwrap();
        let response = aggregator.finish(&mut chunks).unwrap();
        let found: Vec<_> = response.blocks().map(|(_, block)| line(block)).collect();
        prop_assert_eq!(found, texts.into_iter().map(|(_, text)| text).collect::<Vec<_>>());
    }
}
