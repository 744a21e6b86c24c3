//! The advisor in chains with the tool loop and memory.

use advisor_testkit::StreamValidator;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use advisor_core::{
    BlockContent, BlockKind, ChatClient, ChatOptions, Chunk, ConversationKey, Error, ErrorKind,
    FallbackModel, FinishReason, Message, Phase, ResponseFormat, Result, Role, ToolDefinition, TurnStream,
};
use advisor_testkit::validate_transcript;
use advisor_testkit::{Answer, Gate, ScriptedModel, WordEmbeddings};
use chat_memory_advisor::{ChatMemoryAdvisor, InMemoryStore};
use common_advisors::retrieval::{
    Document, InMemoryVectors, OnFailure, Query, Retrieval, Retrieved, Retriever, VectorRetriever,
    VectorStore, embed_documents,
};
use futures::{FutureExt, StreamExt};
use serde_json::{Value, json};
use tool_call_advisor::{FnTool, ToolCallAdvisor, ToolCallStreaming};

const FOUND: &str =
    "<document number=\"1\" title=\"Hours\" url=\"https://a.example\">\nAt nine.\n</document>";

fn hours() -> Document {
    let (title, url) = (Some("Hours".into()), Some("https://a.example".into()));
    Document { title, url, ..Document::new("hours", "At nine.") }
}

/// A retriever that finds the hours, and counts.
fn counting() -> (Arc<AtomicUsize>, impl Retriever) {
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&calls);
    let retriever = move |_: Query| {
        counter.fetch_add(1, Ordering::Relaxed);
        async { Ok(vec![hours(), Document::new("cats", "Cats sleep.")]) }
    };
    (calls, retriever)
}

fn calling() -> Answer {
    Answer::new().text("let me see [1]").call("c1", "look", "{}").finish(FinishReason::ToolCalls)
}

fn look() -> FnTool {
    let look = ToolDefinition::new("look", "Looks.", json!({"type": "object"}));
    FnTool::new(look, |_: Value| async { Ok("sunny") })
}

fn texts<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Vec<String> {
    messages.into_iter().map(Message::text).collect()
}

/// The last message of the user as it was sent, with its documents.
fn asked(messages: &advisor_core::MessageList) -> String {
    messages.iter().rev().find(|message| message.role() == Role::User).map(Message::text).unwrap_or_default()
}

/// The titles of the citations in a message.
fn cited(message: &Message) -> Vec<String> {
    let title = |block: &advisor_core::Block| match block.content() {
        BlockContent::Citation(citation) => citation.title.as_ref().map(ToString::to_string),
        _ => None,
    };
    message.blocks().iter().filter_map(title).collect()
}

/// A chain with a tool and memory in this phase.
fn client(
    model: &ScriptedModel,
    retrieval: Retrieval,
    memory: Option<(Phase, ChatMemoryAdvisor)>,
) -> ChatClient {
    let client = ChatClient::builder(model.clone()).system("Be polite.").advisor(ToolCallAdvisor::new());
    let client = client.advisor(retrieval).tool(look());
    let client = memory.into_iter().fold(client, |client, (phase, memory)| client.advisor_in(phase, memory));
    client.build().unwrap()
}

/// Reads a turn to its end. Its chunks are well-formed.
async fn read(mut turn: TurnStream) -> Vec<Chunk> {
    let (mut chunks, mut validator) = (Vec::new(), StreamValidator::new());
    while let Some(chunk) = turn.next().await {
        let chunk = chunk.unwrap();
        validator.push(&chunk).unwrap_or_else(|violation| panic!("{violation}: {chunk:?}"));
        chunks.push(chunk);
    }
    chunks
}

#[tokio::test]
async fn law_m2_m4_documents_are_sent_every_round_unstored() {
    let mut stored = Vec::new();
    for remembers in [Some(Phase::Round), Some(Phase::Turn), None] {
        let (calls, retriever) = counting();
        let model =
            ScriptedModel::new([calling(), Answer::from_text("Sunny [1]."), Answer::from_text("Bye.")]);
        let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
        let placed = remembers.map(|phase| (phase, memory.clone()));
        let client = client(&model, Retrieval::new(retriever), placed);
        let response = client.prompt().user("Weather?").conversation("c").call().await.unwrap();
        assert_eq!(calls.load(Ordering::Relaxed), 1, "{remembers:?}: once per turn");
        assert_eq!(texts(&response.transcript), ["Weather?", "let me see [1]", "sunny", "Sunny [1]."]);
        client.prompt().user("Thanks").conversation("c").call().await.unwrap();
        assert_eq!(calls.load(Ordering::Relaxed), 2, "{remembers:?}");
        for prompt in model.prompts() {
            let sent = texts(&prompt.messages);
            assert_eq!(
                (sent[0].as_str(), sent.concat().matches(FOUND).count()),
                ("Be polite.", 1),
                "{sent:?}"
            );
            let asked = asked(&prompt.messages);
            assert!(asked.contains(FOUND), "{asked}");
            assert!(asked.ends_with("\n\nWeather?") || asked.ends_with("\n\nThanks"), "{asked}");
            assert_eq!(validate_transcript(&prompt.messages), []);
        }
        if remembers.is_some() {
            let key = ConversationKey::new("c").unwrap();
            let transcript = memory.transcript(&key).await.unwrap();
            assert!(!format!("{transcript:?}").contains("At nine."), "{transcript:?}");
            assert_eq!(cited(&transcript[3]), ["Hours"]);
            stored.push(format!("{:?}", transcript.iter().map(Message::blocks).collect::<Vec<_>>()));
        }
    }
    assert_eq!(stored[0], stored[1], "both places of memory hold the same");
}

#[tokio::test]
async fn law_m5_each_tenant_reads_its_documents() {
    let (model, store) = (WordEmbeddings::new(), InMemoryVectors::new());
    for tenant in ["acme", "umbrella"] {
        let document = Document::new("hours", format!("The shop of {tenant} opens at nine."));
        store.upsert(tenant, embed_documents(&model, [document]).await.unwrap()).await.unwrap();
    }
    let answers = ScriptedModel::new((0..3).map(|_| Answer::from_text("At nine.")));
    let retrieval = Retrieval::new(VectorRetriever::new(model, store));
    let client = client(&answers, retrieval, None);
    for tenant in ["acme", "umbrella", "other"] {
        let key = ConversationKey::in_tenant(tenant, "c").unwrap();
        client.prompt().user("When does the shop open?").conversation(key).call().await.unwrap();
    }
    let sent: Vec<_> = answers.prompts().iter().map(|prompt| asked(&prompt.messages)).collect();
    assert!(sent[0].contains("acme") && !sent[0].contains("umbrella"), "{sent:?}");
    assert!(sent[1].contains("umbrella") && !sent[1].contains("acme"), "{sent:?}");
    assert_eq!(sent[2], "When does the shop open?", "a tenant without documents");
}

#[tokio::test]
async fn law_s2_text_is_not_held_back_for_citations() {
    let gate = Gate::new();
    let answer = Answer::new().text("At nine [1").gate(&gate).text("]. And [2").text("]");
    let model = ScriptedModel::new([answer.finish(FinishReason::Stop)]);
    let (_, retriever) = counting();
    let mut turn = client(&model, Retrieval::new(retriever), None).prompt().user("When?").stream();
    let mut shown = String::new();
    while !shown.ends_with("[1") {
        shown.push_str(turn.next().await.unwrap().unwrap().text().unwrap_or_default());
    }
    assert!(turn.next().now_or_never().is_none(), "the model waits");
    gate.release();
    let rest: Vec<_> = turn.map(Result::unwrap).collect().await;
    let texts: Vec<_> = rest.iter().filter_map(Chunk::text).collect();
    assert_eq!(texts.concat(), "]. And [2]");
    let Some(Chunk::Completed(response)) = rest.last() else { panic!("no completion") };
    assert_eq!(cited(response.message()), ["Hours", "cats"]);
}

#[tokio::test]
async fn law_s3_s4_citations_follow_the_text_that_names_them() {
    let answer = Answer::new().text("Both [2, 1] and [1], [7].").reasoning("Hm [1].").text(" Cats [2].");
    let model = ScriptedModel::new([answer.finish(FinishReason::Stop)]);
    let (_, retriever) = counting();
    let chunks = read(client(&model, Retrieval::new(retriever), None).prompt().user("When?").stream()).await;
    let Some(Chunk::Completed(response)) = chunks.last() else { panic!("no completion") };
    let kinds: Vec<_> = response.message().blocks().iter().map(advisor_core::Block::kind).collect();
    use BlockKind::{Citation, Reasoning, Text};
    assert_eq!(kinds, [Text, Citation, Citation, Reasoning, Text, Citation]);
    assert_eq!(cited(response.message()), ["cats", "Hours", "cats"]);
    let closed = chunks.iter().filter(|chunk| matches!(chunk, Chunk::Closed { .. })).count();
    assert_eq!(closed, 6, "each block is shown");
    let BlockContent::Citation(hours) = response.message().blocks()[2].content() else { panic!() };
    assert_eq!((hours.url.as_deref(), hours.quote.as_deref()), (Some("https://a.example"), None));
    let data = response.message().blocks()[2].provider_data();
    assert_eq!((&*data[0].format, &data[0].value), ("retrieval", &json!({"number": 1, "id": "hours"})));
}

#[tokio::test]
async fn only_the_final_text_is_cited_in_every_phase() {
    for phase in [Phase::Turn, Phase::Round, Phase::ModelCall] {
        let (calls, retriever) = counting();
        let model = ScriptedModel::new([calling(), Answer::from_text("Sunny [2].")]);
        let tool_loop = ToolCallAdvisor::builder().streaming(ToolCallStreaming::All).build().unwrap();
        let client = ChatClient::builder(model)
            .advisor(tool_loop)
            .advisor_in(phase, Retrieval::new(retriever))
            .tool(look())
            .build()
            .unwrap();
        let chunks = read(client.prompt().user("Weather?").stream()).await;
        let Some(Chunk::Completed(response)) = chunks.last() else { panic!("no completion") };
        assert_eq!(cited(response.message()), ["cats"], "{phase}");
        let citations: usize = response.transcript.iter().map(|message| cited(message).len()).sum();
        assert_eq!((citations, calls.load(Ordering::Relaxed)), (1, 1), "{phase}");
    }
}

/// The first model breaks off after it has named a document, and the second one answers from the beginning.
#[tokio::test]
async fn a_void_attempt_has_no_citations() {
    let broken =
        Answer::new().text("Cats [2].").reasoning("Hm.").error(Error::new(ErrorKind::Connection, "broken"));
    let model = FallbackModel::new(ScriptedModel::new([broken]))
        .with_fallback(ScriptedModel::new([Answer::from_text("At nine [1].")]))
        .with_restart_after_output();
    let (calls, retriever) = counting();
    let client = ChatClient::builder(model).advisor(Retrieval::new(retriever)).build().unwrap();
    let chunks = read(client.prompt().user("When?").stream()).await;
    assert!(chunks.iter().any(|chunk| matches!(chunk, Chunk::AttemptRestarted { .. })));
    let Some(Chunk::Completed(response)) = chunks.last() else { panic!("no completion") };
    assert_eq!((cited(response.message()), calls.load(Ordering::Relaxed)), (vec!["Hours".to_owned()], 1));
}

#[tokio::test]
async fn lists_in_json_are_no_citations() {
    for (format, expected) in [(ResponseFormat::Text, 1), (ResponseFormat::JsonObject, 0)] {
        let model = ScriptedModel::new([Answer::from_text("{\"ids\": [1]}")]);
        let (_, retriever) = counting();
        let options = ChatOptions { response_format: Some(format), ..ChatOptions::default() };
        let prompt = client(&model, Retrieval::new(retriever), None).prompt().user("Which?").options(options);
        assert_eq!(cited(prompt.call().await.unwrap().message()).len(), expected);
    }
}

#[tokio::test]
async fn failing_retriever_ends_the_turn_by_default() {
    let failing = |_: Query| async { Err(Error::new(ErrorKind::Connection, "the index is down")) };
    let model = ScriptedModel::new([Answer::from_text("Hello [1].")]);
    let client_of = |retrieval| client(&model, retrieval, None);
    let error = client_of(Retrieval::new(failing)).prompt().user("When?").call().await.unwrap_err();
    assert_eq!((error.kind(), model.calls()), (ErrorKind::Connection, 0));

    let tolerant = client_of(Retrieval::new(failing).with_on_failure(OnFailure::Continue));
    let response = tolerant.prompt().user("When?").call().await.unwrap();
    assert_eq!((response.text().as_str(), response.message().blocks().len()), ("Hello [1].", 1));
    assert_eq!(texts(&model.prompts()[0].messages), ["Be polite.", "When?"]);
    assert_eq!(response.turn.extensions().get::<Retrieved>(), None);
}

#[tokio::test]
async fn two_retrievals_number_their_documents_on() {
    let cats = || {
        let mut cats = Document::new("cats", "Cats sleep.");
        cats.score = Some(0.5);
        cats
    };
    let cats = move |_: Query| async move { Ok(vec![cats()]) };
    let model = ScriptedModel::new([Answer::from_text("Both [1][3].")]);
    let (_, retriever) = counting();
    let client = ChatClient::builder(model.clone())
        .advisor(Retrieval::new(retriever))
        .advisor(Retrieval::new(cats).with_name("cats").with_instructions("Cats:"))
        .build()
        .unwrap();
    let response = client.prompt().user("When?").call().await.unwrap();
    assert!(
        asked(&model.prompts()[0].messages)
            .ends_with("Cats:\n\n<document number=\"3\">\nCats sleep.\n</document>\n\nWhen?")
    );
    assert_eq!(cited(response.message()), ["cats", "Hours"], "the inner advisor is the first to add");
    let retrieved = response.turn.extensions().get::<Retrieved>().unwrap();
    let ids: Vec<_> = retrieved.0.iter().map(|document| document.id.to_string()).collect();
    assert_eq!(ids, ["hours", "cats", "cats"]);
    assert_eq!((retrieved.numbered(0), retrieved.numbered(4)), (None, None));
    assert_eq!(retrieved.numbered(3).and_then(|document| document.score), Some(0.5));
}

/// Without a text of the user, and without a match, no instructions are sent.
#[tokio::test]
async fn nothing_is_sent_without_documents() {
    let queries = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = Arc::clone(&queries);
    let retriever = move |query: Query| {
        seen.lock().unwrap().push((query.text.to_string(), query.tenant().to_owned()));
        async { Ok(Vec::new()) }
    };
    let model = ScriptedModel::new((0..2).map(|_| Answer::from_text("Hello.")));
    let client = client(&model, Retrieval::new(retriever), None);
    let empty = client.prompt().user(" ").call().await.unwrap();
    assert_eq!(empty.turn.extensions().get::<Retrieved>(), None);
    let asked = client.prompt().user("Wann?").call().await.unwrap();
    assert_eq!(asked.turn.extensions().get::<Retrieved>(), Some(Retrieved::default()));
    assert_eq!(*queries.lock().unwrap(), [("Wann?".to_owned(), "default".to_owned())]);
    assert_eq!(texts(&model.prompts()[1].messages), ["Be polite.", "Wann?"], "no document, no instructions");
}

#[tokio::test]
async fn documents_are_sent_with_instructions_by_choice() {
    let (_, retriever) = counting();
    let model = ScriptedModel::new([Answer::from_text("At nine [1].")]);
    let client = client(&model, Retrieval::new(retriever).in_system(), None);
    client.prompt().user("When?").call().await.unwrap();
    let sent = texts(&model.prompts()[0].messages);
    assert!(sent[0].starts_with("Be polite.\n\n") && sent[0].contains(FOUND), "{sent:?}");
    assert_eq!(sent[1..], ["When?"]);
}

#[tokio::test]
async fn place_outside_memory_is_refused() {
    let (_, retriever) = counting();
    let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
    let chain = ChatClient::builder(ScriptedModel::new([]))
        .advisor_in(Phase::Turn, Retrieval::new(retriever))
        .advisor_in(Phase::Round, memory);
    assert_eq!(chain.build().unwrap_err().kind(), ErrorKind::Configuration);
}
