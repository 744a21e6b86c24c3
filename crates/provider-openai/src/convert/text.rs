//! The text of an answer, in pieces or repeated as a whole, with or without reasoning in it.

use std::mem;

use advisor_core::DeltaKind;

use super::think_tags::ThinkTagSplitter;
use crate::profile::{Profile, TextMode, ThinkTags};

/// The form of the text in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TextForm {
    mode: TextMode,
    tags: ThinkTags,
}

/// The text of an answer.
#[derive(Debug)]
pub(super) struct AnswerText {
    form: TextForm,
    /// The text so far, if the server repeats all of it in each event (Q70).
    seen: String,
    splitter: ThinkTagSplitter,
    /// Whether reasoning came in a separate field. Reasoning in the text only repeats it (Q65).
    has_reasoning: bool,
    /// Whether a text was split or held back, since that was last asked.
    is_altered: bool,
}

impl TextForm {
    /// The form of text that is used as it comes.
    pub(crate) const PLAIN: Self = Self { mode: TextMode::Increments, tags: ThinkTags::AsText };

    pub(crate) fn new(profile: &Profile) -> Self {
        Self { mode: profile.text, tags: profile.think_tags }
    }
}

impl AnswerText {
    pub(super) fn new(form: TextForm) -> Self {
        let splitter = ThinkTagSplitter::new(form.tags);
        Self { form, seen: String::new(), splitter, has_reasoning: false, is_altered: false }
    }

    /// Checks whether equal events have equal texts, except where a text [was altered](Self::take_altered).
    pub(super) fn is_repeatable(&self) -> bool {
        self.form.mode != TextMode::Cumulative
    }

    /// Returns the bytes that are kept, apart from a tag that is held back.
    pub(super) fn kept(&self) -> usize {
        self.seen.len()
    }

    /// Checks whether a text was split or held back since the last time.
    pub(super) fn take_altered(&mut self) -> bool {
        mem::take(&mut self.is_altered)
    }

    /// Emits the text of an event, as far as it is new and decided.
    #[inline]
    pub(super) fn push(&mut self, text: &str, emit: &mut impl FnMut(DeltaKind)) {
        if self.form == TextForm::PLAIN {
            return emit(DeltaKind::Text(text.into()));
        }
        let new = if self.form.mode == TextMode::Cumulative { self.unseen(text) } else { text };
        self.is_altered |= !self.splitter.is_over();
        let repeats = self.has_reasoning;
        self.splitter.push(new, &mut |kind| emit_new(kind, repeats, emit));
    }

    /// Notes that reasoning came in a separate field.
    #[inline]
    pub(super) fn note_reasoning(&mut self) {
        if self.form.tags != ThinkTags::AsText {
            self.has_reasoning = true;
            self.splitter.note_reasoning();
        }
    }

    /// Emits the held text, before content of another kind. From then on, tags are text.
    pub(super) fn end(&mut self, emit: &mut impl FnMut(DeltaKind)) {
        if self.form == TextForm::PLAIN {
            return;
        }
        self.is_altered |= !self.splitter.is_over();
        let repeats = self.has_reasoning;
        self.splitter.end(&mut |kind| emit_new(kind, repeats, emit));
    }

    /// Returns the new part of a text that repeats the text so far. A text that begins otherwise is new as a whole.
    fn unseen<'a>(&mut self, text: &'a str) -> &'a str {
        let new = text.strip_prefix(self.seen.as_str()).unwrap_or(text);
        self.seen.push_str(new);
        new
    }
}

/// Emits a piece, unless it is reasoning that only repeats other reasoning.
fn emit_new(kind: DeltaKind, repeats_reasoning: bool, emit: &mut impl FnMut(DeltaKind)) {
    if !(repeats_reasoning && matches!(kind, DeltaKind::Reasoning(_))) {
        emit(kind);
    }
}
