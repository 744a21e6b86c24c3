//! `MemoryReceipt`: a turn extension that tells whether memory has the turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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
/// let receipt = MemoryReceipt::new();
/// client.prompt().user("How late is it?").conversation("c1").extension(receipt.clone()).call().await?;
/// assert!(receipt.has_turn());
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Default)]
pub struct MemoryReceipt(Arc<AtomicBool>);

impl MemoryReceipt {
    /// Creates a receipt for one turn, which memory does not have yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Checks whether memory has the turn.
    #[must_use]
    pub fn has_turn(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn note_turn(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
