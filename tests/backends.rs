//! Every store in a whole chain: what a long turn writes and copies, memory inside the loop.
//!
//! Stores on a server are left out where none is named in `ADVISOR_POSTGRES_URL` and `ADVISOR_REDIS_URL`; with
//! `ADVISOR_REQUIRE_SERVERS=1` that is a failure.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::io::Write as _;
use std::sync::{Arc, Mutex};

use advisor_chain::{
    Batch, ChatClient, ChatMemoryAdvisor, ConversationKey, ConversationStore, EntryKind, FnTool,
    InMemoryStore, Message, NewEntry, PostgresStore, RedisStore, SqliteStore, StoreError, ToolCallAdvisor,
    ToolDefinition, ToolLimits, TurnId, Version, async_trait,
};
use advisor_testkit::{Answer, Around, Asked, ScriptedModel, StoreAround, Work};
use serde_json::{Value, json};

/// What a store is asked.
#[derive(Clone, Default)]
struct Counting(Arc<Mutex<Counts>>);

#[derive(Debug, Default, Clone, PartialEq)]
struct Counts {
    loads: usize,
    appends: usize,
    messages: usize,
    largest_batch: usize,
}

#[async_trait]
impl Around for Counting {
    async fn around(&self, asked: Asked<'_>, work: Work<'_>) -> Result<Option<Version>, StoreError> {
        {
            let mut counts = self.0.lock().unwrap();
            counts.loads += usize::from(matches!(asked, Asked::Load));
            if let Asked::Append(Batch { entries, .. }) = asked {
                let is_message = |entry: &&NewEntry| matches!(entry.kind, EntryKind::Message(_));
                counts.appends += 1;
                counts.messages += entries.iter().filter(is_message).count();
                counts.largest_batch = counts.largest_batch.max(entries.len());
            }
        }
        work.await
    }
}

/// The stores that are there.
async fn stores() -> Vec<(&'static str, Arc<dyn ConversationStore>)> {
    let mut stores: Vec<(&str, Arc<dyn ConversationStore>)> = vec![
        ("in memory", Arc::new(InMemoryStore::new())),
        ("SQLite", Arc::new(SqliteStore::in_memory().unwrap())),
    ];
    if let Some(url) = server("ADVISOR_POSTGRES_URL") {
        stores.push(("PostgreSQL", Arc::new(PostgresStore::connect(&url).await.unwrap())));
    }
    if let Some(url) = server("ADVISOR_REDIS_URL") {
        stores.push(("Redis", Arc::new(RedisStore::connect(&url).await.unwrap())));
    }
    stores
}

fn server(variable: &str) -> Option<String> {
    let url = std::env::var(variable).ok().filter(|url| !url.is_empty());
    let required = std::env::var("ADVISOR_REQUIRE_SERVERS").is_ok_and(|required| required == "1");
    assert!(url.is_some() || !required, "ADVISOR_REQUIRE_SERVERS=1, but {variable} names no server");
    if url.is_none() {
        // Not `eprintln!`, which the test harness keeps to itself when the test passes.
        drop(writeln!(std::io::stderr(), "left out: {variable} names no server"));
    }
    url
}

/// Runs a turn of so many rounds with two calls each. Gives what the store was asked, and how many messages of one
/// request were not in the one before.
async fn turn_of(rounds: usize, store: Arc<dyn ConversationStore>) -> (Counts, usize) {
    let model = ScriptedModel::from_fn(move |prompt| {
        let asked = prompt.messages.iter().filter(|message| message.tool_calls().next().is_some()).count();
        if asked == rounds {
            return Answer::of_text("done");
        }
        let ids = [format!("a{asked}"), format!("b{asked}")];
        Answer::of_calls(ids.iter().map(|id| (id.as_str(), "work", "{}")))
    });
    let counting = Counting::default();
    let definition = ToolDefinition::new("work", "Works.", json!({"type": "object"}));
    let limits = ToolLimits::default().with_rounds(1000).with_calls(10_000).with_calls_per_tool(10_000);
    let client = ChatClient::builder(model.clone())
        .advisor(ToolCallAdvisor::builder().limits(limits).build().unwrap())
        .advisor(ChatMemoryAdvisor::new(StoreAround::with(store, counting.clone())))
        .tool(FnTool::new(definition, |_: Value| async { Ok("worked") }))
        .build()
        .unwrap();
    let key = ConversationKey::in_tenant("backends", TurnId::mint().as_str()).unwrap();
    let answer = client.prompt().user("go").conversation(key).call().await.unwrap();
    assert_eq!(answer.text(), "done");
    let prompts = model.prompts();
    let mut new = 0;
    for pair in prompts.windows(2) {
        let [before, after] = pair else { continue };
        let known: Vec<&Message> = before.messages.iter().collect();
        let same = after.messages.iter().zip(&known).take_while(|(one, other)| one.is_same(other)).count();
        assert_eq!(same, known.len(), "what was sent before is shared, not copied");
        new += after.messages.len() - same;
    }
    let counts = counting.0.lock().unwrap().clone();
    (counts, new)
}

#[tokio::test]
async fn law_r4_a_turn_of_200_rounds_writes_and_adds_what_is_new_on_every_store() {
    for (name, store) in stores().await {
        for rounds in [10, 200] {
            let (counts, new) = turn_of(rounds, Arc::clone(&store)).await;
            let expected = Counts {
                loads: 1,
                // The input, each answer with its results behind it, the last answer.
                appends: 1 + 2 * rounds + 1,
                messages: 1 + 3 * rounds + 1,
                largest_batch: 2,
            };
            assert_eq!((counts, new), (expected, 3 * rounds), "{name}, {rounds} rounds");
        }
    }
}
