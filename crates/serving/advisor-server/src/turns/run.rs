//! `Run`: one run of a turn in this process, its slot, what the user said, and what becomes of it if the client disconnects.

use std::collections::HashMap;
use std::sync::Arc;

use advisor_core::{Error, Message, MessageContent, OnDrop, Text};
use chat_memory_advisor::MemoryReceipt;
use sha2::{Digest, Sha256};
use tokio::sync::watch;

use crate::access::limits::ServerLimits;
use crate::refusal::may_begin_again;
use crate::shared_turn::SharedTurn;
use crate::turns::IdOrigin;

/// One run of a turn in this process.
#[derive(Debug, Clone)]
pub(super) struct Run {
    pub(super) turn: SharedTurn,
    pub(super) receipt: MemoryReceipt,
    pub(super) id: IdOrigin,
}

impl Run {
    /// Checks whether a repeated request begins the turn again: its client has disconnected, its failure invites a retry,
    /// or memory never had it. A client that has not chosen the id cannot ask for the failure again, only for an answer.
    pub(super) fn is_void(&self) -> bool {
        let turn = &self.turn;
        let is_answer = |error: &Error| self.id == IdOrigin::Client && !may_begin_again(error.kind());
        turn.is_abandoned()
            || turn.error().is_some_and(|error| !is_answer(&error))
            || self.is_outside_memory()
    }

    /// Checks whether the turn has ended, and memory never had it.
    pub(super) fn is_outside_memory(&self) -> bool {
        self.turn.has_ended() && !self.receipt.has_turn()
    }
}

/// The number of turns that run now, in all and of each tenant.
#[derive(Debug, Clone, Default)]
pub(super) struct Slots(Arc<watch::Sender<HashMap<Text, usize>>>);

/// The place of one running turn, which its drop gives back.
#[derive(Debug)]
pub(super) struct Slot {
    slots: Slots,
    tenant: Text,
}

impl Slots {
    /// Takes a place for a turn of a tenant, unless as many run as the limits allow, in all or of this tenant.
    pub(super) fn take(&self, tenant: &str, limits: &ServerLimits) -> Option<Slot> {
        let tenant = Text::from(tenant);
        let is_taken = self.0.send_if_modified(|running| {
            let of_tenant = running.get(&tenant).copied().unwrap_or_default();
            let is_free = running.values().sum::<usize>() < limits.running_turns
                && of_tenant < limits.running_turns_per_tenant;
            if is_free {
                running.insert(tenant.clone(), of_tenant + 1);
            }
            is_free
        });
        is_taken.then(|| Slot { slots: self.clone(), tenant })
    }

    /// Waits until no turn runs.
    pub(super) async fn all_free(&self) {
        // The sender is in `self`, so it is not gone.
        drop(self.0.subscribe().wait_for(HashMap::is_empty).await);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.0.send_modify(|running| {
            if let Some(count) = running.get_mut(&self.tenant) {
                *count -= 1;
                if *count == 0 {
                    running.remove(&self.tenant);
                }
            }
        });
    }
}

/// The policy for a turn whose client disconnects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnDisconnect {
    /// The protocol cannot resume the turn. It stops, unless the application finishes dropped turns.
    Stop,
    /// The turn stops: the client has chosen so.
    StopOnRequest,
    /// The turn continues, and the client can join it again.
    Continue,
}

impl OnDisconnect {
    /// Returns how the turn is cancelled once nobody reads it any more. `on_drop` is the policy of the application for dropped
    /// turns.
    ///
    /// A turn that is finished keeps its slot and its handle.
    pub(super) fn on_unread(self, on_drop: OnDrop) -> Option<OnDrop> {
        match (self, on_drop) {
            (Self::Continue, _) | (Self::Stop, OnDrop::FinishTurn) => None,
            (Self::StopOnRequest, OnDrop::FinishTurn) => Some(OnDrop::KeepPartial),
            (Self::Stop | Self::StopOnRequest, mode) => Some(mode),
        }
    }
}

/// The digests of a message of the user. White space does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Said {
    text: [u8; 32],
    /// As they stand: media in another order are another message.
    media: Vec<[u8; 32]>,
}

impl Said {
    pub(crate) fn new(message: &Message) -> Self {
        let parts = match message.content() {
            MessageContent::User(parts) => parts.as_slice(),
            _ => &[],
        };
        let (mut text, mut media) = (Sha256::new(), Vec::<[u8; 32]>::new());
        for part in parts {
            match part.as_text() {
                Some(piece) => piece.split_whitespace().for_each(|word| text.update(word)),
                None => media.push(Sha256::digest(serde_json::to_vec(part).unwrap_or_default()).into()),
            }
        }
        Self { text: text.finalize().into(), media }
    }

    /// Checks whether a client may have kept this message as `sent`: it may have left out media.
    pub(crate) fn has(&self, sent: &Self) -> bool {
        let mut rest = self.media.iter();
        self.text == sent.text && sent.media.iter().all(|part| rest.any(|stored| stored == part))
    }
}
