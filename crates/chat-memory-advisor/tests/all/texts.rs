//! The texts that memory adds, and whose they are.

use advisor_core::{ErrorKind, Message, MessageList};
use advisor_testkit::Answer;
use chat_memory_advisor::{ChatMemoryAdvisor, MemoryTexts};
use conversation_store::InMemoryStore;

use crate::support::{ask, key, plain, read_until, sent, turn, words};

/// Two processes share one log and have different texts. Stored entries stay; a transcript has the texts of its
/// reader.
#[tokio::test]
async fn memory_texts_are_configurable_without_changing_stored_entries() {
    let english = ChatMemoryAdvisor::new(InMemoryStore::new());
    let texts = MemoryTexts::default().with_interrupted("[abgebrochen]").with_no_answer("[keine Antwort]");
    let texts = texts.with_not_run("nicht gelaufen").with_went_on("[es ging weiter]");
    let german = english.clone().with_texts(texts).unwrap();
    let calls = Answer::from_calls([("1", "f", "{}")]);
    let answers = [calls, Answer::from_text(" "), Answer::new().text("half").hang()];
    let (client, model) = plain(&german, answers);
    for user in ["1", "2"] {
        ask(&client, user).await.unwrap();
    }
    let mut cut = turn(&client, "3");
    read_until(&mut cut, "half").await;
    drop(cut);
    let result =
        |sent: &MessageList| sent.iter().find_map(|message: &Message| Some(message.tool_result()?.text()));
    assert_eq!(sent(&model, 1), "s:S u:1 a(1) r1! a:[es ging weiter] u:2");
    assert_eq!(result(&model.prompts()[1].messages).unwrap(), "nicht gelaufen");
    for (memory, told) in [
        (&german, "u:1 a(1) r1! a:[es ging weiter] u:2 a:[keine Antwort] u:3 a:half [abgebrochen]"),
        (
            &english,
            "u:1 a(1) r1! a:[the conversation went on without these results] u:2 a:[no answer] u:3 a:half [interrupted]",
        ),
    ] {
        let transcript = memory.transcript(&key()).await.unwrap();
        assert_eq!(words(&transcript), told);
        assert_eq!(result(&transcript).unwrap(), "nicht gelaufen", "it is stored");
    }
}

#[tokio::test]
async fn blank_memory_text_is_refused_at_build() {
    let refused = ChatMemoryAdvisor::new(InMemoryStore::new())
        .with_texts(MemoryTexts::default().with_no_answer(" "))
        .unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Configuration);
    assert!(refused.to_string().contains("`no_answer`"), "{refused}");
}
