//! `ResponseCache::with_similar`: similar questions share an answer if everything else is equal.

use advisor_chain::Prompt;
use advisor_chain::chain::{Embedding, EmbeddingModel};
use advisor_chain::messages::Text;
use advisor_testkit::WordEmbeddings;
use advisor_tests::log::Log;
use advisor_tests::prelude::*;

use crate::common_advisors::support::{looks, says, tool};

/// A model that numbers its answers.
fn numbered() -> ScriptedModel {
    let mut asked = 0;
    ScriptedModel::from_fn(move |_| {
        asked += 1;
        says(&format!("Answer {asked}."), 10)
    })
}

fn cache() -> ResponseCache {
    ResponseCache::default().with_similar(WordEmbeddings::new(), 0.9)
}

fn client(model: &ScriptedModel, cache: ResponseCache) -> ChatClient {
    ChatClient::builder(model.clone()).advisor(cache).build().unwrap()
}

async fn ask(prompt: Prompt) -> String {
    prompt.call().await.unwrap().text()
}

#[tokio::test]
async fn similar_question_has_the_same_answer() {
    let (model, embeddings) = (numbered(), WordEmbeddings::new());
    let cache = ResponseCache::default().with_similar(embeddings.clone(), 0.9);
    let client = client(&model, cache);
    let ask = async |text: &str| ask(client.prompt().user(text)).await;
    assert_eq!(ask("When do you open?").await, "Answer 1.");
    assert_eq!(ask("when do you open").await, "Answer 1.");
    assert_eq!(ask("Where is the station?").await, "Answer 2.", "it is not similar");
    assert_eq!(embeddings.calls(), 3);
    assert_eq!(ask("When do you open?").await, "Answer 1.");
    assert_eq!(embeddings.calls(), 3, "an equal request needs no embedding");
}

#[tokio::test]
async fn everything_but_the_question_has_to_be_equal() {
    let client = client(&numbered(), cache());
    let (first, similar) = ("When do you open?", "when do you open");
    assert_eq!(ask(client.prompt().user(first)).await, "Answer 1.");
    assert_eq!(ask(client.prompt().system("Be brief.").user(similar)).await, "Answer 2.");
    let options = ChatOptions { seed: Some(7), ..ChatOptions::default() };
    assert_eq!(ask(client.prompt().user(similar).options(options.clone())).await, "Answer 3.");
    let mut extra = ChatOptions::default();
    for (number, expected) in [(1, "Answer 4."), (2, "Answer 5."), (1, "Answer 4.")] {
        extra.extra.insert("top_k".into(), number.into());
        assert_eq!(ask(client.prompt().user(similar).options(extra.clone())).await, expected);
    }
    let with_tool = || client.prompt().tool(tool("look", |_| async { Ok(String::new()) }));
    assert_eq!(ask(with_tool().user(similar)).await, "Answer 6.");
    assert_eq!(ask(client.prompt().user("Hello.").user(similar)).await, "Answer 7.", "an earlier message");
    assert_eq!(ask(with_tool().user(first)).await, "Answer 6.");
    assert_eq!(ask(client.prompt().user(first).options(options)).await, "Answer 3.");
    assert_eq!(ask(client.prompt().user(similar)).await, "Answer 1.");
}

#[tokio::test]
async fn law_m5_tenants_share_no_similar_questions() {
    let ask = async |client: &ChatClient, tenant: &str, text: &str| {
        let key = ConversationKey::in_tenant(tenant, "c").unwrap();
        ask(client.prompt().user(text).conversation(key)).await
    };
    let client = client(&numbered(), cache());
    for (tenant, text, expected) in [
        ("a", "When do you open?", "Answer 1."),
        ("b", "when do you open", "Answer 2."),
        ("a", "do you open when", "Answer 1."),
        ("b", "do you open when?", "Answer 2."),
    ] {
        assert_eq!(ask(&client, tenant, text).await, expected);
    }
}

/// Calls depend on the words of a question, and an incomplete answer answers none.
#[tokio::test]
async fn only_complete_answers_without_calls_are_given_to_others() {
    let model = ScriptedModel::new([
        looks(10),
        says("It is noon.", 10),
        looks(10),
        says("It is one.", 10),
        Answer::new().text("Cut").finish(FinishReason::Length),
        says("Whole.", 10),
    ]);
    let client = ChatClient::builder(model.clone())
        .advisor(ToolCallAdvisor::builder().build().unwrap())
        .advisor(cache())
        .tool(tool("look", |_| async { Ok("a result".into()) }))
        .build()
        .unwrap();
    for (text, expected) in [
        ("How late is it?", "It is noon."),
        ("how late is it", "It is one."),
        ("When do you open?", "Cut"),
        ("when do you open", "Whole."),
        ("do you open when", "Whole."),
    ] {
        let answer = ask(client.prompt().user(text)).await;
        assert!(answer.ends_with(expected), "{answer}");
    }
    assert_eq!(model.calls(), 6);
}

/// An embedding model that fails.
struct Broken;

#[async_trait]
impl EmbeddingModel for Broken {
    async fn embed(&self, _: &[Text]) -> Result<Vec<Embedding>> {
        Err(Error::new(ErrorKind::Connection, "canary is down"))
    }
}

#[tokio::test]
async fn law_r3_failed_embedding_asks_the_model_and_warns() {
    let (log, _logging) = Log::start();
    let client = client(&numbered(), ResponseCache::default().with_similar(Broken, 0.9));
    assert_eq!(ask(client.prompt().user("A canary?")).await, "Answer 1.");
    assert_eq!(ask(client.prompt().user("A canary?")).await, "Answer 1.", "equal requests work");
    let lines = log.take();
    assert_eq!(lines.matches("WARN").count(), 1, "{lines}");
    assert!(lines.contains("response-cache") && !lines.contains("canary"), "{lines}");
}
