use std::collections::BTreeMap;

use advisor_core::{BlockDelta, BlockId, BlockKind, Chunk, ErrorKind};
use advisor_sse::{ChatDetail, ChatEvents, Encoder, Failure, Frames};
use serde::Serialize;

use crate::markdown::live::{LiveMarkdown, Rendered};

/// The page's events: [`ChatEvents`] with blocks, `rendered` with the elements of finished pieces of Markdown, and
/// `stopped` in place of the error of a cancelled turn.
#[derive(Debug, Default)]
pub(in crate::routes) struct PageEvents {
    events: ChatEvents,
    /// The texts that stream.
    texts: BTreeMap<BlockId, LiveMarkdown>,
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
        Self { events: ChatEvents::new().with_detail(ChatDetail::Blocks), texts: BTreeMap::new() }
    }

    fn rendered(&self, block: BlockId, rendered: Option<Rendered>, frames: &mut Frames) {
        if let Some(rendered) = rendered.filter(Rendered::has_elements) {
            frames.data(&Event::Rendered { block: &self.events.block_id(block), rendered: &rendered });
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
        self.events.chunk(chunk, frames);
        match chunk {
            // Parallel answers are not shown.
            Chunk::Opened { block, head }
                if head.choice == 0 && matches!(head.kind, BlockKind::Text | BlockKind::Refusal) =>
            {
                self.texts.insert(*block, LiveMarkdown::default());
            }
            Chunk::Delta { block, delta: BlockDelta::Text(piece) | BlockDelta::Refusal(piece) } => {
                let rendered = self.texts.get_mut(block).and_then(|text| text.push(piece));
                self.rendered(*block, rendered, frames);
            }
            Chunk::Closed { block, .. } => self.close(*block, frames),
            Chunk::AttemptRestarted { round } => self.texts.retain(|block, _| block.round != *round),
            _ => {}
        }
    }

    fn failure(&mut self, failure: &Failure, frames: &mut Frames) {
        let open: Vec<_> = self.texts.keys().copied().collect();
        for block in open {
            self.close(block, frames);
        }
        if failure.kind() == ErrorKind::Cancelled {
            frames.data(&Event::Stopped);
            frames.done();
        } else {
            self.events.failure(failure, frames);
        }
    }
}
