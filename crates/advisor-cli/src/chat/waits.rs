//! Notes about waits before another attempt at an answer.

use std::time::Duration;

use advisor_chain::chain::wait_in_words;
use advisor_chain::{Error, ErrorKind};
use tokio::sync::mpsc;

/// The notes that may be unread. Further ones are dropped.
const MOST: usize = 8;

/// Writes the notes: a model takes it.
#[derive(Debug, Clone)]
pub(crate) struct WaitNotes(mpsc::Sender<String>);

/// Reads the notes of a chat's model.
#[derive(Debug)]
pub(super) struct Waits {
    notes: mpsc::Receiver<String>,
    /// Keeps the channel open, so that `next` waits.
    _open: WaitNotes,
}

pub(super) fn waits() -> (WaitNotes, Waits) {
    let (sender, notes) = mpsc::channel(MOST);
    (WaitNotes(sender.clone()), Waits { notes, _open: WaitNotes(sender) })
}

impl WaitNotes {
    pub(crate) fn note(&self, error: &Error, wait: Duration) {
        let reason = match error.kind() {
            ErrorKind::Provider { .. } => "the provider failed".to_owned(),
            kind => kind.as_str().replace('_', " "),
        };
        let _ = self.0.try_send(format!("[{reason}; asking again in {}]", wait_in_words(wait)));
    }
}

impl Waits {
    /// Returns the next note, once there is one.
    pub(super) async fn next(&mut self) -> Option<String> {
        self.notes.recv().await
    }
}
