//! The clause that chunks come out as they arrive.

use std::collections::BTreeSet;
use std::fmt;
use std::future::poll_fn;
use std::task::Poll;

use advisor_core::{Block, BlockContent, BlockId, Chunk, Delta};
use futures::StreamExt;

use super::inside::Inside;
use super::reading::{Items, Reader, later_chunks, within};
use super::script::{Cut, End, Pace, Script};
use super::subject::{Clause, Declaration, Subject};
use crate::run::fold;
use advisor_testkit::Gate;

const PASSES: Clause = Clause {
    law: "law S2",
    rule: "each chunk comes out unchanged, in the poll in which the inner stream returned it",
    remedy: "return chunks as they arrive, such as with `inspect_chunks` or `edit_with`; \
             otherwise declare `HoldsBackBytes`, `HoldsBackBlocks` or `EditsAnswers`",
};
const HOLDS_BACK: Clause = Clause {
    law: "law S2",
    rule: "no more of a block is held back than declared",
    remedy: "return the decided text at once, such as with `edit_text` and a `HoldBack`; otherwise declare \
             `HoldsBackBytes` with more bytes, `HoldsBackBlocks` or `HoldsBackAnswers`",
};

/// Chunks come out in the poll in which they arrive, or later by no more than is declared.
///
/// The model sends the beginning of an answer, up to each of its deltas, and waits. Its chunks arrive one by one, or
/// are all ready at once. They are read chunk by chunk, and as a turn reads them.
pub async fn law_s2_chunks_come_out_as_they_arrive(subject: &Subject) {
    if subject.declares(Declaration::HoldsBackAnswers) {
        return;
    }
    for script in Script::all(subject) {
        let deltas = script.deltas(Cut::Every(5));
        for until in 0..=deltas.len() {
            let sent = deltas.get(..until).unwrap_or_default();
            for pace in Pace::READY {
                for reader in Reader::ALL {
                    Beginning { subject, script: &script, sent, pace, reader }.check().await;
                }
            }
        }
    }
}

/// The beginning of an answer, after which the model waits.
struct Beginning<'a> {
    subject: &'a Subject,
    script: &'a Script,
    sent: &'a [Delta],
    pace: Pace,
    reader: Reader,
}

impl Beginning<'_> {
    async fn check(&self) {
        let gate = Gate::new();
        let inside = self.inside(&End::Waits(gate.clone()));
        let mut items = inside.open(self.subject, self.reader);
        let mut out = within(self.subject, self.read_until(&gate, &inside, &mut items)).await;
        if self.subject.passes_chunks() {
            return;
        }
        out.extend(later_chunks(&mut items).await);
        self.check_held_back(&inside.seen(), &out).await;
    }

    fn inside(&self, end: &End) -> Inside {
        Inside::new(self.subject, self.script.answer(self.sent, self.pace, end))
    }

    /// Reads until the model waits, or the answer ends. Whenever the stream is pending, all chunks must be out.
    async fn read_until(&self, gate: &Gate, inside: &Inside, items: &mut Items) -> Vec<Chunk> {
        let mut out = Vec::new();
        poll_fn(|cx| {
            while let Poll::Ready(item) = items.poll_next_unpin(cx) {
                match item {
                    Some(Ok(chunk)) => out.push(chunk),
                    Some(Err(_)) | None => return Poll::Ready(()),
                }
            }
            if self.subject.passes_chunks() {
                self.check_passed(&inside.seen(), &out);
            }
            if gate.is_reached() {
                return Poll::Ready(());
            }
            Poll::Pending
        })
        .await;
        out
    }

    fn check_passed(&self, seen: &[Chunk], out: &[Chunk]) {
        if let Some((seen, out)) = first_difference(seen, out) {
            let Self { script, sent, pace, reader, .. } = self;
            self.subject.breaks(
                PASSES,
                format_args!(
                    "the inner stream returned {seen}, and {out} came out, after {} deltas of {} (arriving {pace:?}, \
                     read as {reader:?})",
                    sent.len(),
                    script.name
                ),
            );
        }
    }

    /// Compares the chunks so far with the outcome if the answer ended here.
    async fn check_held_back(&self, seen: &[Chunk], out: &[Chunk]) {
        let ended = self.inside(&End::Finish).read(self.subject, self.reader).await;
        if ended.end.is_err() {
            return;
        }
        let (ended, live) = (fold(&ended.chunks), fold(out));
        let closed: BTreeSet<_> = seen.iter().filter_map(closed).collect();
        for block in seen.iter().filter_map(Chunk::block).collect::<BTreeSet<_>>() {
            let Some(whole) = ended.block(block) else { continue };
            let held = held_bytes(&whole, live.block(block).as_ref());
            let allowed = if closed.contains(&block) { Some(0) } else { self.subject.held_bytes() };
            if allowed.is_some_and(|allowed| held > allowed) {
                let Self { script, sent, .. } = self;
                let allowed = allowed.unwrap_or_default();
                self.subject.breaks(
                    HOLDS_BACK,
                    format_args!(
                        "{held} bytes of block {block} are held back, {allowed} are allowed, after {} deltas of {}",
                        sent.len(),
                        script.name
                    ),
                );
            }
        }
    }
}

/// Returns the first difference of two lists, in words.
pub(super) fn first_difference<T: PartialEq + fmt::Debug>(seen: &[T], out: &[T]) -> Option<(String, String)> {
    let word = |item: Option<&T>| item.map_or_else(|| "nothing".to_owned(), |item| format!("{item:?}"));
    (0..seen.len().max(out.len()))
        .map(|place| (seen.get(place), out.get(place)))
        .find(|(seen, out)| seen != out)
        .map(|(seen, out)| (word(seen), word(out)))
}

fn closed(chunk: &Chunk) -> Option<BlockId> {
    match chunk {
        Chunk::Closed { block, .. } => Some(*block),
        _ => None,
    }
}

/// Returns the bytes of a block that are not out yet. A block without text counts as one byte.
fn held_bytes(whole: &Block, live: Option<&Block>) -> usize {
    let length = |block: &Block| match block.content() {
        BlockContent::Text(text) | BlockContent::Reasoning(text) | BlockContent::Refusal(text) => text.len(),
        BlockContent::ToolCall(call) => call.arguments.len(),
        _ => 1,
    };
    length(whole).saturating_sub(live.map(length).unwrap_or_default())
}
