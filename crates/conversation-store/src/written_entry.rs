//! `WrittenEntry`, `TurnEffect` and `Batch::written`: entries in stored form, with size check and comparison of
//! stored entries.

use advisor_core::TurnId;

use crate::entry::codec::BodyRef;
use crate::{Batch, EntryKind, NewEntry, Result, StoreError};

/// An entry of a batch as a store writes it. For store implementations; [`LogReader`](crate::LogReader) reads it
/// back.
///
/// # Example
/// ```
/// use advisor_core::TurnId;
/// use conversation_store::{Batch, BatchKey, EntryKind, NewEntry};
///
/// let turn = TurnId::new("t")?;
/// let summary = NewEntry::new(turn.clone(), EntryKind::Summary("short".into()));
/// let batch = Batch::new(BatchKey::new(turn, 0, "summary"), vec![summary]);
/// let written = batch.written(1_000)?;
/// assert_eq!(written[0].turn, "t");
/// assert!(written[0].matches_row(b"t", written[0].body.as_bytes()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WrittenEntry<'a> {
    /// The id of its turn.
    pub turn: &'a str,
    /// The JSON form of its [`EntryKind`], with its round.
    pub body: String,
    /// Its effect on its turn.
    ///
    /// A store keeps with the entry whether the turn is open after it. Neither a damaged entry nor one of a newer
    /// version shows that.
    pub effect: TurnEffect,
    kind: &'a EntryKind,
}

/// The effect of an entry on its turn: whether the turn is open after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a store has to keep each of them")]
pub enum TurnEffect {
    /// The turn is open.
    Opens,
    /// The turn has ended.
    Ends,
    /// None. A turn that begins with such an entry is open.
    Unchanged,
}

impl TurnEffect {
    /// Checks whether the turn is open after the entry. `before` is the state before it, true for a new turn.
    #[must_use]
    pub fn is_open_after(self, before: bool) -> bool {
        match self {
            Self::Opens => true,
            Self::Ends => false,
            Self::Unchanged => before,
        }
    }
}

impl Batch {
    /// Returns the entries in the form in which they are written.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] if their bodies and turn ids exceed `most_bytes` together; those of
    /// [`Batch::validate`].
    pub fn written(&self, most_bytes: usize) -> Result<Vec<WrittenEntry<'_>>> {
        let mut left = most_bytes;
        let mut written = Vec::with_capacity(self.entries.len());
        for new in &self.entries {
            let entry = WrittenEntry::from_new(new)?;
            left = left.checked_sub(entry.turn.len()).ok_or(StoreError::TooLarge)?;
            left = left.checked_sub(entry.body.len()).ok_or(StoreError::TooLarge)?;
            written.push(entry);
        }
        Ok(written)
    }
}

impl<'a> WrittenEntry<'a> {
    fn from_new(new: &'a NewEntry) -> Result<Self> {
        let (turn, kind) = (new.turn.as_str(), &new.kind);
        kind.validate()?;
        // The serialiser's error may quote the conversation, so it is dropped.
        let no_form = |_| StoreError::Unreadable { kind: kind.name(), what: "it has no JSON form" };
        let body = serde_json::to_string(&BodyRef { kind, round: new.round() }).map_err(no_form)?;
        let effect = match kind {
            EntryKind::Message(_) => TurnEffect::Opens,
            EntryKind::TurnEnded(_) => TurnEffect::Ends,
            _ => TurnEffect::Unchanged,
        };
        Ok(Self { turn, body, effect, kind })
    }

    /// Returns whether the stored row, under the batch's key and at this entry's position, is this entry.
    ///
    /// Another version may have written the same entry in a different form or without its round. A damaged row
    /// counts as equal.
    #[must_use]
    pub fn matches_row(&self, turn: &[u8], body: &[u8]) -> bool {
        let other_turn = || std::str::from_utf8(turn).is_ok_and(|turn| TurnId::new(turn).is_ok());
        let other_kind =
            || serde_json::from_slice::<EntryKind>(body).is_ok_and(|standing| standing != *self.kind);
        (turn == self.turn.as_bytes() || !other_turn()) && (body == self.body.as_bytes() || !other_kind())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_logs::{completed, turn, user};
    use crate::{BatchKey, NewEntry};

    fn batch(kind: EntryKind) -> Batch {
        Batch::new(BatchKey::new(turn("t"), 0, "x"), vec![NewEntry::new(turn("t"), kind)])
    }

    #[test]
    fn written_entry_matches_same_or_unreadable_content() {
        let batch = batch(EntryKind::Summary("short".into()));
        let written = batch.written(99).unwrap().remove(0);
        let other_words = r#"{ "value": {"text": "short", "until": 0}, "kind": "summary", "format": 1 }"#;
        for (turn, body, same) in [
            ("t", written.body.as_str(), true),
            ("t", other_words, true),
            ("t", "half an en", true),
            ("no turn", other_words, true),
            ("u", written.body.as_str(), false),
            ("u", "half an en", false),
            ("t", &other_words.replace("short", "long"), false),
        ] {
            assert_eq!(written.matches_row(turn.as_bytes(), body.as_bytes()), same, "{turn}: {body}");
        }
    }

    #[test]
    fn only_messages_open_and_ends_close_turns() {
        let effect = |kind| batch(kind).written(999).unwrap()[0].effect;
        assert_eq!(effect(user("u").into()), TurnEffect::Opens);
        assert_eq!(effect(completed()), TurnEffect::Ends);
        assert_eq!(effect(EntryKind::Summary("short".into())), TurnEffect::Unchanged);
        assert_eq!(effect(EntryKind::Corrupt(Vec::new())), TurnEffect::Unchanged);
    }

    #[test]
    fn limit_covers_bodies_and_turns_together() {
        let batch = batch(user("u").into());
        let bytes = batch.written(999).unwrap()[0].body.len() + 1;
        assert_eq!(batch.written(bytes).unwrap().len(), 1);
        assert!(matches!(batch.written(bytes - 1), Err(StoreError::TooLarge)));
    }
}
