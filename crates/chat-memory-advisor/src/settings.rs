//! `Settings` of a memory, with the conversations that its turns share; `MemoryReceipt`, an extension of a turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use conversation_store::ConversationStore;

use crate::conversation::Registry;
use crate::transcript::window::Measure;
use crate::{OnBusy, Window};

/// The settings of a memory. Clones share the conversations, even if other settings differ.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) store: Arc<dyn ConversationStore>,
    pub(crate) measure: Measure,
    pub(crate) on_busy: OnBusy,
    pub(crate) lease_ttl: Duration,
    pub(crate) registry: Arc<Registry>,
}

impl Settings {
    pub(crate) fn new(store: Arc<dyn ConversationStore>) -> Self {
        Self {
            store,
            measure: Window::All.into(),
            on_busy: OnBusy::Reject,
            lease_ttl: Duration::from_secs(30),
            registry: Arc::default(),
        }
    }
}

/// A turn extension that tells whether memory has the turn. Clones share the answer.
///
/// Memory has a turn once its input is stored. It never has one that an advisor outside memory and the tool loop refused
/// or answered. Nor has it one that it refused itself, such as while another turn runs. An answer of an advisor inside the loop
/// is stored, and so is its turn.
///
/// # Example
/// ```
/// use advisor_core::ChatClient;
/// use advisor_testkit::{Answer, ScriptedModel};
/// use chat_memory_advisor::{ChatMemoryAdvisor, InMemoryStore, MemoryReceipt};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> advisor_core::Result<()> {
/// let model = ScriptedModel::new([Answer::from_text("It is noon.")]);
/// let client = ChatClient::builder(model).advisor(ChatMemoryAdvisor::new(InMemoryStore::new())).build()?;
/// let receipt = MemoryReceipt::default();
/// client.prompt().user("How late is it?").conversation("c1").extension(receipt.clone()).call().await?;
/// assert!(receipt.has_turn());
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Default)]
pub struct MemoryReceipt(Arc<AtomicBool>);

impl MemoryReceipt {
    /// Checks whether memory has the turn.
    #[must_use]
    pub fn has_turn(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn note_turn(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
