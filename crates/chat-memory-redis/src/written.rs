//! The entries of a batch as they are written.

use chat_memory_advisor::{Batch, EntryKind, NewEntry, StoreError};

use crate::failure::lasting;

/// An entry as the script takes it.
pub(crate) struct Written {
    pub(crate) turn: String,
    pub(crate) body: String,
    /// `1` if the turn is open after it, `0` if not, nothing if it is as before.
    pub(crate) open: &'static str,
}

/// The entries of a batch that has at most so many bytes.
pub(crate) fn written(batch: &Batch, most_bytes: usize) -> Result<Vec<Written>, StoreError> {
    let mut bytes = 0_usize;
    let mut entries = Vec::with_capacity(batch.entries.len());
    for NewEntry { turn, kind, .. } in &batch.entries {
        let body = serde_json::to_string(kind).map_err(lasting)?;
        bytes = bytes.saturating_add(body.len()).saturating_add(turn.as_str().len());
        if bytes > most_bytes {
            return Err(StoreError::TooLarge);
        }
        let open = match kind {
            EntryKind::Message(_) => "1",
            EntryKind::TurnEnded(_) => "0",
            _ => "",
        };
        entries.push(Written { turn: turn.as_str().into(), body, open });
    }
    Ok(entries)
}

/// The name of a batch within its conversation. A turn's id has no `/`, so no two keys have one name.
pub(crate) fn name(batch: &Batch) -> String {
    format!("{}/{}/{}", batch.key.turn, batch.key.round, batch.key.step)
}
