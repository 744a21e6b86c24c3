//! The text of each choice, in pieces or repeated as a whole, with or without reasoning in it.

use std::collections::BTreeMap;
use std::mem;

use advisor_core::DeltaKind;

use super::think_tags::ThinkTagSplitter;
use crate::profile::{Profile, TextMode, ThinkTags};

/// The form of the texts in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TextForm {
    mode: TextMode,
    tags: ThinkTags,
    /// The number of requested answers. With one, the numbers of choices mean nothing (Q54).
    choices: u32,
}

/// The texts of the choices of an answer.
#[derive(Debug)]
pub(super) struct Texts {
    form: TextForm,
    texts: BTreeMap<u32, ChoiceText>,
    /// The bytes of the texts so far that are kept.
    kept: usize,
    /// Whether a text was split or held back, since that was last asked.
    is_altered: bool,
}

/// The text of one choice.
#[derive(Debug)]
struct ChoiceText {
    /// The text so far, if the server repeats all of it in each event (Q70).
    seen: String,
    splitter: ThinkTagSplitter,
    /// Whether reasoning came in a separate field. Reasoning in the text only repeats it (Q65).
    has_reasoning: bool,
}

impl TextForm {
    /// The form of text that is used as it comes, in one answer.
    pub(crate) const PLAIN: Self = Self { mode: TextMode::Increments, tags: ThinkTags::AsText, choices: 1 };

    pub(crate) fn new(profile: &Profile, choices: u32) -> Self {
        Self { mode: profile.text, tags: profile.think_tags, choices }
    }

    /// Returns the key of a choice. Choices that were not requested share one, so that the number of keys is bounded.
    fn key_of(self, choice: u32) -> u32 {
        if self.choices > 1 { choice.min(self.choices) } else { 0 }
    }
}

impl Texts {
    pub(super) fn new(form: TextForm) -> Self {
        Self { form, texts: BTreeMap::new(), kept: 0, is_altered: false }
    }

    /// Checks whether equal events have equal texts, except where a text [was altered](Self::take_altered).
    pub(super) fn is_repeatable(&self) -> bool {
        self.form.mode != TextMode::Cumulative
    }

    /// Returns the bytes that are kept, apart from a tag that is held back.
    pub(super) fn kept(&self) -> usize {
        self.kept
    }

    /// Checks whether a text was split or held back since the last time.
    pub(super) fn take_altered(&mut self) -> bool {
        mem::take(&mut self.is_altered)
    }

    /// Emits the text of an event, as far as it is new and decided.
    #[inline]
    pub(super) fn push(&mut self, text: &str, choice: u32, emit: &mut impl FnMut(DeltaKind)) {
        if self.form.mode == TextMode::Increments && self.form.tags == ThinkTags::AsText {
            return emit(DeltaKind::Text(text.into()));
        }
        let mode = self.form.mode;
        let choice = self.of(choice);
        let seen = choice.seen.len();
        let new = if mode == TextMode::Cumulative { choice.unseen(text) } else { text };
        let newly_kept = choice.seen.len() - seen;
        let was_plain = choice.splitter.is_over();
        choice.push(new, emit);
        self.is_altered |= !was_plain;
        self.kept += newly_kept;
    }

    /// Notes that reasoning of a choice came in a separate field.
    #[inline]
    pub(super) fn note_reasoning(&mut self, choice: u32) {
        if self.form.tags != ThinkTags::AsText {
            let choice = self.of(choice);
            choice.has_reasoning = true;
            choice.splitter.note_reasoning();
        }
    }

    /// Emits the held text of a choice, before content of another kind. From then on, tags are text.
    pub(super) fn end(&mut self, choice: u32, emit: &mut impl FnMut(DeltaKind)) {
        if let Some(choice) = self.texts.get_mut(&self.form.key_of(choice)) {
            self.is_altered |= !choice.splitter.is_over();
            choice.end(emit);
        }
    }

    /// Emits the held text of each choice.
    pub(super) fn end_all(&mut self, emit: &mut impl FnMut(u32, DeltaKind)) {
        for (number, choice) in &mut self.texts {
            choice.end(&mut |kind| emit(*number, kind));
        }
    }

    fn of(&mut self, choice: u32) -> &mut ChoiceText {
        let new = || ChoiceText {
            seen: String::new(),
            splitter: ThinkTagSplitter::new(self.form.tags),
            has_reasoning: false,
        };
        self.texts.entry(self.form.key_of(choice)).or_insert_with(new)
    }
}

impl ChoiceText {
    /// Returns the new part of a text that repeats the text so far. A text that begins otherwise is new as a whole.
    fn unseen<'a>(&mut self, text: &'a str) -> &'a str {
        let new = text.strip_prefix(self.seen.as_str()).unwrap_or(text);
        self.seen.push_str(new);
        new
    }

    fn push(&mut self, text: &str, emit: &mut impl FnMut(DeltaKind)) {
        let repeats = self.has_reasoning;
        self.splitter.push(text, &mut |kind| emit_new(kind, repeats, emit));
    }

    fn end(&mut self, emit: &mut impl FnMut(DeltaKind)) {
        let repeats = self.has_reasoning;
        self.splitter.end(&mut |kind| emit_new(kind, repeats, emit));
    }
}

/// Emits a piece, unless it is reasoning that only repeats other reasoning.
fn emit_new(kind: DeltaKind, repeats_reasoning: bool, emit: &mut impl FnMut(DeltaKind)) {
    if !(repeats_reasoning && matches!(kind, DeltaKind::Reasoning(_))) {
        emit(kind);
    }
}
