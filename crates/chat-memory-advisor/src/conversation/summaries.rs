//! `PendingSummaries`: summaries that are being made or wait to be written, with their bound.

use advisor_core::ConversationKey;

use crate::conversation::map::{ConversationMap, Weight};
use crate::conversation::unfinished_turn::OVERHEAD;
use crate::transcript::summarizer::LONGEST_SUMMARY;
use crate::transcript::summary::Pending;

/// The summaries that are being made or wait to be written, bounded by their bytes. One that is being made counts as
/// the longest one.
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

    /// Notes that a summary is being made. Returns `false` if one is being made already, or if there is no room to
    /// keep another one.
    pub(crate) fn start(&self, key: &ConversationKey) -> bool {
        let has_room = self.weight() + OVERHEAD + LONGEST_SUMMARY <= self.most;
        has_room && self.change(key, |summary| !std::mem::replace(&mut summary.is_made, true))
    }

    /// Notes that no summary is being made any more.
    pub(crate) fn stop(&self, key: &ConversationKey) {
        self.change_known(key, |summary| summary.is_made = false);
    }

    /// Keeps a summary that was made until it is written.
    ///
    /// If all summaries exceed the limit, drops it. That happens only after concurrent starts took the same room.
    pub(crate) fn keep(&self, key: &ConversationKey, pending: Pending) {
        self.change(key, |summary| *summary = InProgress { pending: Some(pending), is_made: false });
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
        let made = self.is_made.then_some(LONGEST_SUMMARY);
        if text.is_none() && made.is_none() {
            return 0;
        }
        OVERHEAD + text.unwrap_or_default() + made.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_logs::turn;
    use conversation_store::Summary;

    #[test]
    fn law_r1_pending_summaries_are_bounded() {
        let text = "they talked".repeat(1000);
        let summaries =
            PendingSummaries::with_most(OVERHEAD + LONGEST_SUMMARY + 10 * (OVERHEAD + text.len()));
        let key = |name: usize| ConversationKey::new(&format!("c{name}")).unwrap();
        let mut made = 0;
        for name in 0..100 {
            if summaries.start(&key(name)) {
                made += 1;
                assert!(!summaries.start(&key(name)), "one at a time");
                summaries.keep(&key(name), Pending { summary: Summary::new(3, &*text), turn: turn("t") });
                summaries.stop(&key(name));
                assert!(summaries.pending(&key(name)).is_some(), "what was made is kept");
            }
            assert!(summaries.weight() <= summaries.most);
        }
        assert_eq!((made, summaries.len()), (11, 11), "none is made that would be dropped");
        assert!(summaries.pending(&key(0)).is_some());
        summaries.note_written(&key(0), 2);
        assert!(summaries.pending(&key(0)).is_some(), "another one was written");
        summaries.note_written(&key(0), 3);
        assert!(summaries.pending(&key(0)).is_none());
    }
}
