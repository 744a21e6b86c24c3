use std::collections::VecDeque;

use advisor_core::{BlockHead, BlockId, BlockKind, ToolCall};
use serde_json::{Value, json};

use crate::Frames;
use crate::shared::turn::ClientCall;

/// The content blocks of a message, of which one is open at a time. The pieces of a block that opens meanwhile follow
/// when the earlier one has closed.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// The blocks that are not written completely, in the order of their opening. The first one has begun.
    queue: VecDeque<Pending>,
    /// The number of blocks that have begun.
    begun: usize,
}

#[derive(Debug)]
enum Pending {
    /// A block that comes in pieces.
    Streamed { block: BlockId, kind: Kind, text: String, progress: Progress },
    /// A block without pieces.
    Whole(Value),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Open,
    Closed,
}

impl Kind {
    fn new(kind: BlockKind) -> Option<Self> {
        match kind {
            BlockKind::Text | BlockKind::Refusal => Some(Self::Text),
            BlockKind::Reasoning => Some(Self::Thinking),
            _ => None,
        }
    }

    fn start(self) -> Value {
        match self {
            Self::Text => json!({"type": "text", "text": ""}),
            Self::Thinking => json!({"type": "thinking", "thinking": "", "signature": ""}),
        }
    }

    fn piece(self, text: &str) -> Value {
        match self {
            Self::Text => json!({"type": "text_delta", "text": text}),
            Self::Thinking => json!({"type": "thinking_delta", "thinking": text}),
        }
    }
}

impl Blocks {
    /// Opens a block of text or reasoning. Other kinds are not written.
    pub(super) fn open(&mut self, block: BlockId, head: &BlockHead, frames: &mut Frames) {
        if let Some(kind) = Kind::new(head.kind) {
            self.add(
                Pending::Streamed { block, kind, text: String::new(), progress: Progress::Open },
                frames,
            );
        }
    }

    /// Extends a block.
    pub(super) fn delta(&mut self, block: BlockId, piece: &str, frames: &mut Frames) {
        let is_it =
            |pending: &Pending| matches!(pending, Pending::Streamed { block: of, .. } if *of == block);
        match self.queue.iter_mut().enumerate().find(|(_, pending)| is_it(pending)) {
            Some((0, Pending::Streamed { kind, .. })) => {
                let piece = kind.piece(piece);
                self.write_piece(&piece, frames);
            }
            Some((_, Pending::Streamed { text, .. })) => text.push_str(piece),
            _ => {}
        }
    }

    /// Closes a block.
    pub(super) fn close(&mut self, block: BlockId, frames: &mut Frames) {
        for pending in &mut self.queue {
            match pending {
                Pending::Streamed { block: of, progress, .. } if *of == block => *progress = Progress::Closed,
                _ => {}
            }
        }
        if matches!(self.queue.front(), Some(Pending::Streamed { progress: Progress::Closed, .. })) {
            self.stop(frames);
            self.queue.pop_front();
            self.begin_next(frames);
        }
    }

    /// Closes all blocks.
    pub(super) fn close_all(&mut self, frames: &mut Frames) {
        let open = self.queue.iter().filter_map(|pending| match pending {
            Pending::Streamed { block, .. } => Some(*block),
            Pending::Whole(_) => None,
        });
        for block in open.collect::<Vec<_>>() {
            self.close(block, frames);
        }
    }

    /// Adds a block without pieces.
    pub(super) fn whole(&mut self, block: Value, frames: &mut Frames) {
        self.add(Pending::Whole(block), frames);
    }

    /// Writes a call of the client, behind all other blocks.
    pub(super) fn call(&mut self, call: &ClientCall, frames: &mut Frames) {
        let block = json!({"type": "tool_use", "id": call.id, "name": call.call.name, "input": {}});
        self.start(&block, frames);
        let arguments = call.call.arguments.trim();
        let arguments = if ToolCall::gives_none(arguments) { "{}" } else { arguments };
        self.write_piece(&json!({"type": "input_json_delta", "partial_json": arguments}), frames);
        self.stop(frames);
    }

    fn add(&mut self, pending: Pending, frames: &mut Frames) {
        self.queue.push_back(pending);
        if self.queue.len() == 1 {
            self.begin_next(frames);
        }
    }

    /// Begins the first block, and writes all blocks before the first one that is still open.
    fn begin_next(&mut self, frames: &mut Frames) {
        while let Some(pending) = self.queue.pop_front() {
            match pending {
                Pending::Whole(block) => {
                    self.start(&block, frames);
                    self.stop(frames);
                }
                Pending::Streamed { block, kind, text, progress } => {
                    self.start(&kind.start(), frames);
                    if !text.is_empty() {
                        self.write_piece(&kind.piece(&text), frames);
                    }
                    if progress == Progress::Open {
                        let text = String::new();
                        return self.queue.push_front(Pending::Streamed { block, kind, text, progress });
                    }
                    self.stop(frames);
                }
            }
        }
    }

    fn start(&mut self, block: &Value, frames: &mut Frames) {
        let start = json!({"type": "content_block_start", "index": self.begun, "content_block": block});
        frames.named("content_block_start", &start);
        self.begun += 1;
    }

    fn write_piece(&self, delta: &Value, frames: &mut Frames) {
        let delta = json!({"type": "content_block_delta", "index": self.index(), "delta": delta});
        frames.named("content_block_delta", &delta);
    }

    fn stop(&self, frames: &mut Frames) {
        frames.named("content_block_stop", &json!({"type": "content_block_stop", "index": self.index()}));
    }

    /// Returns the number of the last block that has begun.
    fn index(&self) -> usize {
        self.begun.saturating_sub(1)
    }
}
