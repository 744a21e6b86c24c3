//! Deltas that are emitted before the answer ends: token counts, data, and deltas that a format held back.

use std::collections::VecDeque;
use std::mem;

use advisor_core::{Delta, DeltaKind, Usage};

use super::Progress;
use crate::answer::end::End;
use crate::answer::wire_format::{AnswerEvent, WireFormat};

impl<W: WireFormat> Progress<W> {
    /// Emits the token counts of matched events, before anything else.
    pub(in crate::answer) fn emit_usage(&mut self) {
        let mut all: Option<Usage> = None;
        for event in self.fast.take_counts() {
            let mut deltas = VecDeque::new();
            // An event of a known form is JSON.
            let _read = self.format.read(AnswerEvent::new(None, &event), &mut deltas);
            for delta in deltas {
                if let DeltaKind::Usage(usage) = delta.kind {
                    all.get_or_insert_default().merge(&usage);
                }
            }
        }
        self.deltas.extend(all.map(Delta::usage));
    }

    /// Emits the data attached to reasoning, to which nothing is added any more. Returns false if there is none.
    pub(in crate::answer) fn end_data(&mut self) -> bool {
        let before = self.deltas.len();
        self.fast.end_data(&mut self.deltas);
        self.deltas.len() > before
    }

    /// Emits the deltas that the format held back. If they end the answer, it is done.
    pub(in crate::answer) fn finish_format(&mut self) {
        if !mem::replace(&mut self.format_finished, true) && self.failed.is_none() {
            let before = self.deltas.len();
            self.format.finish(&mut self.deltas);
            let ends = self.note_new(before);
            self.fast.join_parsed(&mut self.deltas, before);
            if ends {
                self.mark_done();
            }
        }
    }

    pub(in crate::answer) fn mark_done(&mut self) {
        if self.end != End::Done {
            self.emit_usage();
            self.finish_format();
        }
        if self.end != End::Done {
            self.end_data();
            // Later events are read one by one, and nearly all of them are dropped.
            self.fast.stop_learning();
            self.end = End::Done;
            self.deltas.push_back(Delta::done());
        }
    }
}
