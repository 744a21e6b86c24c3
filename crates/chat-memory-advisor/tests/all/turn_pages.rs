//! Pages of the turns of a conversation, as a person reads them.

use std::num::NonZeroUsize;
use std::time::Duration;

use advisor_core::{ChatClient, Spawner};
use advisor_testkit::{Answer, ScriptedModel};
use chat_memory_advisor::{ChatMemoryAdvisor, Summarizer, TurnPage, Window};
use conversation_store::EntryId;

use crate::store::{TestStore, Watched, test_store};
use crate::support::{ask, key, plain, read_until, turn, words};

fn memory() -> (ChatMemoryAdvisor, TestStore) {
    let store = test_store();
    (ChatMemoryAdvisor::new(store.clone()), store)
}

fn answers(count: usize) -> Vec<Answer> {
    (1..=count).map(|number| Answer::from_text(format!("answer {number}"))).collect()
}

async fn page(memory: &ChatMemoryAdvisor, tip: Option<EntryId>, limit: usize) -> TurnPage {
    memory.turns(&key(), tip, NonZeroUsize::new(limit).unwrap()).await.unwrap()
}

fn shown(page: &TurnPage) -> String {
    words(page.turns.iter().flat_map(|turn| &turn.messages))
}

#[tokio::test]
async fn page_costs_the_entries_of_its_turns() {
    let (memory, store) = memory();
    let (client, _) = plain(&memory, answers(200));
    for number in 1..=200 {
        ask(&client, &number.to_string()).await.unwrap();
    }
    let (mut tip, mut turns) = (None, 0);
    for _ in 0..5 {
        let before = store.entries_read();
        let read = page(&memory, tip, 2).await;
        assert_eq!(store.entries_read() - before, 6, "two turns of three entries");
        assert_eq!(read.turns.len(), 2);
        (tip, turns) = (read.before, turns + read.turns.len());
    }
    assert_eq!((turns, tip), (10, Some(EntryId(570))));
}

#[tokio::test]
async fn window_and_summary_hide_no_turn() {
    let (memory, _) = memory();
    let summaries = ChatClient::builder(ScriptedModel::new([Answer::from_text("They counted.")]));
    let spawner = Spawner::tokio(tokio::runtime::Handle::current());
    let mut summarizer = Summarizer::new(summaries.build().unwrap(), spawner);
    (summarizer.after, summarizer.keep) = (2, 1);
    let windowed = memory.clone().with_window(Window::Messages(2));
    let summarizing = memory.clone().with_window(Window::Messages(2)).with_summaries(summarizer);
    let (client, _) = plain(&summarizing, answers(4));
    for user in ["1", "2", "3", "4"] {
        ask(&client, user).await.unwrap();
        tokio::task::yield_now().await;
    }
    let sent = words(&summarizing.transcript(&key()).await.unwrap());
    assert!(sent.starts_with("s:Summary") && !sent.contains("u:1"), "{sent}");
    let all = "u:1 a:answer 1 u:2 a:answer 2 u:3 a:answer 3 u:4 a:answer 4";
    for memory in [windowed, summarizing] {
        let newest = page(&memory, None, 9).await;
        assert_eq!((shown(&newest).as_str(), newest.before), (all, None));
        let newest = page(&memory, None, 3).await;
        let oldest = page(&memory, newest.before, 3).await;
        assert_eq!(format!("{} {}", shown(&oldest), shown(&newest)), all);
    }
}

#[tokio::test]
async fn dropped_turn_is_on_newest_page() {
    let (memory, _) = memory();
    let (client, _) = plain(&memory, [Answer::from_text("one"), Answer::new().text("so far").hang()]);
    ask(&client, "1").await.unwrap();
    let mut dropped = turn(&client, "2");
    read_until(&mut dropped, "so far").await;
    assert_eq!(shown(&page(&memory, None, 1).await), "u:2", "it still runs");
    drop(dropped);
    let newest = page(&memory, None, 1).await;
    assert_eq!(shown(&newest), "u:2 a:so far [interrupted]");
    assert_eq!(shown(&page(&memory, newest.before, 1).await), "u:1 a:one");
}

#[tokio::test]
async fn reading_ends_in_a_log_without_its_beginning() {
    let (memory, store) = memory();
    let (client, _) = plain(&memory, answers(3));
    ask(&client, "1").await.unwrap();
    ask(&client, "2").await.unwrap();
    // Only the end of the second turn is left.
    store.lose_up_to(5);
    let reading = read_everything(&memory, &client);
    tokio::time::timeout(Duration::from_secs(20), reading).await.expect("it ends");
}

async fn read_everything(memory: &ChatMemoryAdvisor, client: &ChatClient) {
    assert_eq!(shown(&page(memory, None, 2).await), "");
    assert_eq!(memory.client_side_calls(&key()).await.unwrap().len(), 0);
    for window in [Window::Tokens(99), Window::Messages(9), Window::Turns(9)] {
        let windowed = memory.clone().with_window(window);
        assert_eq!(windowed.transcript(&key()).await.unwrap().len(), 0, "{window:?}");
    }
    assert_eq!(ask(client, "3").await.unwrap(), "answer 3");
}
