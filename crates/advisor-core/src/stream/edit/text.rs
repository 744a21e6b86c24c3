//! `ChunkStream::edit_text`: edits the text of each block (`PendingText`), with bounded hold-back.

use std::collections::BTreeMap;
use std::ops::Deref;

use message_aggregator::{Block, BlockDelta, BlockId, BlockKind, Chunk, FinishReason};

use super::{ChunkEditor, EditedChunks};
use crate::ChunkStream;

/// The maximum amount of a block's text that an editor holds back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums, reason = "some or everything")]
pub enum HoldBack {
    /// At most this many bytes. The editor's remaining text beyond that is emitted unchanged. With 0, each piece is emitted in
    /// the poll in which it arrived.
    Bytes(usize),
    /// The whole block, until it ends.
    Block,
}

impl ChunkStream {
    /// Passes the text of each block through `edit` while it streams: text, reasoning and refusals.
    ///
    /// `edit` receives the text that was not emitted yet, and emits the part that it can decide on. The rest, up to
    /// `hold_back`, is passed again with the next piece of that block. Each block uses its own clone of the
    /// initial `edit`. So no state passes from one block to the next, or from a restarted attempt to the next. The
    /// output is consistent, as with [`edit_with`](Self::edit_with).
    ///
    /// An advisor that edits answers belongs inside memory, in [`Phase::ModelCall`](crate::Phase::ModelCall): then
    /// memory stores the emitted text.
    ///
    /// # Example
    /// ```
    /// use advisor_core::{ChatResponse, ChunkStream, FinishReason, HoldBack, Message};
    /// use futures::StreamExt;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> advisor_core::Result<()> {
    /// let answer = ChatResponse::new(1, Message::assistant("It was Mallory."), FinishReason::Stop);
    /// let mut masked = ChunkStream::answer(answer)
    ///     .edit_text(HoldBack::Bytes(6), |text| text.replace_all(&[("Mallory", "[name]")]));
    /// while let Some(chunk) = masked.next().await {
    ///     if let Some(response) = chunk?.completed() {
    ///         assert_eq!(response.text(), "It was [name].");
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    pub fn edit_text<E>(self, hold_back: HoldBack, edit: E) -> Self
    where
        E: FnMut(&mut PendingText<'_>) + Clone + Send + 'static,
    {
        self.edit_with(EditedTexts { edit, hold_back, open: BTreeMap::new(), emitted: String::new() })
    }
}

/// The open text blocks, each with its editor.
struct EditedTexts<E> {
    edit: E,
    hold_back: HoldBack,
    open: BTreeMap<BlockId, EditedText<E>>,
    /// The text of one delta. It is empty between deltas, and kept for its memory.
    emitted: String,
}

struct EditedText<E> {
    edit: E,
    kind: BlockKind,
    held: HeldText,
}

/// The held-back text of one block.
#[derive(Default)]
struct HeldText {
    /// Text that was taken, then the held-back text.
    text: String,
    /// The bytes that were taken.
    taken: usize,
}

impl HeldText {
    fn as_str(&self) -> &str {
        self.text.get(self.taken..).unwrap_or_default()
    }

    /// Keeps the last `bytes`.
    fn keep(&mut self, bytes: usize) {
        self.taken = self.text.len().saturating_sub(bytes);
        // No more text is moved than was taken, so the cost of a byte does not depend on how much is held back.
        if self.taken >= bytes {
            self.text.drain(..self.taken);
            self.taken = 0;
        }
    }
}

impl<E: FnMut(&mut PendingText<'_>) + Clone + Send + 'static> ChunkEditor for EditedTexts<E> {
    fn edit(&mut self, chunk: Chunk, out: &mut EditedChunks<'_>) {
        match &chunk {
            Chunk::Opened { block, head } => {
                let edited =
                    EditedText { edit: self.edit.clone(), kind: head.kind, held: HeldText::default() };
                self.open.insert(*block, edited);
            }
            Chunk::Delta { block, delta } => {
                if let (Some(edited), Some(text)) = (self.open.get_mut(block), text_of(delta)) {
                    edited.held.text.push_str(text);
                    if let HoldBack::Bytes(most) = self.hold_back {
                        edited.let_out(*block, most, false, &mut self.emitted, out);
                    }
                    return;
                }
            }
            Chunk::Closed { block, .. } => {
                let edited = self.open.remove(block).filter(|edited| !edited.held.as_str().is_empty());
                if let Some(mut edited) = edited {
                    edited.let_out(*block, 0, true, &mut self.emitted, out);
                }
            }
            Chunk::AttemptRestarted { round } => self.open.retain(|block, _| block.round != *round),
            _ => {}
        }
        out.push(chunk);
    }
}

impl<E: FnMut(&mut PendingText<'_>)> EditedText<E> {
    /// Edits the pending text, and emits the decided part; at most `most` bytes are held back. `emitted` is an empty buffer.
    fn let_out(
        &mut self,
        block: BlockId,
        most: usize,
        is_at_end: bool,
        emitted: &mut String,
        out: &mut EditedChunks<'_>,
    ) {
        let mut pending = PendingText::new(self.held.as_str(), emitted, self.kind, is_at_end);
        (self.edit)(&mut pending);
        pending.hold_at_most(most);
        let PendingText { rest, end, .. } = pending;
        let held = rest.len();
        self.held.keep(held);
        let delta = match self.kind {
            BlockKind::Reasoning => BlockDelta::Reasoning,
            BlockKind::Refusal => BlockDelta::Refusal,
            _ => BlockDelta::Text,
        };
        if !emitted.is_empty() {
            out.push(Chunk::Delta { block, delta: delta(emitted.as_str().into()) });
        }
        emitted.clear();
        if let Some(EarlyEnd { reason, last }) = end {
            out.close(block);
            if let Some(last) = last {
                out.add(block, last);
            }
            out.end_answer(reason);
        }
    }
}

fn text_of(delta: &BlockDelta) -> Option<&str> {
    match delta {
        BlockDelta::Text(text) | BlockDelta::Reasoning(text) | BlockDelta::Refusal(text) => Some(text),
        _ => None,
    }
}

/// The text of one block that an editor has not decided on yet: the held-back text, then the newest piece.
///
/// It dereferences to [`str`]. The editor takes text from the front; the rest is held back until the next piece.
#[derive(Debug)]
pub struct PendingText<'a> {
    /// The kind of the block: text, reasoning or refusal.
    pub kind: BlockKind,
    /// Whether the block ends here. The remaining text is then emitted unchanged.
    pub is_at_end: bool,
    rest: &'a str,
    out: &'a mut String,
    end: Option<EarlyEnd>,
}

/// The end of an answer inside a text.
#[derive(Debug)]
struct EarlyEnd {
    reason: FinishReason,
    /// The block that follows the text.
    last: Option<Block>,
}

impl<'a> PendingText<'a> {
    fn new(text: &'a str, out: &'a mut String, kind: BlockKind, is_at_end: bool) -> Self {
        Self { kind, is_at_end, rest: text, out, end: None }
    }

    /// Emits the first `bytes` unchanged, rounded down to a character boundary.
    pub fn pass(&mut self, bytes: usize) {
        let passed = self.take(bytes);
        self.out.push_str(passed);
    }

    /// Emits `text` in place of the first `bytes`, rounded down to a character boundary.
    pub fn replace(&mut self, bytes: usize, text: &str) {
        self.take(bytes);
        self.out.push_str(text);
    }

    /// Replaces each occurrence of these words, also when a word arrives in pieces. If two words begin at the same
    /// position, the one listed first wins.
    ///
    /// It holds back only a possible beginning of a word: always less than the longest of them. Empty words are
    /// ignored.
    pub fn replace_all<A: AsRef<str>, B: AsRef<str>>(&mut self, words: &[(A, B)]) {
        while let Some(first) = self.rest.chars().next() {
            let mut words = words.iter().map(|(word, with)| (word.as_ref(), with.as_ref()));
            let may_begin = |word: &str| !self.is_at_end && word.starts_with(self.rest);
            match words.find(|(word, _)| !word.is_empty() && (self.rest.starts_with(word) || may_begin(word)))
            {
                Some((word, with)) if self.rest.starts_with(word) => self.replace(word.len(), with),
                // It depends on what follows.
                Some(_) => return,
                None => self.pass(first.len_utf8()),
            }
        }
    }

    /// Ends the answer here. The text that was emitted closes its block, `last` follows it, then `Completed` with this
    /// reason.
    ///
    /// The rest of the text is left out, and so is the held-back text of other blocks. The source is dropped.
    pub fn end_answer(&mut self, reason: FinishReason, last: Option<Block>) {
        self.rest = "";
        self.end.get_or_insert(EarlyEnd { reason, last });
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(self.rest.floor_char_boundary(bytes));
        self.rest = rest;
        taken
    }

    /// Emits all but the last `bytes`, rounded up to a character boundary, so that at most `bytes` are held back.
    fn hold_at_most(&mut self, bytes: usize) {
        let beyond = self.rest.len().saturating_sub(bytes);
        self.pass(self.rest.ceil_char_boundary(beyond));
    }
}

impl Deref for PendingText<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        self.rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(pieces: &[&str], words: &[(&str, &str)]) -> (String, usize) {
        let (mut held, mut out, mut most) = (String::new(), String::new(), 0);
        for (place, piece) in pieces.iter().enumerate() {
            held.push_str(piece);
            let is_at_end = place + 1 == pieces.len();
            let mut pending = PendingText::new(&held, &mut out, BlockKind::Text, is_at_end);
            pending.replace_all(words);
            held = pending.rest.to_owned();
            most = most.max(held.len());
        }
        assert_eq!(held, "", "nothing is held back at the end");
        (out, most)
    }

    #[test]
    fn words_are_replaced_however_they_are_cut() {
        let words = [("abc", "1"), ("ab", "2"), ("", "never"), ("é", "e"), ("bcd", "3")];
        for (text, expected) in [
            ("xabcab", "x12"),
            ("aabcbcd", "a13"),
            ("abd éab", "2d e2"),
            ("", ""),
            ("bc", "bc"),
            ("bcab", "bc2"),
        ] {
            let pieces: Vec<String> = text.chars().map(String::from).collect();
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).chain([""]).collect();
            let (whole, most) = (replaced(&[text], &words).0, replaced(&pieces, &words));
            assert_eq!((whole.as_str(), most.0.as_str()), (expected, expected));
            assert!(most.1 < 3, "less than the longest word is held back");
        }
    }

    #[test]
    fn taken_length_rounds_down_to_char_boundary() {
        let mut out = String::new();
        let mut pending = PendingText::new("aé→z", &mut out, BlockKind::Text, false);
        pending.pass(2);
        assert_eq!(&*pending, "é→z");
        pending.replace(4, "e");
        assert_eq!(&*pending, "→z");
        pending.hold_at_most(2);
        assert_eq!(&*pending, "z");
        pending.pass(usize::MAX);
        assert_eq!(&*pending, "");
        assert_eq!(out, "ae→z");
    }
}
