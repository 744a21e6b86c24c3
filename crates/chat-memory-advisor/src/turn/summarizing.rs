//! Starts a summary in the background after a turn, and keeps it for the next one.

use std::sync::Arc;

use advisor_core::Result;
use futures::FutureExt;

use crate::Summarizer;
use crate::transcript::summary::Pending;
use crate::transcript::whole_turns::whole_turns;
use crate::turn::TurnMemoryState;
use crate::turn::reading::Reading;
use crate::turn::start_plan::StartPlan;
use conversation_store::{EntryKind, StoreError};

/// Makes summaries of a conversation after a turn of it has ended.
impl TurnMemoryState {
    /// Spawns a summary, if one is due after a turn with `earlier` uncovered turns before it. No turn waits for
    /// it.
    pub(crate) fn summarize_later(self: &Arc<Self>, earlier: usize) {
        let due = |summarizer: &&Summarizer| summarizer.is_due(earlier.saturating_add(1));
        let Some(summarizer) = self.measure.summarizer.as_ref().filter(due) else { return };
        if !self.registry.summaries.start(&self.key) {
            return;
        }
        let (asking, with) = (Asking(Arc::clone(self)), summarizer.clone());
        summarizer.spawner.spawn(async move { asking.0.summarize(&with).await }.boxed());
    }

    /// Removes a pending summary that was written with the beginning of the turn.
    pub(crate) fn summary_is_written(&self, opening: &StartPlan) {
        self.registry.summaries.note_written(&self.key, last_written(opening));
    }

    async fn summarize(&self, summarizer: &Summarizer) {
        if let Err(error) = self.summary(summarizer).await {
            tracing::warn!(conversation = %self.key, %error, "no summary could be made; the next turn tries again");
        }
    }

    async fn summary(&self, summarizer: &Summarizer) -> Result<()> {
        let snapshot = self.registry.load(&*self.store, &self.key, None, &Reading::new(&self.measure)).await;
        let log = whole_turns(snapshot.map_err(StoreError::into_load_error)?);
        // Kept until the next turn writes it: an append now would change the version under a turn that runs.
        let summary = summarizer.summarize(&log).await?.and_then(|summary| Pending::new(summary, &log));
        if let Some(summary) = summary {
            self.registry.summaries.keep(&self.key, summary);
        }
        Ok(())
    }
}

fn last_written(opening: &StartPlan) -> u64 {
    let summaries = opening.entries.iter().filter_map(|entry| match &entry.kind {
        EntryKind::Summary(summary) => Some(summary.until),
        _ => None,
    });
    summaries.max().unwrap_or_default()
}

/// Marks that a summary is being made. If a spawner discards the work, dropping this allows the next one.
struct Asking(Arc<TurnMemoryState>);

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.registry.summaries.stop(&self.0.key);
    }
}
