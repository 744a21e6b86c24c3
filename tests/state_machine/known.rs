//! What is known not to hold yet, and how the state machine stays away from it. Whoever mends a defect says so in
//! [`Known::OPEN`]: from then on its sequences are tried, and `defects.rs` wants its own to hold.

use advisor_chain::{TurnId, Version};

/// Defects, each with whether it is there.
#[derive(Clone, Copy)]
pub(crate) struct Known {
    /// FM-15: a turn runs while its conversation is deleted and begun anew. If it then finds just the version that it
    /// expects, it appends to the new conversation.
    pub(crate) old_append: bool,
    /// FM-14: a process that rolled a turn back and has not written that yet hides the answer that another process gave
    /// to the same turn meanwhile.
    pub(crate) rollback_over_answer: bool,
    /// A turn that was answered is submitted again to a process whose window does not reach it, and is rolled back
    /// before it was found: it is hidden, with the answer that was given.
    pub(crate) rollback_of_repeated: bool,
    /// An import writes under keys of its own. A turn that is submitted again after it is not found if it lies further
    /// back than the window reaches, or on another branch: it is run and stored once more.
    pub(crate) imported_again: bool,
}

impl Known {
    /// What is there.
    pub(crate) const OPEN: Self = Self {
        old_append: false,
        rollback_over_answer: false,
        rollback_of_repeated: false,
        imported_again: false,
    };

    /// As if everything held.
    pub(crate) const NOTHING: Self = Self {
        old_append: false,
        rollback_over_answer: false,
        rollback_of_repeated: false,
        imported_again: false,
    };

    /// Whether a turn that expects this version of a deleted conversation must not go on in what came after it.
    pub(crate) fn takes_an_old_append(self, expected: Option<Version>, current: Version) -> bool {
        self.old_append && expected == Some(current)
    }

    /// Whether a turn must not be submitted, as another process has rolled it back and not written that.
    pub(crate) fn hides_an_answer(self, undone_by_other: &[TurnId], submitted: &TurnId) -> bool {
        self.rollback_over_answer && undone_by_other.contains(submitted)
    }

    /// Whether a turn must not be rolled back, as another process runs it or has run it, or as it was answered before.
    pub(crate) fn hides_an_answer_of(self, submitted_by_other: bool, answered_before: bool) -> bool {
        (self.rollback_over_answer && submitted_by_other) || (self.rollback_of_repeated && answered_before)
    }

    /// Whether a turn must not be submitted again, as it was imported, and the view of the conversation may not show it.
    pub(crate) fn is_run_again(self, was_imported: bool, is_in_view: bool) -> bool {
        self.imported_again && was_imported && !is_in_view
    }
}
