//! Shared parts of the tests: running an aggregator to its end, and the laws that every run must keep.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::panic,
    reason = "the fuzz targets use a part of it, and a test may panic"
)]

use std::collections::{BTreeMap, VecDeque};

use message_aggregator::{
    AggregateError, AggregatorSettings, Block, BlockDelta, BlockId, BlockKind, ChatResponse, Chunk,
    ChunkFold, Delta, MessageAggregator,
};

/// The round of every run.
pub(crate) const ROUND: u32 = 1;

/// The result of a sequence of deltas.
pub(crate) struct Run {
    pub(crate) chunks: Vec<Chunk>,
    /// The response, or its part before the error.
    pub(crate) response: ChatResponse,
    pub(crate) error: Option<AggregateError>,
}

/// Pushes all deltas and ends the answer.
pub(crate) fn run(settings: AggregatorSettings, deltas: impl IntoIterator<Item = Delta>) -> Run {
    let mut aggregator = MessageAggregator::with_settings(ROUND, settings);
    let mut chunks = VecDeque::new();
    for delta in deltas {
        if let Err(error) = aggregator.push(delta, &mut chunks) {
            return Run { chunks: chunks.into(), response: aggregator.partial(), error: Some(error) };
        }
    }
    let partial = aggregator.partial();
    let (response, error) = match aggregator.finish(&mut chunks) {
        Ok(response) => (response, None),
        Err(error) => (partial, Some(error)),
    };
    Run { chunks: chunks.into(), response, error }
}

/// As [`run`], for deltas that make a response.
pub(crate) fn complete(
    settings: AggregatorSettings,
    deltas: impl IntoIterator<Item = Delta>,
) -> ChatResponse {
    let run = run(settings, deltas);
    assert_eq!(run.error, None);
    run.response
}

/// Settings with the eager rule.
pub(crate) fn eager() -> AggregatorSettings {
    AggregatorSettings { eager_calls: true, ..AggregatorSettings::default() }
}

impl Run {
    /// Both laws that chunks of one answer can keep or break.
    pub(crate) fn assert_lawful(&self) {
        self.assert_well_formed();
        self.assert_conserved();
    }

    /// Law S3: blocks open before they are extended, are extended before they close, and all close in
    /// the end, each once.
    pub(crate) fn assert_well_formed(&self) {
        let blocks = well_formed(&self.chunks);
        if self.error.is_none() {
            self.assert_all_closed(&blocks);
        }
    }

    /// Law S4: checks that the blocks of the chunks equal those of the response.
    pub(crate) fn assert_conserved(&self) {
        let blocks = well_formed(&self.chunks);
        let mut fold = ChunkFold::default();
        self.chunks.iter().for_each(|chunk| fold.push(chunk));
        for (id, block) in self.response.blocks() {
            let Some(folded) = fold.block(id) else {
                assert_unnamed(block);
                continue;
            };
            // The fold has the ids of the heads.
            let [head, call] = [&folded, block].map(|block| block.as_tool_call().map(|call| &call.id));
            assert_eq!(head, call, "{id}");
            if self.error.is_none() {
                assert_eq!(folded.content(), block.content(), "{id}");
                let closed = blocks.get(&id).and_then(|seen| seen.closed.as_ref()).unwrap();
                assert_eq!(closed.content(), block.content(), "{id}");
            }
            // Provider data may come after the end of its block; then only the response has all of it.
            let data = block.provider_data();
            assert!(data.starts_with(folded.provider_data()), "{id}");
        }
        assert_eq!(fold.text(ROUND), self.response.text());
        let ids: Vec<_> = fold.blocks(ROUND).into_iter().map(|(id, _)| id).collect();
        let expected: Vec<_> = self.response.blocks().map(|(id, _)| id).collect();
        assert!(ids.iter().all(|id| expected.contains(id)), "{ids:?} of {expected:?}");
        assert!(expected.is_sorted(), "blocks stand in the order of first appearance");
        assert_eq!(expected.len(), self.response.message().blocks().len());
    }

    fn assert_all_closed(&self, blocks: &BTreeMap<BlockId, Seen>) {
        let closed: Vec<_> =
            blocks.iter().filter(|(_, seen)| seen.closed.is_some()).map(|(id, _)| *id).collect();
        let mut expected: Vec<_> = self.response.blocks().map(|(id, _)| id).collect();
        expected.sort();
        assert_eq!(closed, expected, "every block of the response has ended, and no other");
    }
}

/// Only a call that still waited for its name when the answer was cut has shown nothing.
fn assert_unnamed(block: &Block) {
    let call = block.as_tool_call().unwrap();
    assert!(!call.complete);
    assert_eq!(call.name, message_aggregator::ToolCall::UNNAMED);
}

struct Seen {
    kind: BlockKind,
    closed: Option<Block>,
}

/// The blocks that `chunks` open, once it is certain that they do so in order.
fn well_formed(chunks: &[Chunk]) -> BTreeMap<BlockId, Seen> {
    let mut blocks = BTreeMap::<BlockId, Seen>::new();
    for (at, chunk) in chunks.iter().enumerate() {
        assert_eq!(chunk.round(), ROUND);
        match chunk {
            Chunk::Opened { block, head } => {
                assert_eq!(head.kind == BlockKind::ToolCall, head.call.is_some());
                let seen = Seen { kind: head.kind, closed: None };
                assert!(blocks.insert(*block, seen).is_none(), "{block} opened twice");
            }
            Chunk::Delta { block, delta } => {
                let seen = blocks.get(block).unwrap_or_else(|| panic!("{block} never opened"));
                assert!(seen.closed.is_none(), "{block} extended after its end");
                assert_eq!(kind_of(delta), seen.kind);
            }
            Chunk::Closed { block, content } => {
                let seen = blocks.get_mut(block).unwrap_or_else(|| panic!("{block} never opened"));
                assert_eq!(content.kind(), seen.kind);
                assert!(seen.closed.replace(content.clone()).is_none(), "{block} closed twice");
            }
            Chunk::Usage { .. } => assert_eq!(at, chunks.len() - 1, "usage comes once, last"),
            other => panic!("an aggregator does not make {other:?}"),
        }
    }
    blocks
}

/// The kind of block that `delta` extends; text that says nothing is never shown.
fn kind_of(delta: &BlockDelta) -> BlockKind {
    let (kind, text) = match delta {
        BlockDelta::Text(text) => (BlockKind::Text, Some(text)),
        BlockDelta::Reasoning(text) => (BlockKind::Reasoning, Some(text)),
        BlockDelta::Refusal(text) => (BlockKind::Refusal, Some(text)),
        BlockDelta::Arguments(text) => (BlockKind::ToolCall, Some(text)),
        BlockDelta::Media(_) => (BlockKind::Media, None),
        BlockDelta::Citation(_) => (BlockKind::Citation, None),
        BlockDelta::Opaque(_) => (BlockKind::Opaque, None),
        other => panic!("a delta of an unknown kind: {other:?}"),
    };
    assert!(text.is_none_or(|text| !text.is_empty()));
    kind
}
