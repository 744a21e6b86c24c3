//! Turns that end well.

use advisor_core::{
    AdvisorChain, ChatClient, ChatRequest, ConversationKey, ErrorKind, FinishReason, Message, Phase,
    ToolCall, ToolResult, TurnId, from_fn,
};
use advisor_testkit::validate_transcript;
use advisor_testkit::{Answer, Gate, ScriptedModel};
use chat_memory_advisor::{ChatMemoryAdvisor, OnBusy, Window};
use conversation_store::{ConversationStore, InMemoryStore, ReadRange};
use futures::StreamExt;

use crate::store::{TestStore, Watched, test_store};
use crate::support::{ask, builder, client, key, log_words, plain, read_until, sent, turn, words};

const MESSAGE_LEFT_OUT: &str = "[this message is left out here: there is no room for it]";

fn memory() -> (ChatMemoryAdvisor, TestStore) {
    let store = test_store();
    (ChatMemoryAdvisor::new(store.clone()), store)
}

#[tokio::test]
async fn a_plain_turn_is_stored_in_two_appends() {
    let (memory, store) = memory();
    let (client, model) = client(&memory, Phase::Round, [Answer::from_text("hi")]);
    assert_eq!(ask(&client, "hello").await.unwrap(), "hi");
    assert_eq!(sent(&model, 0), "s:S u:hello");
    assert_eq!(log_words(&store.log(&key()).await), "u:hello a:hi .");
    assert_eq!(store.appended(), ["0/input", "1/answer-1"]);
    assert_eq!(store.loads(), 1, "memory loads once per turn");
    assert_eq!(words(&memory.transcript(&key()).await.unwrap()), "u:hello a:hi");
}

#[tokio::test]
async fn law_m2_the_request_is_system_and_the_view() {
    let store = test_store();
    let memory = ChatMemoryAdvisor::new(store.clone()).with_window(Window::Messages(3));
    let (client, model) = plain(&memory, ["one", "two", "three"].map(Answer::from_text));
    for user in ["1", "2", "3"] {
        let view = words(&memory.transcript(&key()).await.unwrap());
        // Wherever it stands, a system message comes first.
        let late = Message::system("L");
        client.prompt().user(user).messages([late]).conversation("c").call().await.unwrap();
        let request = sent(&model, model.calls() - 1);
        let view = if view.is_empty() { view } else { format!("{view} ") };
        assert_eq!(request, format!("s:S s:L {view}u:{user}"));
    }
    assert_eq!(sent(&model, 2), "s:S s:L u:2 a:two u:3", "the window holds one turn beside the running one");
    assert_eq!(log_words(&store.log(&key()).await), "u:1 a:one . u:2 a:two . u:3 a:three .");
}

#[tokio::test]
async fn transcript_holds_what_the_window_sends() {
    let (memory, _) = memory();
    let answers =
        [Answer::from_text("one"), Answer::from_calls([("1", "f", "{}")]), Answer::from_text("two")];
    let (client, _) = client(&memory, Phase::Round, answers);
    ask(&client, "1").await.unwrap();
    ask(&client, "2").await.unwrap();
    let second = "u:2 a(1) r1 a:two";
    let all = format!("u:1 a:one {second}");
    // The transcript is the part that the next turn sends beside its own messages, which count as one turn.
    for (turns, held) in [(0, ""), (1, ""), (2, second), (3, &*all), (9, &*all)] {
        let memory = memory.clone().with_window(Window::Turns(turns));
        assert_eq!(words(&memory.transcript(&key()).await.unwrap()), held, "of {turns} turns");
    }
    let last = format!("u:{MESSAGE_LEFT_OUT} a:two");
    for (count, held) in [(0, ""), (1, &*last), (3, "u:2 a:two"), (4, second), (6, &*all)] {
        let memory = memory.clone().with_window(Window::Messages(count));
        assert_eq!(words(&memory.transcript(&key()).await.unwrap()), held, "of {count} messages");
    }
    for (tokens, held) in [(9, ""), (10, &*last), (39, "u:2 a:two"), (40, second), (59, second), (60, &*all)]
    {
        let memory = memory.clone().with_window(Window::Tokens(tokens)).with_token_counter(|_: &Message| 10);
        assert_eq!(words(&memory.transcript(&key()).await.unwrap()), held, "of {tokens} tokens");
    }
}

#[tokio::test]
async fn law_m5_conversations_are_isolated() {
    let (memory, _) = memory();
    let (client, model) = plain(&memory, ["one", "two", "three"].map(Answer::from_text));
    let keys = [("x", "c"), ("y", "c"), ("x", "d")];
    for (tenant, conversation) in keys {
        let key = ConversationKey::in_tenant(tenant, conversation).unwrap();
        client.prompt().user(format!("{tenant}{conversation}")).conversation(key).call().await.unwrap();
    }
    let requests: Vec<_> = (0..3).map(|nth| sent(&model, nth)).collect();
    assert_eq!(requests, ["s:S u:xc", "s:S u:yc", "s:S u:xd"]);
}

#[tokio::test]
async fn conversation_is_busy_until_turn_ends() {
    let (memory, _) = memory();
    let gate = Gate::new();
    let slow = Answer::new().text("a").gate(&gate).text("b").finish(FinishReason::Stop);
    let (client, _) = plain(&memory, [slow, Answer::from_text("next")]);
    let mut first = turn(&client, "1");
    read_until(&mut first, "a").await;
    let second = ask(&client, "2").await.unwrap_err();
    assert_eq!(second.kind(), ErrorKind::ConversationBusy);
    assert!(second.to_string().contains("wait for its end"));
    gate.release();
    read_until(&mut first, "b").await;
    while let Some(item) = first.next().await {
        item.unwrap();
    }
    // The stream is still there, but the turn has ended.
    assert_eq!(ask(&client, "2").await.unwrap(), "next");
}

#[tokio::test]
async fn queued_turns_of_busy_conversation_see_earlier_answers() {
    let (memory, _) = memory();
    let memory = memory.with_on_busy(OnBusy::Queue);
    let gate = Gate::new();
    let slow = Answer::new().text("a").gate(&gate).text("b").finish(FinishReason::Stop);
    let (client, model) = plain(&memory, [slow, Answer::from_text("two"), Answer::from_text("three")]);
    let mut first = turn(&client, "1");
    read_until(&mut first, "a").await;
    let mut second = turn(&client, "2");
    let mut dropped = turn(&client, "dropped");
    let mut third = turn(&client, "3");
    for _ in 0..3 {
        for waiting in [&mut second, &mut dropped, &mut third] {
            assert!(futures::poll!(waiting.next()).is_pending());
        }
    }
    assert_eq!(model.calls(), 1);
    drop(dropped);
    gate.release();
    let (first, second, third) = futures::join!(first.call(), second.call(), third.call());
    assert_eq!([first, second, third].map(|answer| answer.unwrap().text()), ["ab", "two", "three"]);
    assert_eq!(sent(&model, 2), "s:S u:1 a:ab u:2 a:two u:3");
}

#[tokio::test]
async fn ephemeral_and_system_messages_are_sent_not_stored() {
    let (memory, store) = memory();
    let model = ScriptedModel::new(["one", "two"].map(Answer::from_text));
    let notes = from_fn("notes", |mut request: ChatRequest, next: AdvisorChain| async move {
        request.messages.push(Message::user("note").ephemeral());
        request.messages.push(Message::system("rule").ephemeral());
        next.next_stream(request).await
    });
    let client = builder(&memory, Phase::Round, &model).advisor(notes).build().unwrap();
    ask(&client, "1").await.unwrap();
    ask(&client, "2").await.unwrap();
    assert_eq!(words(&model.prompts()[1].messages), "s:S s:rule u:1 a:one u:2 u:note");
    assert_eq!(log_words(&store.log(&key()).await), "u:1 a:one . u:2 a:two .");
}

#[tokio::test]
async fn empty_answer_is_not_stored_and_roles_alternate() {
    let (memory, store) = memory();
    let empty = Answer::new().finish(FinishReason::Stop);
    let blank = Answer::new().reasoning("hm").text(" \n").finish(FinishReason::Length);
    let (client, model) = plain(&memory, [empty, blank, Answer::from_text("three")]);
    for user in ["1", "2", "3"] {
        ask(&client, user).await.unwrap();
    }
    assert_eq!(log_words(&store.log(&key()).await), "u:1 . u:2 . u:3 a:three .");
    assert_eq!(sent(&model, 2), "s:S u:1 a:[no answer] u:2 a:[no answer] u:3");
}

#[tokio::test]
async fn turn_needs_conversation_and_unused_id() {
    let (memory, _) = memory();
    let (client, model) = plain(&memory, [Answer::from_text("one"), Answer::from_text("two")]);
    let homeless = client.prompt().user("1").call().await.unwrap_err();
    assert_eq!(homeless.kind(), ErrorKind::Configuration);
    assert!(homeless.to_string().contains("conversation"), "{homeless}");
    let named = |user: &str| client.prompt().user(user).conversation("c").turn(TurnId::new("t").unwrap());
    named("1").call().await.unwrap();
    let again = named("2").call().await.unwrap_err();
    assert_eq!(again.kind(), ErrorKind::TurnIdReused);
    assert!(again.to_string().contains("new id"), "{again}");
    assert_eq!(model.calls(), 1);
    assert_eq!(ask(&client, "3").await.unwrap(), "two");
}

#[tokio::test]
async fn without_a_loop_all_calls_are_the_callers() {
    let (memory, store) = memory();
    let (client, model) = plain(&memory, [Answer::from_calls([("1", "f", "{}")]), Answer::from_text("done")]);
    ask(&client, "go").await.unwrap();
    let result = Message::tool(ToolResult::new(&ToolCall::new("1", "f", ""), vec!["ok".into()]));
    client.prompt().messages([result]).conversation("c").call().await.unwrap();
    assert_eq!(sent(&model, 1), "s:S u:go a(1) r1");
    assert_eq!(words(&memory.transcript(&key()).await.unwrap()), "u:go a(1) r1 a:done");
    assert!(store.log(&key()).await.iter().map(|entry| entry.seq).eq(1..=6));
}

#[tokio::test]
async fn outer_advisor_may_ask_again_within_turn() {
    let (memory, store) = memory();
    let model = ScriptedModel::new(["bad", "better"].map(Answer::from_text));
    let judge = from_fn("judge", |request: ChatRequest, next: AdvisorChain| async move {
        next.next_call(request.clone()).await?;
        next.next_stream(request.with_message(Message::user("Once more."))).await
    });
    let client = builder(&memory, Phase::Round, &model).advisor(judge).build().unwrap();
    assert_eq!(ask(&client, "1").await.unwrap(), "better");
    assert_eq!(sent(&model, 1), "s:S u:1 a:bad u:Once more.");
    assert_eq!(log_words(&store.log(&key()).await), "u:1 a:bad . u:Once more. a:better .");
    assert_eq!(store.appended(), ["0/input", "1/answer-1", "1/input-3", "2/answer-4"]);
    assert_eq!(store.loads(), 1);
}

#[tokio::test]
async fn a_retry_outside_memory_stores_the_input_once() {
    let (memory, store) = memory();
    let broken = advisor_core::Error::new(ErrorKind::Connection, "broken");
    let model = ScriptedModel::new([Answer::refused(broken), Answer::from_text("fine")]);
    let retry = from_fn("retry", |request: ChatRequest, next: AdvisorChain| async move {
        match next.next_call(request.clone()).await {
            Ok(response) => Ok(advisor_core::ChunkStream::answer(response)),
            Err(_) => next.next_stream(request).await,
        }
    });
    let client = builder(&memory, Phase::Round, &model).advisor(retry).build().unwrap();
    assert_eq!(ask(&client, "1").await.unwrap(), "fine");
    assert_eq!(sent(&model, 1), "s:S u:1");
    assert_eq!(log_words(&store.log(&key()).await), "u:1 a:fine .");
}

#[tokio::test]
async fn law_m3_log_has_no_gaps_and_batch_keys_differ() {
    let store = InMemoryStore::new();
    let memory = ChatMemoryAdvisor::new(store.clone());
    let calls = || Answer::from_calls([("0", "f", "{}"), ("1", "f", "{}")]);
    let (client, _) =
        client(&memory, Phase::Round, (0..10).flat_map(|_| [calls(), calls(), Answer::from_text("a")]));
    for turn in 0..10 {
        ask(&client, &turn.to_string()).await.unwrap();
    }
    let read = store.load(&key(), ReadRange::All).await.unwrap();
    assert_eq!(read.version.0, 10 * 9);
    assert!(read.entries.iter().map(|entry| entry.seq).eq(1..=90));
    assert_eq!(validate_transcript(&memory.transcript(&key()).await.unwrap()), []);
}

#[tokio::test]
async fn a_turn_is_remembered_in_one_conversation() {
    let (memory, _) = memory();
    let model = ScriptedModel::new(["one", "two"].map(Answer::from_text));
    let chain = ChatClient::builder(model).advisor(memory).build().unwrap().chain().clone();
    let request = ChatRequest::new(Message::user("1"));
    let here = ChatRequest { conversation: Some(ConversationKey::new("here").unwrap()), ..request.clone() };
    chain.next_call(here).await.unwrap();
    let there = ChatRequest { conversation: Some(ConversationKey::new("there").unwrap()), ..request };
    assert_eq!(chain.next_call(there).await.unwrap_err().kind(), ErrorKind::Configuration);
}

#[test]
fn memory_says_where_it_stands() {
    let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
    let client = ChatClient::builder(ScriptedModel::new([])).advisor(memory).build().unwrap();
    assert!(client.explain().to_string().starts_with("round       chat-memory "));
}
