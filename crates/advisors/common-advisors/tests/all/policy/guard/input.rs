//! Guards on input: all messages of the user's input are checked, and memory keeps nothing of a refused turn.

use advisor_core::{
    ChatClient, ChatRequest, ConversationKey, ErrorKind, FinishReason, Message, Phase, ToolCall, ToolResult,
};
use advisor_testkit::{Answer, ScriptedModel};
use chat_memory_advisor::{ChatMemoryAdvisor, InMemoryStore};
use common_advisors::policy::{Guard, LetterCase};
use futures::StreamExt;

/// The result of a call that the client ran.
fn result() -> Message {
    Message::tool(ToolResult::new(&ToolCall::new("c1", "place", "{}"), vec!["Oslo".into()]))
}

fn guard() -> Guard {
    Guard::for_words(["secret"], LetterCase::Ignore)
}

/// Returns whether the guard answers these messages.
async fn refuses(guard: Guard, messages: Vec<Message>) -> bool {
    let model = ScriptedModel::new([Answer::from_text("fine")]);
    let chain = ChatClient::builder(model.clone()).advisor(guard.on_input()).build().unwrap().chain().clone();
    let response = chain.next_call(ChatRequest::new(messages)).await.unwrap();
    let refused = response.finish.reason == FinishReason::ContentFilter;
    assert_eq!(refused, model.calls() == 0);
    assert_eq!(response.text(), if refused { "I cannot help with that." } else { "fine" });
    refused
}

/// All messages of the user's input are checked, and no others.
#[tokio::test]
async fn input_of_the_turn_is_checked() {
    let (user, assistant, system) = (Message::user, Message::assistant, Message::system);
    for (messages, expected) in [
        (vec![user("a Secret")], true),
        (vec![user("a plan")], false),
        (vec![user("a secret"), user("and more")], true),
        (vec![user("a secret"), assistant("No."), user("and more")], false),
        (vec![user("a plan"), assistant("A secret."), user("secret!")], true),
        (vec![system("Keep the secret."), user("a plan")], false),
        (vec![user("a sec"), user("ret")], false),
        (vec![user("a secret").ephemeral(), user("and more")], true),
        (vec![user("a secret"), result()], true),
        (vec![result(), user("a secret")], true),
        (vec![user("a secret"), assistant("No."), result(), user("and more")], false),
    ] {
        assert_eq!(refuses(guard(), messages.clone()).await, expected, "{messages:?}");
    }
}

#[tokio::test]
async fn words_patterns_and_closures_check_input() {
    for guard in [
        guard(),
        Guard::for_pattern(r"\bsecret\b").unwrap(),
        Guard::for_texts(|text| text.ends_with("secret")),
    ] {
        assert!(refuses(guard.clone(), vec![Message::user("a secret")]).await, "{guard:?}");
        assert!(!refuses(guard.clone(), vec![Message::user("a plan")]).await, "{guard:?}");
    }
}

/// Nothing of a refused turn is remembered, and the next turn begins as if it had not been.
#[tokio::test]
async fn law_m4_refused_turn_leaves_no_trace_in_memory() {
    for remembers in [Phase::Round, Phase::Turn] {
        let model = ScriptedModel::new([Answer::from_text("Hello."), Answer::from_text("Fine.")]);
        let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
        let client = ChatClient::builder(model.clone())
            .advisor(guard().on_input())
            .advisor_in(remembers, memory.clone())
            .build()
            .unwrap();
        for (user, reply) in
            [("Hi.", "Hello."), ("the secret", "I cannot help with that."), ("How are you?", "Fine.")]
        {
            let response = client.prompt().user(user).conversation("c").call().await.unwrap();
            assert_eq!(response.text(), reply);
        }
        let expected = ["Hi.", "Hello.", "How are you?", "Fine."];
        let remembered = memory.transcript(&ConversationKey::new("c").unwrap()).await.unwrap();
        assert_eq!(remembered.iter().map(Message::text).collect::<Vec<_>>(), expected, "{remembers}");
        let prompts = model.prompts();
        let sent: Vec<_> = prompts[1].messages.iter().map(Message::text).collect();
        assert_eq!((prompts.len(), sent), (2, expected[..3].iter().map(ToString::to_string).collect()));
    }
}

/// The stream shows the reply, and its response equals it.
#[tokio::test]
async fn law_s4_reply_is_shown_as_a_text() {
    for reply in ["Ask someone else.", ""] {
        let client = ChatClient::builder(ScriptedModel::new([]));
        let client = client.advisor(guard().with_reply(reply).on_input()).build().unwrap();
        let mut turn = client.prompt().user("secret").stream();
        let (mut shown, mut last) = (String::new(), None);
        while let Some(chunk) = turn.next().await {
            let chunk = chunk.unwrap();
            shown.push_str(chunk.text().unwrap_or_default());
            last = chunk.completed().map(|response| response.text());
        }
        assert_eq!((shown.as_str(), last.as_deref()), (reply, Some(reply)));
    }
}

/// Inside memory, the input would be stored before it is checked.
#[test]
fn input_guard_inside_memory_is_refused() {
    let client = ChatClient::builder(ScriptedModel::new([]))
        .advisor_in(Phase::Turn, ChatMemoryAdvisor::new(InMemoryStore::new()))
        .advisor(guard().with_name("no-secrets").on_input());
    let error = client.build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert!(error.to_string().contains("no-secrets"), "{error}");
}
