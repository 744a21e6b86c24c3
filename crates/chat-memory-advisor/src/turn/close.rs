//! `Registry::close`: writes the entries that close a stopped turn, unless it continues. `make_room` closes all of
//! them when a bounded store is full.

use advisor_core::ConversationKey;
use conversation_store::{
    Batch, BatchKey, BatchStep, ConversationStore, FencingToken, ReadRange, StoreError, append_once,
    last_end, same_turn,
};

use crate::MemoryTexts;
use crate::conversation::Registry;
use crate::conversation::unfinished_turn::UnfinishedTurn;
use crate::turn::TurnMemoryState;
use crate::turn::closing_entries::{closing, end_of};

impl Registry {
    /// Closes an unfinished turn of this process, unless it is closed already or another turn closes it.
    ///
    /// # Errors
    /// Those of the store; the turn stays unfinished.
    pub(crate) async fn close(
        &self,
        store: &dyn ConversationStore,
        key: &ConversationKey,
        unfinished: &UnfinishedTurn,
        texts: &MemoryTexts,
    ) -> Result<(), StoreError> {
        let closed = self.try_close(store, key, unfinished, texts).await;
        self.note_closed(key, unfinished, closed)
    }

    /// Writes the end of an unfinished turn, which stays registered.
    ///
    /// # Errors
    /// [`Fenced`](StoreError::Fenced) if another turn holds the conversation by now, in this process or elsewhere.
    pub(crate) async fn try_close(
        &self,
        store: &dyn ConversationStore,
        key: &ConversationKey,
        unfinished: &UnfinishedTurn,
        texts: &MemoryTexts,
    ) -> Result<(), StoreError> {
        let token = self.leases.token(key).max(unfinished.token);
        close_while(store, key, unfinished, token, texts, || self.is_unfinished(key, unfinished)).await
    }

    /// Closes all unfinished turns of this process, in all conversations, and releases the leases that no turn
    /// needs. Returns the first failure of the store.
    pub(crate) async fn close_all(
        &self,
        store: &dyn ConversationStore,
        texts: &MemoryTexts,
    ) -> Result<(), StoreError> {
        let mut outcome = Ok(());
        for (key, unfinished) in self.unfinished.all() {
            let closed = self.close(store, &key, &unfinished, texts).await;
            outcome = outcome.and(closed);
        }
        let Some(leases) = store.leases() else { return outcome };
        for (key, token) in self.idle_tokens() {
            let released = leases.release(&key, token).await;
            if released.is_ok() {
                self.leases.note_released(&key, token);
            }
            outcome = outcome.and(released);
        }
        outcome
    }

    /// Handles the outcome of closing a turn. If another turn holds the conversation by now, that turn closes the
    /// earlier ones. A turn of this process does so with the shown text, which is kept for it. A turn of another
    /// process does so without it.
    pub(crate) fn note_closed(
        &self,
        key: &ConversationKey,
        unfinished: &UnfinishedTurn,
        closed: Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        match closed {
            Ok(()) => self.unfinished.forget(key, unfinished),
            Err(StoreError::Fenced) if self.is_used_after(key, unfinished) => {}
            Err(StoreError::Fenced) => {
                tracing::warn!(
                    conversation = %key,
                    turn = %unfinished.turn,
                    "another process continued the conversation before a dropped turn was closed, and the text that the turn had shown is lost"
                );
                self.unfinished.forget(key, unfinished);
            }
            failed => return failed,
        }
        Ok(())
    }
}

impl TurnMemoryState {
    /// Closes the turns that this process left open, since a bounded store does not evict their conversations.
    pub(crate) async fn make_room(&self) {
        if let Err(error) = self.registry.close_all(&*self.store, &self.measure.texts).await {
            tracing::debug!(%error, "a dropped turn could not be closed to free space for another conversation");
        }
    }
}

/// The maximum attempts of a write while late writes of the same turn conflict with it.
pub(crate) const ATTEMPTS: usize = 4;

/// Closes a turn that will not continue. Does nothing if it has ended, another turn has begun, or the same turn
/// continues. The same turn continues here if it is not registered any more, or in another process.
async fn close_while(
    store: &dyn ConversationStore,
    key: &ConversationKey,
    unfinished: &UnfinishedTurn,
    token: Option<FencingToken>,
    texts: &MemoryTexts,
    is_unfinished: impl Fn() -> bool,
) -> Result<(), StoreError> {
    let mut attempts = 0;
    loop {
        let snapshot = store.load(key, ReadRange::LastTurns(1)).await?;
        let entries = snapshot.entries.chunk_by(same_turn).next_back().unwrap_or_default();
        let end = end_of(entries, std::slice::from_ref(unfinished));
        let is_last = entries.first().is_some_and(|entry| entry.turn == unfinished.turn);
        // The calls at the end of a completed turn are for the caller to answer.
        let goes_on = !is_unfinished() || !unfinished.is_last_to_run(entries);
        if !is_last || last_end(entries) == Some(&end) || goes_on {
            return Ok(());
        }
        // A turn that continues after its end can be closed again, at another version.
        let step = BatchStep::Closed(snapshot.version);
        let key_of_batch = BatchKey::new(unfinished.turn.clone(), 0, step);
        let last_turn = Some(unfinished.turn.clone());
        let batch = Batch::new(key_of_batch, closing(entries, &end, &[], texts))
            .with_token(token)
            .with_last_turn(last_turn);
        attempts += 1;
        match append_once(store, key, snapshot.version, batch).await {
            Err(StoreError::Conflict { .. }) if attempts < ATTEMPTS => {}
            outcome => return outcome.map(drop),
        }
    }
}

#[cfg(test)]
mod tests;
