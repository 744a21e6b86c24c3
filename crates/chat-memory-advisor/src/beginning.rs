use advisor_core::{Message, Result, Role, TurnId};

use crate::claim::Claim;
use crate::opening::{Opening, known_turn};
use crate::prompt::Prompt;
use crate::seal::{ATTEMPTS, append};
use crate::turn_memory::{Inner, Stage};
use crate::turn_state::TurnState;
use crate::{Batch, BatchKey, StoreError, Version, View, WhenBusy};

/// How a turn begins: its conversation is claimed and read, its input stored.
impl Inner {
    /// The state of the turn; its input is stored first, unless it is already.
    pub(crate) async fn begun<'a>(
        &self,
        stage: &'a mut Stage,
        system: &[Message],
        when_busy: WhenBusy,
    ) -> Result<&'a mut TurnState> {
        match &mut stage.state {
            Some(state) => Ok(state),
            none => {
                stage.tried = true;
                let said = stage.said.iter().cloned().collect();
                let claim = self.hold(when_busy).await?;
                match self.begin(claim, said, system).await {
                    Ok(state) => Ok(none.insert(state)),
                    Err(error) => {
                        self.give_lease_back().await;
                        Err(error)
                    }
                }
            }
        }
    }

    async fn begin(&self, mut claim: Claim, said: Vec<Message>, system: &[Message]) -> Result<TurnState> {
        let answers_calls = said.iter().any(|message| message.role() == Role::Tool);
        let mut found_open = None;
        let mut attempt = 0;
        loop {
            attempt += 1;
            let snapshot = if answers_calls {
                self.store.load(&self.key, View::All).await
            } else {
                self.registry.load(&*self.store, &self.key, &self.measure).await
            };
            let snapshot = snapshot.map_err(StoreError::on_load)?;
            let unfinished = self.registry.unfinished(&self.key);
            let open = snapshot.open_turn.as_ref().map(|open| open.turn.clone());
            let dead = |turn: &TurnId| {
                *turn == self.turn
                    || Some(turn) == found_open.as_ref()
                    || unfinished.iter().any(|known| known.turn == *turn)
            };
            if attempt > 1 && open.as_ref().is_some_and(|turn| !dead(turn)) {
                return Err(StoreError::Conflict { current: snapshot.version }.into());
            }
            let opening = Opening::plan(&self.turn, said.clone(), snapshot, &unfinished, &self.measure)?;
            claim.beginning |= !opening.entries.is_empty();
            match self.append_input(&opening).await {
                // What an earlier turn of this process wrote last may have come late.
                Err(StoreError::Conflict { .. }) if attempt < ATTEMPTS => found_open = open,
                // The key of the input is the turn's id: the turn is further back than the window reaches.
                Err(StoreError::KeyReused) => {
                    claim.beginning = false;
                    return Err(known_turn(&self.turn));
                }
                Err(error) => return Err(error.into()),
                Ok(version) => {
                    claim.beginning = false;
                    if version != opening.version.after(opening.entries.len()) {
                        return Err(known_turn(&self.turn));
                    }
                    self.registry.forget_all(&self.key);
                    let prompt = Prompt::new(system.to_vec(), opening.messages);
                    return Ok(TurnState::new(claim, version, prompt));
                }
            }
        }
    }

    async fn append_input(&self, opening: &Opening) -> Result<Version, StoreError> {
        if opening.entries.is_empty() {
            return Ok(opening.version);
        }
        let key = BatchKey::new(self.turn.clone(), 0, "input");
        let batch = Batch { fence: self.hold.fence(), ..Batch::new(key, opening.entries.clone()) };
        append(&*self.store, &self.key, opening.version, batch).await
    }
}
