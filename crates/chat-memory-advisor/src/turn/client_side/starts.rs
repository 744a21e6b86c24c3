//! Appends the starts of client-side calls, each at most once.

use advisor_core::{CallStart, ClientSideCall, Error, ErrorKind, Result};
use conversation_store::{
    Batch, BatchKey, BatchStep, Entry, EntryId, EntryKind, NewEntry, StoreError, Version, append_once,
};
use uuid::Uuid;

use crate::turn::TurnMemoryState;
use crate::turn::client_side::last_turn::LastTurn;
use crate::turn::reading::find_in_log;

impl TurnMemoryState {
    /// Appends starts behind the turn that made the calls. `plan` checks that turn and returns the starts, and a value
    /// that is returned once they are stored.
    pub(crate) async fn append_starts<T>(
        &self,
        plan: impl Fn(&LastTurn) -> Result<(Vec<CallStart>, T)>,
    ) -> Result<T> {
        let mut tried = None;
        loop {
            let last = LastTurn::load(&*self.store, &self.registry, &self.measure.texts, &self.key).await?;
            let (starts, planned) = plan(&last)?;
            let Some(first) = starts.first() else { return Ok(planned) };
            if let Some(started) = self.started_on_a_branch(&last, &starts).await? {
                return Err(already_started(&started));
            }
            let batch = last.batch(first, &starts).with_token(self.lease.token());
            match append_once(&*self.store, &self.key, last.version, batch).await {
                // Another start was recorded, or the conversation has continued.
                Err(StoreError::Conflict { .. }) if tried != Some(last.version) => tried = Some(last.version),
                outcome => return outcome.map(|_| planned).map_err(Error::from),
            }
        }
    }

    /// Returns the first of these starts that is recorded after the answer, on any branch.
    async fn started_on_a_branch(&self, last: &LastTurn, starts: &[CallStart]) -> Result<Option<CallStart>> {
        let after = last.entries.first().map_or(EntryId::BEGINNING, |entry| EntryId::new(entry.seq));
        let is_one = |entry: &Entry| match &entry.kind {
            EntryKind::CallStarted(known) => starts.iter().find(|start| start.key == known.key).cloned(),
            _ => None,
        };
        find_in_log(&*self.store, &self.key, after, is_one).await.map_err(StoreError::into_load_error)
    }
}

fn already_started(start: &CallStart) -> Error {
    let text = format!("the call {} was started before; do not run it, and wait for its result", start.key);
    Error::new(ErrorKind::CallAlreadyStarted, text)
}

impl LastTurn {
    /// Returns the start, if the conversation waits for its call and the call was not started.
    pub(crate) fn open_call(&self, start: &CallStart) -> Result<CallStart> {
        let calls = self.client_side_calls();
        let is_meant =
            |call: &&ClientSideCall| call.key.as_ref() == Some(&start.key) && call.call.id == start.call_id;
        match calls.iter().find(is_meant) {
            None => Err(Error::new(
                ErrorKind::NoClientSideCall,
                format!(
                    "the conversation does not wait for the call {}; list its `client_side_calls`",
                    start.key
                ),
            )),
            Some(call) if call.started => Err(already_started(start)),
            Some(_) => Ok(start.clone()),
        }
    }

    /// Returns the batch that appends the starts after the end of the turn that made the calls, all in one answer.
    ///
    /// Turns without transcript messages, such as a rolled-back one, may follow that turn. They are left on
    /// another branch, since the entries of a turn must be adjacent.
    fn batch(&self, first: &CallStart, starts: &[CallStart]) -> Batch {
        let turn = &first.key.turn;
        // The key is unique: a second writer of the same start must not get success under the first one's key.
        let key = BatchKey::new(turn.clone(), first.key.round, BatchStep::Starts(Uuid::now_v7()));
        let entry = |start: &CallStart| NewEntry::new(turn.clone(), EntryKind::CallStarted(start.clone()));
        let entries = starts.iter().map(entry).collect();
        let seqs = self.entries.iter().map(|entry| entry.seq);
        let written = seqs.filter(|seq| *seq <= self.version.as_u64()).max();
        let parent = written.filter(|seq| Version::new(*seq) != self.version).map(EntryId::new);
        Batch::new(key, entries).with_parent(parent).with_last_turn(self.last_turn.clone())
    }
}
