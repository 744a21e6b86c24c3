//! `View`: the parts of a conversation or of a turn that a client shows. `PageEvents`: the events of the page, with the
//! elements of finished Markdown.

use std::collections::BTreeMap;

use advisor_core::{BlockDelta, BlockId, BlockKind, Chunk, ErrorKind};
use advisor_sse::{ChatEvents, Encoder, Failure, Frames};
use serde::{Deserialize, Serialize};

use crate::markdown::live::{LiveMarkdown, Rendered};

/// The query of a route for plain clients and the page.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::routes) struct Wanted {
    #[serde(default)]
    pub(in crate::routes) view: View,
}

/// The parts of a conversation or of a turn that a client shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::routes) enum View {
    /// Text and calls.
    #[default]
    Answer,
    /// All parts that the page shows: also reasoning, the blocks of each answer in their order, and Markdown as elements.
    Page,
}

impl View {
    /// Returns the encoder of a turn.
    pub(in crate::routes) fn encoder(self) -> Box<dyn Encoder> {
        match self {
            Self::Answer => Box::new(ChatEvents::default()),
            Self::Page => Box::new(PageEvents::new()),
        }
    }
}

/// The page's events: [`ChatEvents`] with blocks, `rendered` with the elements of finished pieces of Markdown, and
/// `stopped` in place of the error of a cancelled turn.
#[derive(Debug, Default)]
pub(in crate::routes) struct PageEvents {
    events: ChatEvents,
    /// The texts that stream.
    texts: BTreeMap<BlockId, LiveMarkdown>,
    /// The text whose last block is closed. A further block of text continues it; anything else ends it.
    closed: Option<(BlockId, BlockKind)>,
    /// The blocks that continue a text, and the first block of that text.
    further: BTreeMap<BlockId, BlockId>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event<'a> {
    Rendered {
        block: &'a str,
        #[serde(flatten)]
        rendered: &'a Rendered,
    },
    Stopped,
}

impl PageEvents {
    pub(in crate::routes) fn new() -> Self {
        Self { events: ChatEvents::default().with_blocks(), ..Self::default() }
    }

    fn rendered(&self, block: BlockId, rendered: Option<Rendered>, frames: &mut Frames) {
        if let Some(rendered) = rendered.filter(Rendered::has_elements) {
            frames.data(&Event::Rendered { block: &self.events.block_id(block), rendered: &rendered });
        }
    }

    /// Returns the first block of the text of a block.
    fn first_of(&self, block: BlockId) -> BlockId {
        self.further.get(&block).copied().unwrap_or(block)
    }

    /// Ends the text whose last block is closed.
    fn end_closed(&mut self, frames: &mut Frames) {
        if let Some((block, _)) = self.closed.take() {
            self.close(block, frames);
        }
    }

    fn close(&mut self, block: BlockId, frames: &mut Frames) {
        if let Some(text) = self.texts.remove(&block) {
            self.rendered(block, text.close(), frames);
        }
    }
}

impl Encoder for PageEvents {
    fn begin(&mut self, frames: &mut Frames) {
        self.events.begin(frames);
    }

    fn chunk(&mut self, chunk: &Chunk, frames: &mut Frames) {
        match chunk {
            Chunk::Delta { block, delta: delta @ (BlockDelta::Text(piece) | BlockDelta::Refusal(piece)) } => {
                let block = self.first_of(*block);
                self.events.chunk(&Chunk::Delta { block, delta: delta.clone() }, frames);
                let rendered = self.texts.get_mut(&block).and_then(|text| text.push(piece));
                return self.rendered(block, rendered, frames);
            }
            Chunk::Opened { block, head } if matches!(head.kind, BlockKind::Text | BlockKind::Refusal) => {
                match self.closed {
                    Some((text, kind)) if text.round == block.round && kind == head.kind => {
                        self.closed = None;
                        self.further.insert(*block, text);
                    }
                    _ => {
                        self.end_closed(frames);
                        self.texts.insert(*block, LiveMarkdown::default());
                    }
                }
            }
            Chunk::Closed { block, content } if self.texts.contains_key(&self.first_of(*block)) => {
                self.end_closed(frames);
                self.closed = Some((self.first_of(*block), content.kind()));
            }
            Chunk::AttemptRestarted { round } => {
                self.closed = None;
                self.texts.retain(|block, _| block.round != *round);
                self.further.retain(|block, _| block.round != *round);
            }
            // A source is cited in the middle of a sentence.
            Chunk::Opened { head, .. } if head.kind == BlockKind::Citation => {}
            Chunk::Delta { delta: BlockDelta::Citation(_), .. } | Chunk::Usage { .. } => {}
            Chunk::Closed { content, .. } if content.kind() == BlockKind::Citation => {}
            _ => self.end_closed(frames),
        }
        self.events.chunk(chunk, frames);
    }

    fn failure(&mut self, failure: &Failure, frames: &mut Frames) {
        let open: Vec<_> = self.texts.keys().copied().collect();
        for block in open {
            self.close(block, frames);
        }
        if failure.kind == ErrorKind::Cancelled {
            frames.data(&Event::Stopped);
            frames.done();
        } else {
            self.events.failure(failure, frames);
        }
    }
}
