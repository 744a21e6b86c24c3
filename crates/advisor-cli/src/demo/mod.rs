//! `advisor demo`: a conversation of two turns with parallel tools and memory, and the order of the work.

pub(crate) mod model;

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use advisor_chain::memory::store::{
    Batch, ConversationStore, Entry, EntryId, Page, ReadRange, Result as StoreResult, Snapshot, Version,
};
use advisor_chain::messages::ToolEventKind;
use advisor_chain::tools::ToolSet;
use advisor_chain::{
    AdvisorChain, ChatClient, ChatMemoryAdvisor, ChatRequest, Chunk, ConversationKey, InMemoryStore, Phase,
    StreamAdvisor, async_trait, from_fn,
};
use futures::StreamExt;

use self::model::DemoModel;
use crate::failure::Failure;
use crate::screen::Screen;
use crate::screen::output::Output;
use crate::tools;

/// The work of the parts of the chain, in its order.
#[derive(Clone, Default)]
struct Order(Arc<Mutex<Vec<String>>>);

impl Order {
    fn record(&self, work: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(work);
    }

    fn lines(&self) -> String {
        let works = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        works.iter().map(|work| format!(" {work}\n")).collect()
    }
}

pub(crate) async fn run() -> Result<(), Failure> {
    // Everything goes to standard output, since notes and tools are the point of the demo.
    let out = || Output::standard(io::stdout());
    let mut screen = Screen::new(out(), out());
    let order = Order::default();
    let memory = ChatMemoryAdvisor::new(OrderedStore { store: InMemoryStore::new(), order: order.clone() });
    let tools = ToolSet::new().with(tools::current_time()).with(tools::demo_weather());
    let client = ChatClient::builder(DemoModel)
        .system("You are a travel assistant.")
        .advisor(tools::tool_loop(&[], &tools)?)
        .advisor(memory)
        .advisor_in(Phase::ModelCall, asking(&order))
        .tools(&tools)
        .build()?;
    screen.line("A script plays the model; everything else is real.\n")?;
    screen.line(format_args!("The chain:\n{}", client.explain()))?;
    for question in ["How is the weather in Oslo and in Lima?", "And what time is it?"] {
        turn(&client, question, &order, &mut screen).await?;
    }
    screen.line(format_args!("── what happened in which order ──\n{}", order.lines()))?;
    Ok(())
}

async fn turn<A: Write, N: Write>(
    client: &ChatClient,
    question: &str,
    order: &Order,
    screen: &mut Screen<A, N>,
) -> Result<(), Failure> {
    screen.line(format_args!("> {question}"))?;
    order.record(format!("turn: {question}"));
    let mut turn = client.prompt().user(question).conversation("demo").stream();
    while let Some(chunk) = turn.next().await {
        let chunk = chunk?;
        screen.show(&chunk)?;
        match &chunk {
            Chunk::Tool(event) => match event.kind {
                ToolEventKind::Started { .. } => order.record(format!("tool {} starts", event.call_id)),
                ToolEventKind::Finished { .. } => order.record(format!("tool {} ends", event.call_id)),
                _ => {}
            },
            Chunk::RoundCompleted(response) => {
                order.record(format!("reader sees the end of round {}", response.round()));
            }
            Chunk::Completed(_) => order.record("reader sees the end of the turn".to_owned()),
            _ => {}
        }
    }
    screen.line("")?;
    Ok(())
}

/// Records when the model is asked, and when its answer is complete.
fn asking(order: &Order) -> impl StreamAdvisor {
    let order = order.clone();
    from_fn("order", move |request: ChatRequest, next: AdvisorChain| {
        let order = order.clone();
        async move {
            order.record(format!("request with {} messages", request.messages.len()));
            Ok(next.next_stream(request).await?.on_completed(move |response| async move {
                order.record(format!("answer of round {} is complete", response.round()));
                Ok(response)
            }))
        }
    })
}

/// A store that records what it has stored.
struct OrderedStore {
    store: InMemoryStore,
    order: Order,
}

#[async_trait]
impl ConversationStore for OrderedStore {
    async fn load(&self, key: &ConversationKey, range: ReadRange) -> StoreResult<Snapshot> {
        self.store.load(key, range).await
    }

    async fn read(&self, key: &ConversationKey, after: EntryId, limit: usize) -> StoreResult<Vec<Entry>> {
        self.store.read(key, after, limit).await
    }

    async fn append(&self, key: &ConversationKey, expected: Version, batch: Batch) -> StoreResult<Version> {
        let labels: Vec<_> = batch.entries.iter().map(|entry| entry.kind.label()).collect();
        let version = self.store.append(key, expected, batch).await?;
        self.order.record(format!("stored {}", labels.join(" ")));
        Ok(version)
    }

    async fn delete(&self, key: &ConversationKey) -> StoreResult {
        self.store.delete(key).await
    }

    async fn list(&self, page: &Page) -> StoreResult<Vec<ConversationKey>> {
        self.store.list(page).await
    }
}
