//! `YieldingStore`, and a model and tools that yield to other tasks wherever they wait.

use advisor_chain::memory::store::{FencingToken, Leases, Page, Snapshot};
use advisor_chain::{ToolDefinition, client};
use advisor_testkit::ReceivedPrompt;
use advisor_tests::prelude::*;
use shuttle::future::yield_now;

/// A store whose operations yield to other tasks, before and after their effect. With leases, only the holder
/// of the last one may write. Clones share everything.
#[derive(Clone)]
pub(crate) struct YieldingStore {
    store: InMemoryStore,
    /// The last token that was handed out.
    last: Arc<Mutex<Option<FencingToken>>>,
}

impl YieldingStore {
    pub(crate) fn new(store: InMemoryStore) -> Self {
        Self { store, last: Arc::default() }
    }

    /// Appends at once: no other task runs between the checks here.
    async fn append_by_right(
        &self,
        key: &ConversationKey,
        expected: Version,
        batch: Batch,
    ) -> Result<Version, StoreError> {
        let (before, token) = (self.store.load(key, ReadRange::LastEntries(0)).await?.version, batch.token);
        let appended = self.store.append(key, expected, batch).await;
        if self.store.leases().is_some() && appended.as_ref().is_ok_and(|version| *version > before) {
            assert_eq!(token, *self.last.lock().unwrap(), "M3: who has lost the right has written");
        }
        appended
    }

    async fn run<T>(&self, work: impl Future<Output = T>) -> T {
        yield_now().await;
        let done = work.await;
        yield_now().await;
        done
    }
}

#[async_trait]
impl ConversationStore for YieldingStore {
    async fn load(&self, key: &ConversationKey, range: ReadRange) -> Result<Snapshot, StoreError> {
        self.run(self.store.load(key, range)).await
    }

    async fn load_branch(
        &self,
        key: &ConversationKey,
        tip: EntryId,
        range: ReadRange,
    ) -> Result<Snapshot, StoreError> {
        self.run(self.store.load_branch(key, tip, range)).await
    }

    async fn read(
        &self,
        key: &ConversationKey,
        after: EntryId,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        self.run(self.store.read(key, after, limit)).await
    }

    async fn append(
        &self,
        key: &ConversationKey,
        expected: Version,
        batch: Batch,
    ) -> Result<Version, StoreError> {
        self.run(self.append_by_right(key, expected, batch)).await
    }

    async fn delete(&self, key: &ConversationKey) -> Result<(), StoreError> {
        self.run(self.store.delete(key)).await
    }

    async fn list(&self, page: &Page) -> Result<Vec<ConversationKey>, StoreError> {
        self.run(self.store.list(page)).await
    }

    fn leases(&self) -> Option<&dyn Leases> {
        self.store.leases().is_some().then_some(self)
    }
}

#[async_trait]
impl Leases for YieldingStore {
    async fn acquire(
        &self,
        key: &ConversationKey,
        turn: &TurnId,
        ttl: Duration,
        takeover_from: Option<FencingToken>,
        waits: bool,
    ) -> Result<FencingToken, StoreError> {
        let acquired = async {
            let acquired = self.store.acquire(key, turn, ttl, takeover_from, waits).await;
            if let Ok(token) = &acquired {
                *self.last.lock().unwrap() = Some(*token);
            }
            acquired
        };
        self.run(acquired).await
    }

    async fn renew(
        &self,
        key: &ConversationKey,
        token: FencingToken,
        ttl: Duration,
    ) -> Result<(), StoreError> {
        self.run(self.store.renew(key, token, ttl)).await
    }

    async fn release(&self, key: &ConversationKey, token: FencingToken) -> Result<(), StoreError> {
        self.run(self.store.release(key, token)).await
    }
}

/// Counts of the tools that ran.
#[derive(Clone, Default)]
pub(crate) struct Seen {
    /// The number of starts of each call that must not run twice.
    pub(crate) starts: Arc<Mutex<BTreeMap<CallKey, u32>>>,
}

/// A client with this memory, around a model that has two rounds of tools and then answers.
pub(crate) fn chain(memory: &ChatMemoryAdvisor, place: Phase, seen: &Seen) -> ChatClient {
    let once = ToolDefinition { effect: Some(Effect::AtMostOnce), ..definition("charge") };
    client(ScriptedModel::from_fn(answer))
        .advisor_in(place, memory.clone())
        .tool(tool(once, seen))
        .tool(tool(definition("look"), seen))
        .build()
        .unwrap()
}

fn definition(name: &str) -> ToolDefinition {
    ToolDefinition::new(name, "A tool of a test.", json!({"type": "object"}))
}

fn tool(definition: ToolDefinition, seen: &Seen) -> FnTool {
    let (seen, once) = (seen.clone(), definition.name == "charge");
    FnTool::with_invocation(definition, move |invocation: ToolInvocation| {
        if once {
            *seen.starts.lock().unwrap().entry(invocation.key).or_default() += 1;
        }
        async {
            yield_now().await;
            Ok::<_, ToolError>("ran".into())
        }
    })
}

/// Returns the answer of the model, which depends only on the messages, and checks that they are valid.
fn answer(prompt: &ReceivedPrompt) -> Answer {
    let sent: Vec<Message> = prompt.messages.iter().cloned().collect();
    assert_eq!(validate_transcript(&sent), [], "M1: {sent:?}");
    let said = sent.iter().rposition(|message| message.role() == Role::User).unwrap();
    let rounds = sent[said..].iter().filter(|message| message.tool_calls().next().is_some()).count();
    let waits = |answer: Answer| answer.wait(yield_now());
    match rounds {
        0 | 1 => waits(waits(Answer::new()).text("Wait. "))
            .call("1", "charge", "{}")
            .call("2", "look", "{}")
            .finish(FinishReason::ToolCalls),
        _ => waits(waits(Answer::new()).text("Done: ")).text(sent[said].text()).finish(FinishReason::Stop),
    }
}
