use advisor_core::ConversationKey;

use crate::conversation::map::{ConversationMap, Weight};
use crate::conversation::unfinished_turn::OVERHEAD;
use crate::transcript::summary::Pending;

/// The summaries that are being made or wait to be written, bounded by their bytes.
pub(crate) type PendingSummaries = ConversationMap<InProgress>;

/// The summary of one conversation.
#[derive(Debug, Default)]
pub(crate) struct InProgress {
    /// A summary that is not written yet.
    pending: Option<Pending>,
    is_made: bool,
}

impl ConversationMap<InProgress> {
    /// Returns the summary that is not written yet.
    pub(crate) fn pending(&self, key: &ConversationKey) -> Option<Pending> {
        self.read(key, |summary| summary.pending.clone()).flatten()
    }

    /// Notes that a summary is being made. Returns `false` if one is being made already.
    pub(crate) fn start(&self, key: &ConversationKey) -> bool {
        self.change(key, |summary| !std::mem::replace(&mut summary.is_made, true))
    }

    /// Notes that no summary is being made any more.
    pub(crate) fn stop(&self, key: &ConversationKey) {
        self.change_known(key, |summary| summary.is_made = false);
    }

    /// Keeps a summary until it is written. If all summaries exceed the limit, drops it; it is made again later.
    pub(crate) fn keep(&self, key: &ConversationKey, pending: Pending) {
        self.change(key, |summary| summary.pending = Some(pending));
        if self.weight() > self.most {
            self.change_known(key, |summary| summary.pending = None);
        }
    }

    /// Removes a summary that covers no entry after `until`: a summary that covers as much is written.
    pub(crate) fn note_written(&self, key: &ConversationKey, until: u64) {
        self.change_known(key, |summary| {
            summary.pending.take_if(|pending| pending.summary.until <= until);
        });
    }
}

impl Weight for InProgress {
    const MOST: usize = 8 << 20;

    fn weight(&self) -> usize {
        let text = self.pending.as_ref().map(|pending| pending.summary.text.len());
        if self.is_made || text.is_some() { OVERHEAD + text.unwrap_or_default() } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_logs::turn;
    use conversation_store::Summary;

    #[test]
    fn law_r1_pending_summaries_are_bounded() {
        let summaries = PendingSummaries::with_most(10 * OVERHEAD);
        let key = |name: usize| ConversationKey::new(&format!("c{name}")).unwrap();
        for name in 0..100 {
            assert!(summaries.start(&key(name)) && !summaries.start(&key(name)));
            summaries.keep(&key(name), Pending { summary: Summary::new(3, "they talked"), turn: turn("t") });
            summaries.stop(&key(name));
        }
        assert!(summaries.len() <= 10, "{}", summaries.len());
        assert!(summaries.pending(&key(0)).is_some());
        summaries.note_written(&key(0), 2);
        assert!(summaries.pending(&key(0)).is_some(), "another one was written");
        summaries.note_written(&key(0), 3);
        assert!(summaries.pending(&key(0)).is_none());
    }
}
