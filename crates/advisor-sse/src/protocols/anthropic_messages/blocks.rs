//! The content blocks of a message, of which one is open at a time.

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
    /// A block that comes in pieces, with its text and citations that are not written yet.
    Streamed { block: BlockId, kind: Kind, text: String, citations: Vec<Value>, progress: Progress },
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

impl Pending {
    fn new(block: BlockId, kind: Kind) -> Self {
        let (text, citations) = (String::new(), Vec::new());
        Self::Streamed { block, kind, text, citations, progress: Progress::Open }
    }
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
            self.add(Pending::new(block, kind), frames);
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

    /// Writes a block of text that is whole.
    pub(super) fn text(&mut self, block: BlockId, text: String, frames: &mut Frames) {
        let (kind, citations) = (Kind::Text, Vec::new());
        self.add(Pending::Streamed { block, kind, text, citations, progress: Progress::Closed }, frames);
    }

    /// Adds a citation to the last text, or to an empty one of its own.
    pub(super) fn cite(&mut self, block: BlockId, citation: Value, frames: &mut Frames) {
        let is_text = |pending: &Pending| matches!(pending, Pending::Streamed { kind: Kind::Text, .. });
        match self.queue.iter_mut().enumerate().rfind(|(_, pending)| is_text(pending)) {
            Some((0, _)) => self.write_piece(&citation_piece(&citation), frames),
            Some((_, Pending::Streamed { citations, .. })) => citations.push(citation),
            _ => {
                let (kind, text, citations) = (Kind::Text, String::new(), vec![citation]);
                self.add(
                    Pending::Streamed { block, kind, text, citations, progress: Progress::Closed },
                    frames,
                );
            }
        }
    }

    /// Closes a block. The last one stays open for its citations, until [`settle`](Self::settle).
    pub(super) fn close(&mut self, block: BlockId, frames: &mut Frames) {
        for pending in &mut self.queue {
            match pending {
                Pending::Streamed { block: of, progress, .. } if *of == block => *progress = Progress::Closed,
                _ => {}
            }
        }
        if self.queue.len() > 1 {
            self.settle(frames);
        }
    }

    /// Ends the first block if it has closed.
    pub(super) fn settle(&mut self, frames: &mut Frames) {
        if matches!(self.queue.front(), Some(Pending::Streamed { progress: Progress::Closed, .. })) {
            self.stop(frames);
            self.queue.pop_front();
            self.begin_next(frames);
        }
    }

    /// Closes all blocks, and ends them.
    pub(super) fn close_all(&mut self, frames: &mut Frames) {
        for pending in &mut self.queue {
            if let Pending::Streamed { progress, .. } = pending {
                *progress = Progress::Closed;
            }
        }
        while !self.queue.is_empty() {
            self.settle(frames);
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
        match self.queue.len() {
            1 => self.begin_next(frames),
            _ => self.settle(frames),
        }
    }

    /// Begins the first block, and writes all blocks before the first one that is still open, or that is the last.
    fn begin_next(&mut self, frames: &mut Frames) {
        while let Some(pending) = self.queue.pop_front() {
            match pending {
                Pending::Whole(block) => {
                    self.start(&block, frames);
                    self.stop(frames);
                }
                Pending::Streamed { block, kind, text, citations, progress } => {
                    self.start(&kind.start(), frames);
                    if !text.is_empty() {
                        self.write_piece(&kind.piece(&text), frames);
                    }
                    citations.iter().for_each(|citation| self.write_piece(&citation_piece(citation), frames));
                    if progress == Progress::Open || self.queue.is_empty() {
                        let (text, citations) = (String::new(), Vec::new());
                        let begun = Pending::Streamed { block, kind, text, citations, progress };
                        return self.queue.push_front(begun);
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

/// Returns the piece that adds a citation.
fn citation_piece(citation: &Value) -> Value {
    json!({"type": "citations_delta", "citation": citation})
}
