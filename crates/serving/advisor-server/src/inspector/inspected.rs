//! The parts of a chain whose work is recorded: advisors, the model, tools, and the store of memory.

use std::sync::Arc;

use advisor_core::{
    AdvisorChain, AdvisorInfo, CallRunner, ChatModel, ChatRequest, Chunk, ChunkStream, ConversationKey,
    PendingCalls, Placement, Result, SchemaSupport, StreamAdvisor, Tool, ToolDefinition, ToolError,
    ToolInvocation, ToolOutput, ToolSet, async_trait,
};
use chat_memory_advisor::store::{
    Batch, ConversationStore, Entry, EntryId, Leases, Page, ReadRange, Result as StoreResult, Snapshot,
    Version,
};
use serde_json::{Value, json};

use crate::inspector::Inspector;
use crate::inspector::journal::TurnJournal;

/// One way through an advisor or the model, from the request to the end of the answer.
struct Pass {
    journal: TurnJournal,
    /// The name of the advisor. Without one, it is the model.
    advisor: Option<String>,
    round: u32,
    chunks: u64,
    has_ended: bool,
}

impl Pass {
    /// Records that the part is asked.
    fn begin(journal: TurnJournal, advisor: Option<String>, round: u32) -> Self {
        let pass = Self { journal, advisor, round, chunks: 0, has_ended: false };
        pass.record(["enter", "ask"], None, Value::Null);
        pass
    }

    /// Records a moment, which has one name at an advisor, and another one at the model.
    fn record(&self, [of_advisor, of_model]: [&str; 2], round: Option<u32>, fields: Value) {
        let round = round.map(|round| format!(" r{round}")).unwrap_or_default();
        let label = match &self.advisor {
            Some(name) => format!("advisor.{of_advisor} {name}{round}"),
            None => format!("model.{of_model} r{}", self.round),
        };
        self.journal.record(label, fields);
    }

    /// Takes note of a chunk that comes out.
    fn see(&mut self, chunk: &Chunk) {
        if let Chunk::Completed(response) = chunk {
            self.has_ended = true;
            self.record(["completed", "end"], Some(response.round()), json!({"chunks": self.chunks}));
            if let (None, Some(usage)) = (&self.advisor, response.usage.as_ref()) {
                let tokens =
                    json!({"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens});
                self.journal.record(format!("usage r{}", self.round), tokens);
            }
            return;
        }
        self.chunks += 1;
        if self.chunks == 1 {
            self.record(["first_chunk"; 2], Some(chunk.round()), Value::Null);
        }
    }
}

/// An answer that fails or is dropped ends its pass here.
impl Drop for Pass {
    fn drop(&mut self) {
        if !self.has_ended {
            self.record(["drop"; 2], None, Value::Null);
        }
    }
}

/// An advisor whose passes are recorded.
pub(super) struct Inspected(pub(super) Arc<dyn StreamAdvisor>);

#[deny(clippy::missing_trait_methods)]
impl AdvisorInfo for Inspected {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn placement(&self) -> Placement {
        self.0.placement()
    }

    fn on_loop_start(&self, request: &ChatRequest) -> Result<()> {
        self.0.on_loop_start(request)
    }

    fn validate_tools(&self, tools: &ToolSet) -> Result<()> {
        self.0.validate_tools(tools)
    }

    fn pending_calls(&self) -> Option<&dyn PendingCalls> {
        self.0.pending_calls()
    }

    fn call_runner(&self) -> Option<Arc<dyn CallRunner>> {
        self.0.call_runner()
    }
}

#[async_trait]
impl StreamAdvisor for Inspected {
    async fn advise_stream(self: Arc<Self>, request: ChatRequest, next: AdvisorChain) -> Result<ChunkStream> {
        let advisor = Arc::clone(&self.0);
        let Some(journal) = TurnJournal::from_turn(&request.turn) else {
            return advisor.advise_stream(request, next).await;
        };
        let mut pass = Pass::begin(journal, Some(self.name().to_owned()), request.round);
        let stream = advisor.advise_stream(request, next).await?;
        // Observers see `Completed` after all work inside, that of this advisor included.
        Ok(stream.inspect_chunks(move |chunk| pass.see(chunk)))
    }
}

/// A model whose calls are recorded.
pub(super) struct InspectedModel(pub(super) Arc<dyn ChatModel>);

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl ChatModel for InspectedModel {
    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
        let Some(journal) = TurnJournal::from_turn(&request.turn) else {
            return self.0.stream(request).await;
        };
        let mut pass = Pass::begin(journal, None, request.round);
        let stream = self.0.stream(request).await?;
        Ok(stream.inspect_chunks(move |chunk| pass.see(chunk)))
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn model_name(&self) -> Option<&str> {
        self.0.model_name()
    }

    fn schema_support(&self) -> SchemaSupport {
        self.0.schema_support()
    }
}

/// A tool whose runs are recorded.
pub(super) struct InspectedTool(pub(super) Arc<dyn Tool>);

#[async_trait]
impl Tool for InspectedTool {
    fn definition(&self) -> &ToolDefinition {
        self.0.definition()
    }

    async fn run(&self, invocation: ToolInvocation) -> Result<ToolOutput, ToolError> {
        let Some(journal) = TurnJournal::from_turn(&invocation.turn) else {
            return self.0.run(invocation).await;
        };
        let (id, name) = (invocation.call.id.clone(), invocation.call.name.clone());
        journal.record(format!("tool.start {id}"), json!({"name": name}));
        let output = self.0.run(invocation).await;
        journal.record(format!("tool.end {id}"), json!({"name": name, "is_error": output.is_err()}));
        output
    }
}

/// A store whose appends are recorded, once the wrapped store has acknowledged them.
pub(super) struct InspectedStore<S> {
    pub(super) store: S,
    pub(super) inspector: Inspector,
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl<S: ConversationStore> ConversationStore for InspectedStore<S> {
    async fn load(&self, key: &ConversationKey, range: ReadRange) -> StoreResult<Snapshot> {
        self.store.load(key, range).await
    }

    async fn load_branch(
        &self,
        key: &ConversationKey,
        tip: EntryId,
        range: ReadRange,
    ) -> StoreResult<Snapshot> {
        self.store.load_branch(key, tip, range).await
    }

    async fn read(&self, key: &ConversationKey, after: EntryId, limit: usize) -> StoreResult<Vec<Entry>> {
        self.store.read(key, after, limit).await
    }

    async fn branches(&self, key: &ConversationKey) -> StoreResult<Vec<EntryId>> {
        self.store.branches(key).await
    }

    async fn append(&self, key: &ConversationKey, expected: Version, batch: Batch) -> StoreResult<Version> {
        let turn = batch.key.turn.clone();
        let labels: Vec<_> = batch.entries.iter().map(|entry| entry.kind.label()).collect();
        let version = self.store.append(key, expected, batch).await?;
        if let Some(journal) = self.inspector.find(&(key.clone(), turn)) {
            journal.record(format!("stored {}", labels.join(" ")), Value::Null);
        }
        Ok(version)
    }

    async fn delete(&self, key: &ConversationKey) -> StoreResult {
        self.store.delete(key).await
    }

    async fn list(&self, page: &Page) -> StoreResult<Vec<ConversationKey>> {
        self.store.list(page).await
    }

    fn leases(&self) -> Option<&dyn Leases> {
        self.store.leases()
    }
}
