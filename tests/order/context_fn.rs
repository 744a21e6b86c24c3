//! Tests of `context_fn`: context is found once per turn, sent with each of its requests and never stored, in
//! any place.

use std::sync::atomic::AtomicU32;

use advisor_chain::Turn;
use advisor_chain::advisors::ReReading;
use advisor_chain::chain::context_fn;
use advisor_tests::lines::texts;
use advisor_tests::prelude::*;
use advisor_tests::tools::tool;

fn calling() -> Answer {
    Answer::new().text("let me see").call("c1", "look", "{}").finish(FinishReason::ToolCalls)
}

fn look() -> FnTool {
    tool("look", "sunny")
}

#[tokio::test]
async fn law_m2_context_is_found_once_sent_every_round_unstored() {
    for phase in [Phase::Turn, Phase::Round, Phase::ModelCall] {
        for remembers in [Some(Phase::Round), Some(Phase::Turn), None] {
            let found = Arc::new(AtomicU32::new(0));
            let counter = Arc::clone(&found);
            let documents = context_fn("documents", move |request: ChatRequest| {
                let turn = counter.fetch_add(1, Ordering::Relaxed) + 1;
                async move { Ok(format!("documents of {turn}: {}", request.last_user().unwrap().text())) }
            });
            let model =
                ScriptedModel::new([calling(), Answer::from_text("Sunny."), Answer::from_text("Bye.")]);
            let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
            let mut client = ChatClient::builder(model.clone())
                .system("Be polite.")
                .advisor(ToolCallAdvisor::new())
                .advisor_in(phase, documents)
                .tool(look());
            if let Some(remembers) = remembers {
                client = client.advisor_in(remembers, memory.clone());
            }
            let client = client.build().unwrap();
            let case = format!("{phase} {remembers:?}");
            let response = client.prompt().user("Weather?").conversation("c").call().await.unwrap();
            let turn = ["Weather?", "let me see", "sunny", "Sunny."];
            assert_eq!(texts(&response.transcript), turn, "{case}");
            let sent: Vec<_> = model.prompts().iter().map(|prompt| texts(&prompt.messages)).collect();
            let head = ["Be polite.", "documents of 1: Weather?\n\nWeather?"];
            assert_eq!(sent[0], head, "{case}");
            assert_eq!(sent[1], [&head[..], &["let me see", "sunny"]].concat(), "{case}");

            client.prompt().user("Thanks").conversation("c").call().await.unwrap();
            let prompts = model.prompts();
            let last = prompts[2].messages.last().unwrap();
            assert_eq!(
                (last.role(), last.text()),
                (Role::User, "documents of 2: Thanks\n\nThanks".into()),
                "{case}"
            );
            if remembers.is_some() {
                let before = texts(&prompts[2].messages);
                assert_eq!(before[..5], [&["Be polite."], &turn[..]].concat(), "{case}");
            }
            assert_eq!(validate_transcript(&prompts[2].messages), [], "{case}");
            assert_eq!(found.load(Ordering::Relaxed), 2, "{case}: once per turn");
            if remembers.is_some() {
                let stored = memory.transcript(&ConversationKey::new("c").unwrap()).await.unwrap();
                assert_eq!(texts(&stored), [&turn[..], &["Thanks", "Bye."]].concat(), "{case}");
            }
        }
    }
}

#[tokio::test]
async fn failed_context_lookup_ends_turn_and_is_repeated() {
    let calls = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&calls);
    let documents = context_fn("documents", move |_: ChatRequest| {
        let first = counter.fetch_add(1, Ordering::Relaxed) == 0;
        async move { if first { Err(Error::new(ErrorKind::Advisor, "the index is down")) } else { Ok("") } }
    });
    let model = ScriptedModel::new([Answer::from_text("Hello.")]);
    let client = ChatClient::builder(model.clone()).advisor(documents).build().unwrap();
    let error = client.prompt().user("Hi").call().await.unwrap_err();
    assert_eq!((error.kind(), model.calls()), (ErrorKind::Advisor, 0));
    client.prompt().user("Hi").call().await.unwrap();
    assert_eq!(texts(&model.prompts()[0].messages), ["Hi"], "an empty context adds nothing");
}

/// Context finds the message of the user also behind advisors that map it, and beside a picture.
#[tokio::test]
async fn context_stands_before_what_the_user_wrote() {
    let context = |text: &'static str| context_fn(text, move |_: ChatRequest| async move { Ok(text) });
    let model = ScriptedModel::new([calling(), Answer::from_text("Sunny.")]);
    let client = ChatClient::builder(model.clone())
        .advisor(ToolCallAdvisor::new())
        .tool(look())
        .advisor_in(Phase::ModelCall, context("one"))
        .advisor(ReReading)
        .advisor_in(Phase::ModelCall, context("two"))
        .build()
        .unwrap();
    let picture = Part::Image(Media::from_url("image/png", "https://example.org/a.png"));
    let said = Message::user_parts(vec![picture.clone(), Part::from("Weather?")]);
    client.prompt().messages([said]).call().await.unwrap();
    let twice = "Weather?\nRead the question again: Weather?";
    let sent = Message::user_parts(vec![Part::from("one\n\ntwo"), picture, Part::from(twice)]);
    for prompt in model.prompts() {
        assert_eq!(prompt.messages.iter().next(), Some(&sent));
        assert_eq!(prompt.messages.iter().filter(|message| message.role() == Role::User).count(), 1);
    }
}

/// A chain may be made within a turn and be gone before the next one is.
#[tokio::test]
async fn successive_advisors_have_separate_contexts() {
    let turn = Turn::new(TurnId::random());
    for number in 0..100 {
        let model = ScriptedModel::new([Answer::from_text("Hello.")]);
        let context =
            context_fn("context", move |_: ChatRequest| async move { Ok(format!("context {number}")) });
        let chain = ChatClient::builder(model.clone()).advisor(context).build().unwrap().chain().clone();
        chain
            .next_call(ChatRequest { turn: Arc::clone(&turn), ..ChatRequest::new(Message::user("Hi")) })
            .await
            .unwrap();
        assert_eq!(texts(&model.prompts()[0].messages), [format!("context {number}\n\nHi")]);
    }
}
