//! The settings of a memory, and the conversations that its turns share.

use std::sync::Arc;
use std::time::Duration;

use conversation_store::{ConversationStore, TimeoutStore};

use crate::conversation::Registry;
use crate::transcript::window::Measure;
use crate::{OnBusy, Window};

/// The settings of a memory. Clones share the conversations, even if other settings differ.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) store: Arc<TimeoutStore>,
    pub(crate) measure: Measure,
    pub(crate) on_busy: OnBusy,
    pub(crate) lease_ttl: Duration,
    pub(crate) registry: Arc<Registry>,
}

impl Settings {
    pub(crate) fn new(store: Arc<dyn ConversationStore>) -> Self {
        Self {
            store: Arc::new(TimeoutStore::new(store, Duration::from_secs(30))),
            measure: Window::All.into(),
            on_busy: OnBusy::Reject,
            lease_ttl: Duration::from_secs(30),
            registry: Arc::default(),
        }
    }

    pub(crate) fn store(&self) -> Arc<dyn ConversationStore> {
        Arc::<TimeoutStore>::clone(&self.store)
    }
}
