//! The rows of a store: `WrittenEntry` and `Batch::written` for what is written, `LogReader` for what is read back, with damage.

use std::collections::VecDeque;

use advisor_core::TurnId;

use crate::codec::{Body, BodyRef};
use crate::{Batch, Entry, EntryId, EntryKind, NewEntry, Result, Segment, StoreError};

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

impl Batch {
    /// Returns the entries in the form in which they are written.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] if their bodies and turn ids exceed `most_bytes` together. [`StoreError::TooDeep`] or
    /// [`StoreError::Unreadable`] if an entry could not be read back.
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
        let body = serde_json::to_string(&BodyRef { kind, round: new.round }).map_err(no_form)?;
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

/// Builds entries from stored rows, so that a damaged row does not affect the others. For store implementations.
///
/// An unreadable or missing row becomes [`EntryKind::Corrupt`] in its place. If its turn is unknown, it gets the
/// turn of the entry before it, or else of the next one that has a turn.
///
/// # Example
/// ```
/// use conversation_store::{EntryKind, LogReader, Segment};
///
/// let mut log = LogReader::new(vec![Segment { first: 1, last: 3, parent: None }]);
/// log.row(1, b"t", br#"{"format":1,"kind":"summary","value":{"until":0,"text":"short"}}"#)?;
/// log.row(3, b"t", b"half an en")?;
/// let entries = log.finish()?;
/// assert_eq!(entries[0].kind, EntryKind::Summary("short".into()));
/// assert_eq!(entries[1].kind, EntryKind::Corrupt(b"".into()));
/// assert_eq!(entries[2].kind, EntryKind::Corrupt(b"half an en".into()));
/// # Ok::<(), conversation_store::StoreError>(())
/// ```
#[derive(Debug)]
pub struct LogReader {
    /// The numbers still expected.
    expected: VecDeque<Segment>,
    entries: Vec<Entry>,
    /// The number of leading entries that have no turn yet.
    nameless: usize,
}

/// The maximum number of consecutive missing entries. With more, the log is damaged as a whole.
const MOST_MISSING: u64 = 1_000;

impl LogReader {
    /// Creates a reader of entries with these numbers, in their order.
    #[must_use]
    pub fn new(segments: Vec<Segment>) -> Self {
        Self { expected: segments.into(), entries: Vec::new(), nameless: 0 }
    }

    /// Adds the next row: number, turn id, and the [body](crate::WrittenEntry::body) it was written with.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if more than a thousand rows are missing before it, or if it is none of the rows that
    /// are still expected: it came before, is out of order, or belongs to no segment.
    pub fn row(&mut self, seq: u64, turn: &[u8], kind: &[u8]) -> Result {
        self.take(seq, turn, kind, serde_json::from_slice(kind).ok())
    }

    /// Adds the next row, which the store knows to be damaged, even if it is readable.
    ///
    /// # Errors
    /// Those of [`row`](Self::row).
    pub fn damaged_row(&mut self, seq: u64, turn: &[u8], kind: &[u8]) -> Result {
        self.take(seq, turn, kind, None)
    }

    fn take(&mut self, seq: u64, turn: &[u8], kind: &[u8], read: Option<Body>) -> Result {
        while self.expected.front().is_some_and(|next| next.last < seq) {
            self.take_missing_segment()?;
        }
        if self.expected.front().is_none_or(|next| seq < next.first) {
            let source = "the row is out of order or belongs to no segment";
            return Err(StoreError::Corrupt { seq: Some(seq), source: Some(source.into()) });
        }
        self.take_missing_before(seq)?;
        let turn = std::str::from_utf8(turn).ok().and_then(|turn| TurnId::new(turn).ok());
        let body = read
            .filter(|_| turn.is_some())
            .unwrap_or_else(|| Body { kind: EntryKind::Corrupt(kind.to_vec()), round: None });
        let parent = self.take_number();
        self.push(seq, parent, turn, body);
        Ok(())
    }

    /// Returns the entries.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if more than a thousand rows are missing at the end.
    pub fn finish(mut self) -> Result<Vec<Entry>> {
        while !self.expected.is_empty() {
            self.take_missing_segment()?;
        }
        Ok(self.entries)
    }

    /// Adds all entries of the first segment as missing.
    fn take_missing_segment(&mut self) -> Result {
        let Some(last) = self.expected.front().map(|segment| segment.last) else { return Ok(()) };
        self.take_missing_before(last.saturating_add(1))
    }

    /// Adds the missing entries of the first segment before a number.
    fn take_missing_before(&mut self, seq: u64) -> Result {
        let Some(Segment { first, last, .. }) = self.expected.front().copied() else { return Ok(()) };
        let end = seq.min(last.saturating_add(1));
        if end.saturating_sub(first) > MOST_MISSING {
            return Err(StoreError::Corrupt { seq: Some(first), source: Some("entries are missing".into()) });
        }
        for seq in first..end {
            let parent = self.take_number();
            self.push(seq, parent, None, Body { kind: EntryKind::Corrupt(Vec::new()), round: None });
        }
        Ok(())
    }

    /// Consumes the next number and returns the parent of its entry.
    fn take_number(&mut self) -> Option<EntryId> {
        let next = self.expected.front_mut()?;
        let parent = next.parent.take();
        if next.first < next.last {
            next.first = next.first.saturating_add(1);
        } else {
            self.expected.pop_front();
        }
        parent
    }

    fn push(&mut self, seq: u64, parent: Option<EntryId>, turn: Option<TurnId>, body: Body) {
        if let Some(turn) = &turn {
            self.entries.iter_mut().take(self.nameless).for_each(|entry| entry.turn = turn.clone());
            self.nameless = 0;
        }
        let before = self.entries.last().map(|entry| entry.turn.clone());
        if turn.is_none() && self.nameless == self.entries.len() {
            self.nameless = self.nameless.saturating_add(1);
        }
        let turn = turn.or(before).unwrap_or_else(unknown_turn);
        self.entries.push(Entry { seq, turn, parent, kind: body.kind, round: body.round });
    }
}

/// Returns the turn of entries in a log without any readable turn.
fn unknown_turn() -> TurnId {
    TurnId::new("unknown").unwrap_or_else(|_| TurnId::random())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{completed, turn, user};
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

    const SHORT: &[u8] = br#"{"format":1,"kind":"summary","value":{"until":0,"text":"short"}}"#;

    fn segment(first: u64, last: u64, parent: Option<EntryId>) -> Segment {
        Segment { first, last, parent }
    }

    fn read(segments: &[(u64, u64)], rows: &[(u64, &[u8])]) -> Result<Vec<Entry>> {
        let segments = segments.iter().map(|(first, last)| segment(*first, *last, None)).collect();
        let mut log = LogReader::new(segments);
        rows.iter().try_for_each(|(seq, turn)| log.row(*seq, turn, SHORT))?;
        log.finish()
    }

    #[test]
    fn missing_or_damaged_entries_keep_place_and_turn() {
        let log = read(&[(2, 5), (8, 10)], &[(3, b"no turn"), (4, b"a"), (5, b"\xFF"), (9, b"b")]).unwrap();
        let told: Vec<_> = log.iter().map(|entry| (entry.seq, entry.turn.as_str())).collect();
        assert_eq!(told, [(2, "a"), (3, "a"), (4, "a"), (5, "a"), (8, "a"), (9, "b"), (10, "b")]);
        let read = log.iter().filter(|entry| matches!(entry.kind, EntryKind::Summary(_)));
        assert!(read.map(|entry| entry.seq).eq([4, 9]));
        let nothing = self::read(&[(7, 8)], &[]).unwrap();
        assert!(nothing.iter().all(|entry| entry.turn.as_str() == "unknown"), "{nothing:?}");
    }

    #[test]
    fn row_that_is_not_expected_is_refused() {
        for seq in [2, 1, 4, 5, 8, u64::MAX] {
            let refused = read(&[(1, 3), (6, 7)], &[(1, b"t"), (2, b"t"), (seq, b"t")]);
            assert!(
                matches!(refused, Err(StoreError::Corrupt { seq: Some(told), .. }) if told == seq),
                "{refused:?}"
            );
        }
    }

    #[test]
    fn known_damaged_row_keeps_bytes_and_turn() {
        let mut log = LogReader::new(vec![segment(1, 2, None)]);
        log.row(1, b"a", SHORT).unwrap();
        log.damaged_row(2, b"b", SHORT).unwrap();
        let log = log.finish().unwrap();
        assert_eq!((log[1].turn.as_str(), &log[1].kind), ("b", &EntryKind::Corrupt(SHORT.to_vec())));
    }

    #[test]
    fn segment_parent_belongs_to_its_first_entry() {
        let segments = vec![segment(1, 2, None), segment(5, 6, Some(EntryId(2)))];
        let mut log = LogReader::new(segments);
        for seq in [1, 2, 5, 6] {
            log.row(seq, b"t", SHORT).unwrap();
        }
        let parents: Vec<_> = log.finish().unwrap().into_iter().map(|entry| entry.parent).collect();
        assert_eq!(parents, [None, None, Some(EntryId(2)), None]);
    }

    #[test]
    fn law_r1_log_claiming_more_entries_is_refused() {
        for segments in [[(1, u64::MAX)], [(1, 1_002)]] {
            let refused = read(&segments, &[(1, b"t")]);
            assert!(matches!(refused, Err(StoreError::Corrupt { seq: Some(2), .. })), "{refused:?}");
        }
        assert_eq!(read(&[(1, 1_001)], &[(1, b"t")]).unwrap().len(), 1_001);
    }
}
