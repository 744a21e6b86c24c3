//! `PlainText`: writes the text of a turn and nothing else.

use advisor_core::{BlockDelta, BlockId, BlockKind, Chunk};

use crate::content::{self, Breaks};
use crate::encoder::Encoder;
use crate::turn::{Ending, Turn};
use crate::{Failure, Frames};

/// The text of the answer and nothing else, for `curl` and scripts.
///
/// An empty line separates the text of different rounds. Media are a picture or a link in Markdown. A failure, or the reason
/// why the answer is cut, is a last line in brackets. There is no keep-alive that a client would ignore.
#[derive(Debug, Default)]
pub struct PlainText {
    turn: Turn,
    breaks: Breaks,
}

impl PlainText {
    /// Creates the encoder of one turn.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn text(&mut self, block: BlockId, kind: BlockKind, text: &str, frames: &mut Frames) {
        if self.breaks.precede(block, kind) {
            frames.text("\n\n");
        }
        frames.text(text);
    }

    /// Writes the last line.
    fn notice(&self, notice: &str, frames: &mut Frames) {
        let line_break = if self.breaks.has_text() { "\n\n" } else { "" };
        frames.text(&format!("{line_break}[{notice}]\n"));
    }
}

impl Encoder for PlainText {
    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("content-type", "text/plain; charset=utf-8"),
            ("cache-control", "no-store"),
            ("x-accel-buffering", "no"),
            ("x-content-type-options", "nosniff"),
        ]
    }

    fn begin(&mut self, _frames: &mut Frames) {}

    fn chunk(&mut self, chunk: &Chunk, frames: &mut Frames) {
        self.turn.note(chunk);
        match chunk {
            Chunk::Delta { block, delta: delta @ (BlockDelta::Text(text) | BlockDelta::Refusal(text)) } => {
                self.text(*block, delta.kind(), text, frames);
            }
            Chunk::Delta { block, delta: delta @ BlockDelta::Media(media) } => {
                if let Some(text) = content::media_as_text(media) {
                    self.text(*block, delta.kind(), &text, frames);
                }
            }
            Chunk::AttemptRestarted { .. } if self.breaks.has_text() => {
                frames.text("\n\n[the answer begins again]\n\n");
                self.breaks.reset();
            }
            Chunk::Completed(response) => {
                let calls = self.turn.client_calls(response);
                if let Some(incomplete) =
                    Ending::new(&response.finish().reason, !calls.is_empty()).incomplete()
                {
                    self.notice(incomplete.message, frames);
                }
            }
            _ => {}
        }
    }

    fn failure(&mut self, failure: &Failure, frames: &mut Frames) {
        self.notice(failure.message(), frames);
    }

    fn keep_alive(&self) -> &'static [u8] {
        b""
    }
}
