//! Data that a provider wants back with a block: the block it belongs to, in the response and in the closed chunk.

use crate::common::{Run, run};
use message_aggregator::{
    AggregatorSettings, BlockContent, BlockKind, Chunk, Delta, DeltaKind, FinishReason, Media, MediaDelta,
    Opaque, ProviderData, ToolCallDelta,
};
use serde_json::json;

fn value(name: &str) -> ProviderData {
    ProviderData::new("some-api", json!(name))
}

fn data(name: &str) -> Delta {
    DeltaKind::BlockData(Box::new(value(name))).into()
}

fn reasoning_data(name: &str) -> Delta {
    DeltaKind::ReasoningData(Box::new(value(name))).into()
}

fn end() -> Delta {
    DeltaKind::BlockEnd.into()
}

fn call(index: i64) -> Delta {
    Delta::tool_call(ToolCallDelta::start(index, format!("c{index}"), "look").with_arguments("{\"a\":1}"))
}

fn image() -> Media {
    Media::from_bytes("image/png", vec![1])
}

fn media() -> Delta {
    Delta::media(image())
}

fn opaque() -> Delta {
    DeltaKind::Opaque(Box::new(Opaque::new("some-api", "search", json!({})))).into()
}

fn finished(deltas: impl IntoIterator<Item = Delta>) -> Run {
    let run =
        run(AggregatorSettings::default(), deltas.into_iter().chain([Delta::finish(FinishReason::Stop)]));
    assert_eq!(run.error, None);
    run.assert_lawful();
    run
}

/// The blocks of the response: kind and text of each, with the names of its data.
fn blocks(run: &Run) -> Vec<String> {
    run.response.blocks().map(|(_, block)| line(block)).collect()
}

/// The same of the closed chunks, in their order.
fn closed(run: &Run) -> Vec<String> {
    let closed = run.chunks.iter().filter_map(|chunk| match chunk {
        Chunk::Closed { content, .. } => Some(content),
        _ => None,
    });
    closed.map(line).collect()
}

fn line(block: &message_aggregator::Block) -> String {
    let text = match block.content() {
        BlockContent::Text(text) | BlockContent::Reasoning(text) | BlockContent::Refusal(text) => text,
        _ => "",
    };
    let data: Vec<_> = block.provider_data().iter().filter_map(|data| data.value.as_str()).collect();
    format!("{:?} {text:?} {}", block.kind(), data.join(" "))
}

#[test]
fn numbered_data_belongs_to_its_block_of_any_kind() {
    let run = finished([
        Delta::reasoning("hm").with_block(0),
        Delta::text("so").with_block(1),
        call(2),
        Delta::from(DeltaKind::Refusal("no".into())).with_block(3),
        media().with_block(4),
        opaque().with_block(5),
        data("r").with_block(0),
        data("t").with_block(1),
        data("c").with_block(2),
        data("f").with_block(3),
        data("m").with_block(4),
        data("o").with_block(5),
        Delta::text(", then").with_block(1),
        data("again").with_block(1),
        end().with_block(3),
        data("late").with_block(3),
    ]);
    assert_eq!(
        blocks(&run),
        [
            "Reasoning \"hm\" r", "Text \"so, then\" t again", "ToolCall \"\" c", "Refusal \"no\" f late",
            "Media \"\" m", "Opaque \"\" o",
        ]
    );
    // Media and opaque content close at once; later data is in the response.
    assert_eq!(
        closed(&run),
        [
            "Media \"\" ", "Opaque \"\" ", "Refusal \"no\" f", "Reasoning \"hm\" r",
            "Text \"so, then\" t again", "ToolCall \"\" c",
        ]
    );
}

/// Data that came with media is on its closed block, so it survives a stream that is cut or dropped.
#[test]
fn law_s4_closed_media_has_data_that_came_with_it() {
    let signed = || Delta::media(MediaDelta { media: image(), provider_data: Some(value("s")) });
    for deltas in [vec![signed()], vec![Delta::text("a"), signed(), Delta::text("b")]] {
        let run = finished(deltas);
        assert_eq!(closed(&run), blocks(&run));
        assert!(closed(&run).contains(&"Media \"\" s".to_owned()));
    }
    let late = finished([signed().with_block(1), data("late").with_block(1)]);
    assert_eq!(
        (closed(&late), blocks(&late)),
        (vec!["Media \"\" s".into()], vec!["Media \"\" s late".into()])
    );
    let cut = run(AggregatorSettings::default(), [signed()]);
    cut.assert_lawful();
    assert_eq!(blocks(&cut), ["Media \"\" s"], "the partial answer has it");
}

#[test]
fn data_without_number_belongs_to_current_block() {
    let run = finished([
        Delta::reasoning("hm"),
        data("r"),
        Delta::text("so"),
        data("t1"),
        Delta::text(" on"),
        data("t2"),
        call(0),
        data("c"),
        media(),
        data("m"),
        Delta::text("done"),
        data("t3"),
    ]);
    let expected =
        ["Reasoning \"hm\" r", "Text \"so on\" t1 t2", "ToolCall \"\" c", "Media \"\" m", "Text \"done\" t3"];
    assert_eq!(blocks(&run), expected);
    assert!(closed(&run).contains(&expected[1].to_owned()), "the closed block has its data");
}

/// Gemini sends a signature on a part with empty text, and wants it back on such a part.
#[test]
fn data_of_empty_part_has_block_of_its_own() {
    for next in [vec![], vec![Delta::text("b")], vec![call(0)]] {
        let deltas = [Delta::text("a"), end(), data("s"), end()];
        let run = finished(deltas.into_iter().chain(next));
        assert_eq!(blocks(&run)[..2], ["Text \"a\" ", "Text \"\" s"]);
        assert_eq!(closed(&run)[..2], blocks(&run)[..2]);
    }
    let run = finished([data("s"), Delta::text("a")]);
    assert_eq!(blocks(&run), ["Text \"a\" s"], "text extends an open block");
    let run = finished([data("s").with_block(4), Delta::text("a").with_block(4)]);
    assert_eq!(blocks(&run), ["Text \"a\" s"], "also by its number");
}

#[test]
fn unnumbered_end_ends_the_current_call() {
    let run = finished([call(0), end(), data("s"), Delta::text("a")]);
    assert_eq!(blocks(&run), ["ToolCall \"\" ", "Text \"a\" s"]);
    assert!(run.response.tool_calls().all(|(_, call)| call.complete));
    assert_eq!(closed(&run)[0], "ToolCall \"\" ", "before the text");
}

#[test]
fn reasoning_data_belongs_to_reasoning_even_when_late() {
    let run = finished([
        Delta::reasoning("hm").with_block(0),
        end().with_block(0),
        Delta::text("so").with_block(1),
        reasoning_data("s").with_block(0),
        reasoning_data("own").with_block(2),
    ]);
    assert_eq!(blocks(&run), ["Reasoning \"hm\" s", "Text \"so\" ", "Reasoning \"\" own"]);
    let kinds: Vec<_> = run.response.blocks().map(|(_, block)| block.kind()).collect();
    assert_eq!(kinds, [BlockKind::Reasoning, BlockKind::Text, BlockKind::Reasoning]);
}
