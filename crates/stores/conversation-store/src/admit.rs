//! The contract of an append as one pure function: which batch is written, and why another one is refused.

use crate::{Batch, EntryId, FencingToken, Result, StoreError, Version};

/// What a store knows of a conversation when a batch arrives. For store implementations.
///
/// A store reads it in the transaction that writes the batch. The default is that of a conversation for which the
/// store has nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "a store makes it")]
pub struct LogState<'a> {
    /// The version; 0 if the conversation does not exist.
    pub version: Version,
    /// The highest fencing token that was issued for the conversation or written with. A deletion leaves it as it
    /// is.
    pub token: Option<FencingToken>,
    /// The id of the last entry's turn, as stored. Bytes, since a damaged id may be no text.
    pub last_turn: &'a [u8],
    /// The batch that was applied under the key of the new one, if any.
    pub applied: Option<AppliedBatch>,
}

/// A batch that was applied before, as a store finds it by its key, beside the new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "a store makes it")]
pub struct AppliedBatch {
    /// The version before it.
    pub before: Version,
    /// The version after it.
    pub after: Version,
    /// The entry that its first entry follows, if that is not the one before it.
    pub parent: Option<EntryId>,
    /// Whether each of its entries equals the new one in its place, as far as both batches go: their numbers are
    /// compared by [`admit`]. [`WrittenEntry::matches_row`](crate::WrittenEntry::matches_row) compares an entry with
    /// its row; a row that is damaged or missing counts as equal.
    pub same_entries: bool,
}

/// What a store does with a batch that is not refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a store has to treat each of them")]
pub enum Admission {
    /// It writes the entries behind the last one, the key, and the token if the batch has one.
    Write,
    /// It writes nothing and returns this version: the batch was applied before, or is empty.
    Done(Version),
}

/// Decides what becomes of a batch that arrives at a conversation in this state.
///
/// This is the order of refusals in the contract of [`ConversationStore`](crate::ConversationStore): key, fencing
/// token, existence, version, last turn, parent. A store whose server decides by itself need only know there
/// whether a batch is written. It returns the state of all others and lets this function name the reason.
///
/// # Errors
/// [`KeyReused`](StoreError::KeyReused), [`Fenced`](StoreError::Fenced), [`Gone`](StoreError::Gone),
/// [`Conflict`](StoreError::Conflict) and [`NoSuchEntry`](StoreError::NoSuchEntry).
///
/// # Example
/// ```
/// use advisor_core::{Message, TurnId};
/// use conversation_store::{Admission, Batch, BatchKey, EntryKind, LogState, NewEntry, StoreError, Version, admit};
///
/// let turn = TurnId::new("t")?;
/// let said = NewEntry::new(turn.clone(), EntryKind::Message(Message::user("Hello")));
/// let batch = Batch::new(BatchKey::new(turn, 0, "input"), vec![said]);
/// assert_eq!(admit(&LogState::default(), Version::EMPTY, &batch)?, Admission::Write);
///
/// let later = LogState { version: Version(2), ..LogState::default() };
/// assert!(matches!(admit(&later, Version::EMPTY, &batch), Err(StoreError::Conflict { .. })));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn admit(log: &LogState<'_>, expected: Version, batch: &Batch) -> Result<Admission> {
    if let Some(applied) = log.applied {
        return if applied.is(batch) {
            Ok(Admission::Done(applied.after))
        } else {
            Err(StoreError::KeyReused)
        };
    }
    if batch.token.is_some() && batch.token < log.token {
        return Err(StoreError::Fenced);
    }
    if log.version == Version::EMPTY && (expected > Version::EMPTY || batch.last_turn.is_some()) {
        return Err(StoreError::Gone);
    }
    if log.version != expected {
        return Err(StoreError::Conflict { current: log.version });
    }
    if batch.last_turn.as_ref().is_some_and(|turn| turn.as_str().as_bytes() != log.last_turn) {
        return Err(StoreError::Gone);
    }
    if let Some(id) = batch.parent.filter(|parent| parent.0 > log.version.0) {
        return Err(StoreError::NoSuchEntry { id });
    }
    Ok(if batch.entries.is_empty() { Admission::Done(log.version) } else { Admission::Write })
}

impl AppliedBatch {
    /// Returns whether this is the batch.
    fn is(&self, batch: &Batch) -> bool {
        self.same_entries
            && self.before.after(batch.entries.len()) == self.after
            && (batch.entries.is_empty() || self.parent == batch.fork_at(self.before))
    }
}

#[cfg(test)]
mod tests {
    use advisor_core::{Message, TurnId};

    use super::*;
    use crate::{BatchKey, EntryKind, NewEntry};

    fn turn(name: &str) -> TurnId {
        TurnId::new(name).unwrap()
    }

    fn batch(entries: usize) -> Batch {
        let said = NewEntry::new(turn("t"), EntryKind::Message(Message::user("x")));
        Batch::new(BatchKey::new(turn("t"), 0, "said"), vec![said; entries])
    }

    /// Each row has one reason more to refuse the batch than the one below it. The first reason is named.
    #[test]
    fn law_m3_reasons_to_refuse_a_batch_have_one_order() {
        let at = |version, applied| LogState {
            version: Version(version),
            token: Some(FencingToken(5)),
            last_turn: b"t",
            applied,
        };
        let applied = |same_entries| {
            Some(AppliedBatch { before: Version(1), after: Version(2), parent: None, same_entries })
        };
        let wrong_parent = batch(1).with_parent(EntryId(9));
        let wrong_turn = wrong_parent.clone().with_last_turn(turn("u"));
        let old_token = wrong_turn.clone().with_token(FencingToken(4));
        let table: [(&str, LogState<'_>, u64, Batch, &str); 13] = [
            ("other content under the key", at(3, applied(false)), 7, old_token.clone(), "Err(KeyReused)"),
            (
                "the key is known",
                at(3, applied(true)),
                7,
                batch(1).with_token(FencingToken(4)),
                "Ok(Done(Version(2)))",
            ),
            ("old token, wrong version", at(3, None), 7, old_token.clone(), "Err(Fenced)"),
            ("old token, no conversation", at(0, None), 7, old_token, "Err(Fenced)"),
            ("no conversation, wrong version", at(0, None), 7, wrong_turn.clone(), "Err(Gone)"),
            ("no conversation, a last turn", at(0, None), 0, wrong_turn.clone(), "Err(Gone)"),
            (
                "wrong version, wrong turn",
                at(3, None),
                2,
                wrong_turn.clone(),
                "Err(Conflict { current: Version(3) })",
            ),
            ("wrong turn, wrong parent", at(3, None), 3, wrong_turn, "Err(Gone)"),
            ("wrong parent", at(3, None), 3, wrong_parent, "Err(NoSuchEntry { id: EntryId(9) })"),
            (
                "wrong parent of the first entry",
                at(0, None),
                0,
                batch(1).with_parent(EntryId(1)),
                "Err(NoSuchEntry { id: EntryId(1) })",
            ),
            (
                "nothing",
                at(3, None),
                3,
                batch(1).with_last_turn(turn("t")).with_parent(EntryId(3)).with_token(FencingToken(5)),
                "Ok(Write)",
            ),
            (
                "nothing, no conversation",
                at(0, None),
                0,
                batch(1).with_parent(EntryId::BEGINNING),
                "Ok(Write)",
            ),
            ("an empty batch", at(3, None), 3, batch(0).with_token(FencingToken(6)), "Ok(Done(Version(3)))"),
        ];
        for (what, log, expected, batch, outcome) in table {
            assert_eq!(format!("{:?}", admit(&log, Version(expected), &batch)), outcome, "{what}");
        }
    }

    #[test]
    fn law_m3_a_batch_is_known_by_entries_number_and_parent() {
        let applied = AppliedBatch {
            before: Version(4),
            after: Version(6),
            parent: Some(EntryId(1)),
            same_entries: true,
        };
        let log = LogState { version: Version(9), applied: Some(applied), ..LogState::default() };
        let is_known = |batch: &Batch| admit(&log, Version::EMPTY, batch).is_ok();
        let parent = |id| batch(2).with_parent(EntryId(id));
        assert!(is_known(&parent(1)));
        assert!(!is_known(&parent(2)) && !is_known(&batch(2)), "its parent is another one");
        assert!(!is_known(&batch(1).with_parent(EntryId(1))) && !is_known(&batch(0)), "it is shorter");
        let unlike = LogState { applied: Some(AppliedBatch { same_entries: false, ..applied }), ..log };
        assert!(admit(&unlike, Version::EMPTY, &parent(1)).is_err());
        // The entry before its first one is no other parent.
        let straight = LogState { applied: Some(AppliedBatch { parent: None, ..applied }), ..log };
        for parent in [None, Some(EntryId(4))] {
            assert!(admit(&straight, Version::EMPTY, &batch(2).with_parent(parent)).is_ok(), "{parent:?}");
        }
    }
}
