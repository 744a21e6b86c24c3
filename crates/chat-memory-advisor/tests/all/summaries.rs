//! Long conversations, of which a summary is sent.

use std::sync::{Arc, Mutex};

use advisor_core::{ChatClient, Error, ErrorKind, Message, Phase, Spawner};
use advisor_testkit::{Answer, ScriptedModel};
use chat_memory_advisor::{ChatMemoryAdvisor, ForkPoint, Summarizer, Window};
use conversation_store::{ConversationStore, EntryId, EntryKind, InMemoryStore, ReadRange};
use futures::future::BoxFuture;

use crate::support::{ask, client, key, sent};

/// Work that waits until the test runs it.
#[derive(Clone, Default)]
struct Later(Arc<Mutex<Vec<BoxFuture<'static, ()>>>>);

impl Later {
    fn spawner(&self) -> Spawner {
        let work = Arc::clone(&self.0);
        Spawner::new(move |new| work.lock().unwrap().push(new))
    }

    async fn run(&self) -> usize {
        let work = std::mem::take(&mut *self.0.lock().unwrap());
        let count = work.len();
        futures::future::join_all(work).await;
        count
    }
}

/// Creates a memory that keeps two of more than three turns, and the model of its summaries.
fn summarizing(
    store: &InMemoryStore,
    summaries: impl IntoIterator<Item = Answer>,
) -> (ChatMemoryAdvisor, ScriptedModel, Later) {
    let (small, later) = (ScriptedModel::new(summaries), Later::default());
    let asked = ChatClient::builder(small.clone()).build().unwrap();
    let mut summarizer = Summarizer::new(asked, later.spawner());
    (summarizer.after, summarizer.keep) = (3, 2);
    (ChatMemoryAdvisor::new(store.clone()).with_summaries(summarizer), small, later)
}

fn texts(texts: &[&'static str]) -> Vec<Answer> {
    texts.iter().map(|text| Answer::from_text(*text)).collect()
}

#[tokio::test]
async fn oldest_turns_summary_is_stored_with_next_input() {
    for place in [Phase::Round, Phase::Turn] {
        let store = InMemoryStore::new();
        let (memory, small, later) = summarizing(&store, texts(&["They counted.", "They counted on."]));
        let (client, model) = client(&memory, place, texts(&["a", "b", "c", "d", "e", "f", "g"]));
        for user in ["1", "2", "3"] {
            ask(&client, user).await.unwrap();
            assert_eq!(later.run().await, 0, "it is too early");
        }
        ask(&client, "4").await.unwrap();
        assert_eq!(small.calls(), 0, "nobody waits for it");
        assert_eq!(later.run().await, 1);
        let told = &small.prompts()[0].messages;
        assert!(told.iter().next().unwrap().text().starts_with("Summarize"));
        assert_eq!(told.last().unwrap().text(), "User: 1\nAssistant: a\nUser: 2\nAssistant: b\n");
        ask(&client, "5").await.unwrap();
        let summary = "s:Summary of the conversation so far:\nThey counted.";
        assert_eq!(sent(&model, 4), format!("s:S {summary} u:3 a:c u:4 a:d u:5"), "{place:?}");
        let transcript = memory.transcript(&key()).await.unwrap();
        assert_eq!(
            transcript.iter().next().unwrap().text(),
            "Summary of the conversation so far:\nThey counted."
        );
        assert_eq!(transcript.len(), 7);
        ask(&client, "6").await.unwrap();
        assert_eq!(later.run().await, 1);
        let told = small.prompts()[1].messages.last().unwrap().text();
        assert!(told.starts_with("Summary of what was before:\nThey counted.\nUser: 3\n"), "{told}");
        ask(&client, "7").await.unwrap();
        assert_eq!(
            sent(&model, 6),
            "s:S s:Summary of the conversation so far:\nThey counted on. u:5 a:e u:6 a:f u:7"
        );

        // Summarised entries stay in the store, and a memory without summaries sends them.
        let log = store.load(&key(), ReadRange::All).await.unwrap().entries;
        assert_eq!(log.iter().filter(|entry| matches!(entry.kind, EntryKind::Summary(_))).count(), 2);
        let plain = ChatMemoryAdvisor::new(store.clone()).transcript(&key()).await.unwrap();
        assert_eq!(plain.len(), 14);
        // Another process finds the summary in the store.
        let (other, _, _) = summarizing(&store, []);
        assert_eq!(other.transcript(&key()).await.unwrap().len(), 1 + 3 * 2);
    }
}

#[tokio::test]
async fn summary_is_sent_only_on_branches_it_covers() {
    let store = InMemoryStore::new();
    let (memory, _, later) = summarizing(&store, texts(&["They counted."]));
    let (client, model) = client(&memory, Phase::Round, texts(&["a", "b", "c", "d", "x", "y", "z"]));
    for user in ["1", "2", "3", "4"] {
        ask(&client, user).await.unwrap();
    }
    assert_eq!(later.run().await, 1);
    let off = |user: &'static str, entry: u64| {
        let from = ForkPoint::After(EntryId(entry));
        client.prompt().user(user).conversation("c").extension(from).call()
    };
    // It tells of the first six entries, and waits to be stored.
    off("x", 3).await.unwrap();
    assert_eq!(sent(&model, 4), "s:S u:1 a:a u:x", "behind the first turn");
    let summary = "s:Summary of the conversation so far:\nThey counted.";
    off("y", 12).await.unwrap();
    assert_eq!(sent(&model, 5), format!("s:S {summary} u:3 a:c u:4 a:d u:y"), "behind the last one");
    // Now it is stored, on that branch.
    off("z", 15).await.unwrap();
    assert_eq!(sent(&model, 6), "s:S u:1 a:a u:x a:x u:z");
}

#[tokio::test]
async fn only_one_summary_runs_and_failure_is_retried() {
    let store = InMemoryStore::new();
    let broken = Answer::refused(Error::new(ErrorKind::Connection, "broken"));
    let (memory, small, later) =
        summarizing(&store, [broken, Answer::from_text(" "), Answer::from_text("short")]);
    let (client, model) = client(&memory, Phase::Round, texts(&["a"; 12]));
    for user in ["1", "2", "3", "4", "5"] {
        ask(&client, user).await.unwrap();
    }
    assert_eq!(later.run().await, 1, "the fifth turn found one being made");
    for user in ["6", "7"] {
        ask(&client, user).await.unwrap();
        assert_eq!(later.run().await, 1);
    }
    assert_eq!(small.calls(), 3);
    ask(&client, "8").await.unwrap();
    assert!(sent(&model, 7).starts_with("s:S s:Summary of the conversation so far:\nshort u:6"));
}

#[tokio::test(start_paused = true)]
async fn slow_or_oversized_summary_is_discarded() {
    let store = InMemoryStore::new();
    let long = Answer::from_text("x".repeat((64 << 10) + 1));
    let (memory, small, later) =
        summarizing(&store, [Answer::new().hang(), long, Answer::from_text("short")]);
    let (client, model) = client(&memory, Phase::Round, texts(&["a"; 12]));
    for user in ["1", "2", "3"] {
        ask(&client, user).await.unwrap();
    }
    for (made, user) in ["4", "5", "6"].into_iter().enumerate() {
        ask(&client, user).await.unwrap();
        assert_eq!((later.run().await, small.calls()), (1, made + 1));
    }
    ask(&client, "7").await.unwrap();
    assert!(sent(&model, 6).starts_with("s:S s:Summary of the conversation so far:\nshort u:5"));
}

#[tokio::test]
async fn work_discarded_by_spawner_is_spawned_again() {
    let store = InMemoryStore::new();
    let (memory, small, later) = summarizing(&store, texts(&["short"]));
    let (client, _) = client(&memory, Phase::Round, texts(&["a"; 6]));
    for user in ["1", "2", "3", "4"] {
        ask(&client, user).await.unwrap();
    }
    later.0.lock().unwrap().clear();
    ask(&client, "5").await.unwrap();
    assert_eq!((later.run().await, small.calls()), (1, 1));
}

#[tokio::test]
async fn other_process_remakes_summary_that_was_not_stored() {
    let store = InMemoryStore::new();
    let (memory, _, later) = summarizing(&store, texts(&["lost"]));
    let (first, _) = client(&memory, Phase::Round, texts(&["a"; 4]));
    for user in ["1", "2", "3", "4"] {
        ask(&first, user).await.unwrap();
    }
    later.run().await;
    drop((first, memory));
    let (memory, _, later) = summarizing(&store, texts(&["made anew"]));
    let (second, model) = client(&memory, Phase::Round, texts(&["a"; 4]));
    ask(&second, "5").await.unwrap();
    assert!(sent(&model, 0).starts_with("s:S u:1"), "all of it is sent until there is a summary");
    assert_eq!(later.run().await, 1);
    ask(&second, "6").await.unwrap();
    assert!(sent(&model, 1).starts_with("s:S s:Summary of the conversation so far:\nmade anew u:4"));
}

#[tokio::test]
async fn a_window_and_a_summary_go_together() {
    let store = InMemoryStore::new();
    let (memory, _, later) = summarizing(&store, texts(&["short"]));
    let memory = memory.with_window(Window::Messages(3));
    let (client, model) = client(&memory, Phase::Round, texts(&["a"; 6]));
    for user in ["1", "2", "3", "4"] {
        ask(&client, user).await.unwrap();
    }
    assert_eq!(later.run().await, 1, "turns that have left the window count, too");
    ask(&client, "5").await.unwrap();
    assert_eq!(sent(&model, 4), "s:S s:Summary of the conversation so far:\nshort u:4 a:a u:5");
    let mut system = client.prompt().system("other").user("6").conversation("c").stream();
    while let Some(chunk) = futures::StreamExt::next(&mut system).await {
        chunk.unwrap();
    }
    let messages: Vec<_> = model.prompts()[5].messages.iter().map(Message::text).collect();
    assert_eq!(messages, ["other", "Summary of the conversation so far:\nshort", "5", "a", "6"]);
}

#[tokio::test]
async fn law_m5_summary_of_deleted_conversation_does_not_return() {
    let store = InMemoryStore::new();
    let (memory, _, later) = summarizing(&store, texts(&["THE SECRET"]));
    let (client, model) = client(&memory, Phase::Round, texts(&["a"; 6]));
    for user in ["1", "2", "3", "4"] {
        ask(&client, user).await.unwrap();
    }
    assert_eq!(later.run().await, 1);
    store.delete(&key()).await.unwrap();
    ask(&client, "hello").await.unwrap();
    ask(&client, "what did I say?").await.unwrap();
    assert_eq!(sent(&model, 5), "s:S u:hello a:a u:what did I say?");
    let log = store.load(&key(), ReadRange::All).await.unwrap().entries;
    assert!(!log.iter().any(|entry| matches!(entry.kind, EntryKind::Summary(_))));
}
