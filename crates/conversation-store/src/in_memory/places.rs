//! `Places`: the map of logs, the bound on conversations, eviction, and fencing tokens.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use advisor_core::ConversationKey;
use dashmap::mapref::one::Ref;
use dashmap::{DashMap, Entry as Slot};
use tokio::time::Instant;

use super::log::Log;
use super::recent::Recent;
use crate::{FencingToken, Result, StoreError};

/// The logs of a store by key, and the bound on their number.
#[derive(Default)]
pub(super) struct Places {
    logs: DashMap<ConversationKey, Log>,
    /// The number of issued tokens.
    tokens: AtomicU64,
    /// The time of the first request for a lease.
    start: OnceLock<Instant>,
    bound: Option<Bound>,
}

/// The bound of a store. Creating or removing a log requires the lock `recent`, which is taken before any log.
struct Bound {
    most: NonZeroUsize,
    recent: Mutex<Recent>,
    /// The highest token of evicted logs. A log that starts again accepts no lower one.
    forgotten: AtomicU64,
}

impl Places {
    pub(super) fn bounded(most: NonZeroUsize) -> Self {
        let bound = Bound { most, recent: Mutex::default(), forgotten: AtomicU64::new(0) };
        Self { bound: Some(bound), ..Self::default() }
    }

    pub(super) fn logs(&self) -> &DashMap<ConversationKey, Log> {
        &self.logs
    }

    /// Returns a token above this one, the highest of its log, and above the number of issued tokens.
    pub(super) fn next_token(&self, above: Option<FencingToken>) -> FencingToken {
        let last = self.tokens.fetch_add(1, Ordering::Relaxed).max(above.map_or(0, FencingToken::as_u64));
        FencingToken::new(last.saturating_add(1))
    }

    /// Returns the time since the first request for a lease.
    pub(super) fn since_start(&self, now: Instant) -> Duration {
        now.saturating_duration_since(*self.start.get_or_init(|| now))
    }

    /// Reads a conversation and records the use.
    pub(super) fn used(&self, key: &ConversationKey) -> Option<Ref<'_, ConversationKey, Log>> {
        if let Some(bound) = &self.bound {
            bound.recent().used(key);
        }
        self.logs.get(key)
    }

    /// Blocks creation and removal of logs in a bounded store while held, so that a list never exceeds the bound.
    pub(super) fn unchanged(&self) -> Option<impl Drop> {
        self.bound.as_ref().map(Bound::recent)
    }

    /// Runs `work` on a conversation's log. A new log is kept unless it is blank.
    pub(super) fn within<T>(
        &self,
        key: &ConversationKey,
        work: impl FnOnce(&mut Log) -> Result<T>,
    ) -> Result<T> {
        if let Some(bound) = &self.bound {
            return self.within_bound(bound, key, work);
        }
        if let Some(mut log) = self.logs.get_mut(key) {
            return work(&mut log);
        }
        match self.logs.entry(key.clone()) {
            Slot::Occupied(mut log) => work(log.get_mut()),
            Slot::Vacant(slot) => {
                let mut log = Log::default();
                let done = work(&mut log)?;
                if !log.is_blank() {
                    slot.insert(log);
                }
                Ok(done)
            }
        }
    }

    fn within_bound<T>(
        &self,
        bound: &Bound,
        key: &ConversationKey,
        work: impl FnOnce(&mut Log) -> Result<T>,
    ) -> Result<T> {
        let mut recent = bound.recent();
        recent.used(key);
        if let Some(mut log) = self.logs.get_mut(key) {
            let done = work(&mut log)?;
            // A deleted conversation may have begun anew.
            if log.entries.exist() || log.holder().is_some() {
                recent.revive(key);
            }
            return Ok(done);
        }
        let mut log = Log::behind(bound.forgotten());
        let done = work(&mut log)?;
        if !log.is_blank() {
            // A refused batch evicts nothing.
            self.make_room(bound, &mut recent)?;
            recent.enter(key.clone());
            self.logs.insert(key.clone(), log);
        }
        Ok(done)
    }

    /// Evicts the least recently used idle conversation, if the store is full.
    fn make_room(&self, bound: &Bound, recent: &mut Recent) -> Result {
        if recent.len() < bound.most.get() {
            return Ok(());
        }
        let let_go = recent.oldest_first().find_map(|key| self.logs.remove_if(key, |_, log| log.is_idle()));
        let (key, log) = let_go.ok_or(StoreError::Full { limit: bound.most.get() })?;
        bound.forgotten.fetch_max(log.token.map_or(0, FencingToken::as_u64), Ordering::Relaxed);
        recent.leave(&key);
        Ok(())
    }

    /// Removes a conversation's entries, and also its log unless that has a token. In a bounded store, such a log is
    /// the first that makes room.
    pub(super) fn delete(&self, key: &ConversationKey) {
        let recent = self.bound.as_ref().map(Bound::recent);
        if let Some(mut log) = self.logs.get_mut(key) {
            log.clear();
        }
        let removed = self.logs.remove_if(key, |_, log| log.token.is_none());
        match recent {
            Some(mut recent) if removed.is_some() => recent.leave(key),
            Some(mut recent) => recent.retire(key),
            None => {}
        }
    }
}

impl Bound {
    fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forgotten(&self) -> Option<FencingToken> {
        let token = self.forgotten.load(Ordering::Relaxed);
        (token > 0).then(|| FencingToken::new(token))
    }
}
