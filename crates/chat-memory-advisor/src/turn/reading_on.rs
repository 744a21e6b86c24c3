//! `TurnMemoryState::fit` and `read_on`: read older entries during a turn when the window has room for them.

use advisor_core::Result;

use crate::transcript::repair::Repair;
use crate::transcript::whole_turns::whole_turns;
use crate::turn::TurnMemoryState;
use crate::turn::reading::GROWTH;
use crate::turn::state::TurnState;
use conversation_store::{EntryId, ReadRange, StoreError, same_turn};

/// The smallest number of entries for a further read.
const LEAST: usize = 64;

/// Reads more of the past while a turn runs.
impl TurnMemoryState {
    /// Fits the prompt into the window, and reads on while something that was not read yet might fit, too.
    ///
    /// No read at the beginning of a turn is enough for all of it. With less space, turns that fitted before are
    /// skipped, and older ones are sent.
    pub(crate) async fn fit(&self, state: &mut TurnState) -> Result<()> {
        while !state.prompt.fit(&self.measure)?
            && let Some(read) = state.read
        {
            self.read_on(state, read.saturating_mul(GROWTH).max(LEAST)).await?;
        }
        Ok(())
    }

    /// Reads the last `count` entries of the turn's branch.
    async fn read_on(&self, state: &mut TurnState, count: usize) -> Result<()> {
        let tip = state.parent.unwrap_or(EntryId::new(state.version.as_u64()));
        let range = ReadRange::LastEntries(count);
        let snapshot =
            self.store.load_branch(&self.key, tip, range).await.map_err(StoreError::into_load_error)?;
        self.registry.damaged.warn(&self.key, &snapshot);
        let is_all = snapshot.is_whole() || snapshot.entries.len() < count;
        let mut log = whole_turns(snapshot);
        let own = log
            .chunk_by(same_turn)
            .next_back()
            .filter(|last| last.first().is_some_and(|entry| entry.turn == self.turn));
        log.truncate(log.len().saturating_sub(own.map_or(0, <[_]>::len)));
        state.prompt.reach_back(Repair::from_log(&log, &self.measure.texts).finish());
        state.read = (!is_all).then_some(count);
        Ok(())
    }
}
