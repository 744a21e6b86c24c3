//! The way into a chain: starting a turn, reading its text, naming it, and copies of a client.

use advisor_chain::chain::{FallbackModel, IntoId, Spawner};
use advisor_tests::prelude::*;
use advisor_tests::tools::tool;

fn down() -> Error {
    Error::new(ErrorKind::Authentication, "the key is refused")
}

async fn text_of(turn: impl futures::Stream<Item = Result<Chunk, Error>>) -> String {
    let chunks: Vec<_> = turn.try_collect().await.unwrap();
    chunks.iter().filter_map(Chunk::text).collect()
}

/// Law R3: no log has the settings that a client keeps for its provider and its model.
#[test]
fn law_r3_debug_shows_neither_instructions_nor_further_fields() {
    let options =
        ChatOptions { model: Some("m-1".into()), ..ChatOptions::default() }.with_extra("api_key", "canary-1");
    let builder = ChatClient::builder(ScriptedModel::new([])).system("canary-2").options(options.clone());
    let client = builder.clone().build().unwrap();
    let request = ChatRequest { options: options.clone(), ..ChatRequest::new(MessageList::default()) };
    let prompt = client.prompt().system("canary-3").options(options.clone()).user("canary-4");
    for text in [
        format!("{options:?}"),
        format!("{builder:?}"),
        format!("{client:?}"),
        format!("{request:?}"),
        format!("{prompt:?}"),
    ] {
        assert!(!text.contains("canary"), "{text}");
    }
    let text = format!("{client:?}");
    assert!(text.contains("m-1") && text.contains("api_key"), "what is set is shown: {text}");
}

#[tokio::test]
async fn a_started_turn_gives_every_chunk_once() {
    let hello = || Answer::new().text("Hel").text("lo").finish(FinishReason::Stop);
    let client = ChatClient::builder(ScriptedModel::new([hello(), hello()])).build().unwrap();
    let turn = client.prompt().user("Hi").stream().started().await.unwrap();
    assert_eq!(text_of(turn.started().await.unwrap()).await, "Hello", "asking twice changes nothing");

    // Between chunks it has started as well.
    let mut turn = client.prompt().user("Hi").stream();
    while turn.next().await.unwrap().unwrap().text() != Some("Hel") {}
    assert_eq!(text_of(turn.started().await.unwrap()).await, "lo");
}

#[tokio::test]
async fn refusal_before_first_chunk_is_a_start_error() {
    for refused in [Answer::refused(down()), Answer::new().error(down())] {
        let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
        let model = ScriptedModel::new([refused, Answer::from_text("Hello")]);
        let client = ChatClient::builder(model).advisor(memory).build().unwrap();
        let error = client.prompt().user("Hi").conversation("c").stream().started().await.unwrap_err();
        assert_eq!((error.kind(), error.emitted()), (ErrorKind::Authentication, false));
        drop(client.prompt().user("Hi").conversation("c").stream().started().await.unwrap());
    }
    let client = ChatClient::builder(ScriptedModel::new([])).build().unwrap();
    let error = client.prompt().conversation("").user("Hi").stream().started().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
}

#[tokio::test]
async fn busy_conversation_is_a_start_error() {
    let gate = Gate::new();
    let model =
        ScriptedModel::new([Answer::new().text("Hel").gate(&gate).text("lo").finish(FinishReason::Stop)]);
    let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
    let client = ChatClient::builder(model).advisor(memory).build().unwrap();
    let first = client.prompt().user("Hi").conversation("c").stream().started().await.unwrap();
    let error = client.prompt().user("Hi").conversation("c").stream().started().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConversationBusy);
    gate.release();
    assert_eq!(text_of(first).await, "Hello");
}

/// It waits for the chain to answer, not for a chunk: one may come out only after every tool has run.
#[tokio::test]
async fn turn_has_started_before_any_chunk_is_emitted() {
    let gate = Gate::new();
    let model = ScriptedModel::new([
        Answer::new().text("I look").gate(&gate).call("c1", "look", "{}").finish(FinishReason::ToolCalls),
        Answer::from_text("Done."),
    ]);
    let client = ChatClient::builder(model)
        .advisor(ToolCallAdvisor::builder().streaming(ToolCallStreaming::FinalAnswerOnly).build().unwrap())
        .tool(tool("look", "sunny"))
        .build()
        .unwrap();
    let turn = client.prompt().user("Hi").stream().started().await.unwrap();
    gate.release();
    assert_eq!(text_of(turn).await, "Done.");
}

/// A chunk that was looked at and not read was not shown.
#[tokio::test]
async fn law_k2_k3_chunk_seen_only_by_start_is_not_remembered() {
    let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
    let model = ScriptedModel::new([Answer::new().text("Hello").hang()]);
    let client = ChatClient::builder(model).advisor(memory.clone()).build().unwrap();
    drop(client.prompt().user("Hi").conversation("c").stream().started().await.unwrap());
    let transcript = memory.transcript(&ConversationKey::new("c").unwrap()).await.unwrap();
    assert!(transcript.iter().all(|message| !message.text().contains("Hello")), "{transcript:?}");
}

#[tokio::test]
async fn law_k3_end_seen_only_by_start_is_rolled_back() {
    let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
    let empty = || Answer::new().finish(FinishReason::Stop);
    let client = ChatClient::builder(ScriptedModel::new([empty(), empty()])).advisor(memory.clone());
    let client = client
        .on_drop(OnDrop::Rollback)
        .spawner(Spawner::tokio(tokio::runtime::Handle::current()))
        .build()
        .unwrap();
    for is_read in [false, true] {
        let mut turn = client.prompt().user("Hi").conversation("c").stream().started().await.unwrap();
        let handle = turn.handle();
        assert_eq!(handle.settled().now_or_never(), None);
        while is_read && turn.next().await.is_some() {}
        drop(turn);
        handle.settled().await;
        let transcript = memory.transcript(&ConversationKey::new("c").unwrap()).await.unwrap();
        assert_eq!(transcript.is_empty(), !is_read, "{transcript:?}");
    }
}

#[tokio::test]
async fn dropping_the_start_drops_the_turn() {
    let journal = Journal::new();
    let model = ScriptedModel::new([Answer::new().hang()]).with_journal(&journal);
    let client = ChatClient::builder(model).build().unwrap();
    let mut start = Box::pin(client.prompt().user("Hi").stream().started());
    let opened = futures::poll!(&mut start);
    drop((start, opened));
    journal.assert_order(&["model.ask r1", "model.drop r1"]);
}

#[tokio::test]
async fn turn_text_stream_separates_rounds_with_blank_line() {
    let model = ScriptedModel::new([
        Answer::new()
            .reasoning("hm")
            .text("Let me ")
            .text("look.")
            .call("c1", "look", "{}")
            .finish(FinishReason::ToolCalls),
        Answer::from_text("Sunny."),
    ]);
    let client = ChatClient::builder(model)
        .advisor(ToolCallAdvisor::new())
        .tool(tool("look", "sunny"))
        .build()
        .unwrap();
    let text: Vec<_> = client.prompt().user("Hi").stream().text().try_collect().await.unwrap();
    assert_eq!(text, ["Let me ", "look.", "\n\n", "Sunny."]);
}

#[tokio::test]
async fn refusal_is_text_to_readers_of_text_alone() {
    let refusing = || {
        let piece = |text: &str| Delta::from(DeltaKind::Refusal(text.into()));
        Answer::new().delta(piece("I cannot ")).delta(piece("help.")).finish(FinishReason::Stop)
    };
    let model = ScriptedModel::new([refusing(), refusing(), refusing().hang()]);
    let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
    let client = ChatClient::builder(model).advisor(memory.clone()).build().unwrap();
    let ask = || client.prompt().user("Hi").conversation("c");

    let text: Vec<_> = ask().stream().text().try_collect().await.unwrap();
    assert_eq!(text, ["I cannot ", "help."]);
    let mut fold = ChunkFold::default();
    let chunks: Vec<_> = ask().stream().try_collect().await.unwrap();
    chunks.iter().for_each(|chunk| fold.push(chunk));
    let shown: String = chunks.iter().filter_map(Chunk::text).collect();
    let response = chunks.last().and_then(Chunk::completed).unwrap();
    assert!(response.is_refusal());
    for text in [shown, response.text(), response.message().text(), fold.text(response.round())] {
        assert_eq!(text, "I cannot help.");
    }

    let mut turn = ask().stream();
    while turn.next().await.unwrap().unwrap().text() != Some("help.") {}
    drop(turn);
    let remembered = memory.transcript(&ConversationKey::new("c").unwrap()).await.unwrap();
    assert_eq!(remembered.last().unwrap().text(), "I cannot help. [interrupted]", "as it was shown");
}

#[tokio::test]
async fn text_stream_ends_with_turn_or_restart_error() {
    let model = ScriptedModel::new([Answer::new().text("He").error(down())]);
    let client = ChatClient::builder(model).build().unwrap();
    let read = |client: ChatClient| async move {
        let mut text = client.prompt().user("Hi").stream().text();
        let first = text.next().await.unwrap().unwrap();
        let error = text.next().await.unwrap().unwrap_err();
        assert!(text.next().await.is_none());
        (String::from(first), error.kind(), error.emitted())
    };
    assert_eq!(read(client).await, ("He".into(), ErrorKind::Authentication, true));
    let first = ScriptedModel::new([Answer::new().text("He").error(down())]);
    let model = FallbackModel::new(first)
        .with_fallback(ScriptedModel::new([Answer::from_text("Hello")]))
        .with_restart_after_output();
    let client = ChatClient::builder(model).build().unwrap();
    assert_eq!(read(client).await, ("He".into(), ErrorKind::Configuration, true));
}

#[tokio::test]
async fn ids_accept_keys_texts_and_options() {
    let seen = from_fn("seen", |request: ChatRequest, _: AdvisorChain| async move {
        let names = format!("{:?} {}", request.conversation, request.turn.id());
        Ok(request.answer(ChatResponse::new(0, Message::assistant(names), FinishReason::Stop)))
    });
    let client = ChatClient::builder(ScriptedModel::new([])).advisor(seen).build().unwrap();
    let owned = String::from("c");
    let key = ConversationKey::new("c").unwrap();
    let id = TurnId::new("t").unwrap();
    let prompt = || client.prompt().user(&owned).turn("t");
    for prompt in [
        prompt().conversation("c"),
        prompt().conversation(&owned),
        prompt().conversation(owned.clone()),
        prompt().conversation(&key),
        prompt().conversation(key.clone()),
        prompt().conversation(Some("c")),
        prompt().conversation(Some(owned.clone())),
        prompt().conversation("c").turn(id.clone()),
        prompt().conversation("c").turn(Some(&id)),
        prompt().conversation("c").turn(String::from("t")),
    ] {
        let response = prompt.call().await.unwrap();
        assert_eq!(response.text(), format!("{:?} t", Some(&key)));
        assert_eq!(response.turn.id(), &id);
    }
    let response = prompt().conversation(None::<&str>).call().await.unwrap();
    assert_eq!(response.text(), "None t");
    let error = client.prompt().user("Hi").turn("").call().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
}

/// An id of the application's own, which is not found.
struct Unknown;

impl IntoId<TurnId> for Unknown {
    fn into_id(self) -> Result<Option<TurnId>, Error> {
        Err(Error::new(ErrorKind::Authentication, "the session has ended").with_source("session 7"))
    }
}

#[tokio::test]
async fn id_error_keeps_its_kind_and_source() {
    let client = ChatClient::builder(ScriptedModel::new([])).build().unwrap();
    let prompt = client.prompt().user("Hi").turn(Unknown);
    for prompt in [prompt.clone(), prompt] {
        let error = prompt.call().await.unwrap_err();
        assert_eq!(
            (error.kind(), error.to_string().as_str()),
            (ErrorKind::Authentication, "the session has ended")
        );
        let mut sources = std::iter::successors(std::error::Error::source(&error), |source| source.source());
        assert!(sources.any(|source| source.to_string() == "session 7"), "{error:?}");
    }
}
