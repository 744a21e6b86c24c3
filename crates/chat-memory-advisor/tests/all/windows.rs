//! Tests of the messages that are sent if a conversation, or one turn, is larger than the window.

use advisor_core::{ErrorKind, Message, Phase};
use advisor_testkit::Answer;
use advisor_testkit::validate_transcript;
use chat_memory_advisor::{ChatMemoryAdvisor, OnOverflow, Window};
use conversation_store::{ConversationStore, InMemoryStore, ReadRange};

use crate::support::{ask, client, key, log_words, sent};

const MESSAGE_LEFT_OUT: &str = "[this message is left out here: there is no room for it]";

fn rounds(count: usize) -> impl Iterator<Item = Answer> {
    let answer = |round| Answer::from_calls([(format!("{round}").as_str(), "f", "{}")]);
    (0..count).map(answer).chain([Answer::from_text("done")])
}

/// A turn with more messages than the window keeps its question. Memories that evict while they write would
/// lose it.
#[tokio::test]
async fn law_m2_turn_of_many_rounds_keeps_its_question() {
    for place in [Phase::Round, Phase::Turn] {
        let memory = ChatMemoryAdvisor::new(InMemoryStore::new()).with_window(Window::Messages(20));
        let (client, model) = client(&memory, place, [Answer::from_text("hi")].into_iter().chain(rounds(12)));
        ask(&client, "hello").await.unwrap();
        assert_eq!(ask(&client, "go").await.unwrap(), "done");
        for prompt in model.prompts().iter().skip(1) {
            let texts: Vec<_> = prompt.messages.iter().map(Message::text).collect();
            assert!(texts.contains(&String::from("go")), "{place:?}: {texts:?}");
        }
        assert_eq!(
            model.prompts()[13].messages.len(),
            1 + 2 + 1 + 24,
            "the system's, the turn before, all of this one"
        );
    }
}

#[tokio::test]
async fn oversized_turn_is_sent_compacted_but_stored_whole() {
    let store = InMemoryStore::new();
    let memory = ChatMemoryAdvisor::new(store.clone())
        .with_window(Window::Messages(6))
        .with_on_overflow(OnOverflow::Compact);
    let (client, model) =
        client(&memory, Phase::Round, [Answer::from_text("hi")].into_iter().chain(rounds(4)));
    ask(&client, "hello").await.unwrap();
    assert_eq!(ask(&client, "go").await.unwrap(), "done");
    let sent = (1..6).map(|nth| sent(&model, nth).replace(MESSAGE_LEFT_OUT, "..."));
    assert_eq!(
        sent.collect::<Vec<_>>(),
        [
            "s:S u:hello a:hi u:go",
            "s:S u:hello a:hi u:go a(0) r0",
            "s:S u:... a:hi u:go a(0) r0 a(1) r1",
            "s:S u:... a:hi u:go a(1) r1 a(2) r2",
            "s:S u:... a:hi u:go a(2) r2 a(3) r3",
        ],
        "the last answer stays where it fits"
    );
    let log = log_words(&store.load(&key(), ReadRange::All).await.unwrap().entries);
    assert_eq!(log, "u:hello a:hi . u:go a(0) r0 a(1) r1 a(2) r2 a(3) r3 a:done .");
}

#[tokio::test]
async fn oversized_turn_can_be_refused() {
    for place in [Phase::Round, Phase::Turn] {
        let store = InMemoryStore::new();
        let memory = ChatMemoryAdvisor::new(store.clone()).with_window(Window::Tokens(30));
        for policy in [OnOverflow::Refuse, OnOverflow::Compact] {
            store.delete(&key()).await.unwrap();
            let memory = memory.clone().with_on_overflow(policy);
            let (client, model) = client(&memory, place, rounds(9));
            let error = ask(&client, &"long ".repeat(40)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ContextOverflow);
            assert!(!error.is_retryable());
            assert_eq!(
                (model.calls(), store.load(&key(), ReadRange::All).await.unwrap().entries.len()),
                (0, 0)
            );
            let outcome = ask(&client, "go").await;
            // Outside the loop, memory has a say in the first request only.
            if policy == OnOverflow::Compact || place == Phase::Turn {
                assert_eq!(outcome.unwrap(), "done");
            } else {
                assert_eq!(outcome.unwrap_err().kind(), ErrorKind::ContextOverflow);
            }
            for prompt in model.prompts() {
                assert_eq!(validate_transcript(&prompt.messages), []);
            }
            // A refused turn leaves the conversation usable.
            ask(&client, "next").await.unwrap_or_default();
            assert_ne!(model.calls(), 0);
        }
    }
}
