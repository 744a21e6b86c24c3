//! The order in which the parts of a turn work.

mod inspected;
pub(crate) mod journal;

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use advisor_core::{ChatClient, ConversationKey, Result, Tool, ToolSet, TurnId};
use chat_memory_advisor::store::ConversationStore;
use serde_json::Value;

use self::journal::TurnJournal;
use crate::inspector::inspected::{Inspected, InspectedModel, InspectedStore, InspectedTool};

/// The number of turns whose journals are kept. The oldest go first.
const TURNS: usize = 128;

/// Records the order in which the parts of each turn work: advisors, the model, tools and writes of memory.
///
/// It records names, times, ids of calls and token counts, and no content. The page's inspector shows them.
///
/// # Example
/// ```
/// use advisor_core::ChatClient;
/// use advisor_server::{ChatServer, Inspector};
/// use advisor_testkit::{Answer, ScriptedModel};
/// use chat_memory_advisor::{ChatMemoryAdvisor, InMemoryStore};
///
/// # fn main() -> advisor_core::Result<()> {
/// let inspector = Inspector::new();
/// let memory = ChatMemoryAdvisor::new(inspector.store(InMemoryStore::new()));
/// let model = ScriptedModel::new([Answer::from_text("It is noon.")]);
/// let client = ChatClient::builder(model).advisor(memory.clone()).build()?;
/// let server = ChatServer::new(client, memory).with_inspector(&inspector)?;
/// # let _ = server;
/// # Ok(()) }
/// ```
#[derive(Clone, Default)]
pub struct Inspector(Arc<Mutex<VecDeque<(Key, TurnJournal)>>>);

type Key = (ConversationKey, TurnId);

impl Inspector {
    /// Creates an inspector without turns.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Wraps the store of memory, so that its writes are recorded once they are acknowledged.
    pub fn store<S: ConversationStore>(&self, store: S) -> impl ConversationStore + use<S> {
        InspectedStore { store, inspector: self.clone() }
    }

    /// Returns a client whose advisors, model and tools are recorded.
    pub(crate) fn client(&self, client: &ChatClient) -> Result<ChatClient> {
        let tools =
            client.tools().iter().map(|tool| Arc::new(InspectedTool(Arc::clone(tool))) as Arc<dyn Tool>);
        let tools: ToolSet = tools.collect();
        let builder = client.to_builder().tools(&tools);
        builder
            .wrapped(|model| Arc::new(InspectedModel(model)), |advisor| Arc::new(Inspected(advisor)))
            .build()
    }

    /// Begins the journal of a turn. A turn that runs again gets a new one.
    pub(crate) fn begin(&self, key: &Key) -> TurnJournal {
        let journal = TurnJournal::new();
        journal.record(format!("turn.start {}", key.1), Value::Null);
        let mut journals = self.lock();
        journals.retain(|(of, _)| of != key);
        journals.truncate(TURNS - 1);
        journals.push_front((key.clone(), journal.clone()));
        journal
    }

    /// Returns the journal of a turn, if it is kept.
    pub(crate) fn find(&self, key: &Key) -> Option<TurnJournal> {
        self.lock().iter().find(|(of, _)| of == key).map(|(_, journal)| journal.clone())
    }

    /// Removes the journals of a conversation.
    pub(crate) fn forget(&self, conversation: &ConversationKey) {
        self.lock().retain(|((of, _), _)| of != conversation);
    }

    /// The journals, that of the newest turn first.
    fn lock(&self) -> MutexGuard<'_, VecDeque<(Key, TurnJournal)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Inspector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inspector").finish_non_exhaustive()
    }
}
