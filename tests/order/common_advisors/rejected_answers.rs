//! Rejected answers leave a `ResponseCache`, and accepted ones stay.

use advisor_examples::advisors::ask_again;
use advisor_testkit::WordEmbeddings;
use advisor_tests::prelude::*;

/// A cache, and one that also knows similar questions.
fn caches() -> [ResponseCache; 2] {
    let similar = ResponseCache::default().with_similar(WordEmbeddings::new(), 0.9);
    [ResponseCache::default(), similar]
}

async fn number(client: &ChatClient, question: &str) -> Result<u32, Error> {
    client.prompt().user(question).entity::<u32>().await
}

/// Each attempt reaches the model, also if its request equals an earlier one, and the next turn asks the model again.
#[tokio::test]
async fn value_that_does_not_fit_is_not_repeated() {
    for cache in caches() {
        let model = ScriptedModel::new(["Many", "Many", "Many", "Many", "7"].map(Answer::from_text));
        let client = ChatClient::builder(model.clone()).advisor(cache).build().unwrap();
        let error = number(&client, "How many are there?").await.unwrap_err();
        assert_eq!((error.kind(), model.calls()), (ErrorKind::InvalidOutput, 3), "{error}");
        assert!(error.to_string().contains("(attempts: 3)"), "{error}");
        assert_eq!(number(&client, "how many are there").await.unwrap(), 7);
        assert_eq!(model.calls(), 5);
    }
}

/// A repeated answer that is rejected is removed, also if it was kept for a similar question.
#[tokio::test]
async fn repeated_answer_that_is_rejected_is_removed() {
    for cache in caches() {
        let model =
            ScriptedModel::new(["It is grey.", "It is sunny.", "It is sunny again."].map(Answer::from_text));
        let plain = ChatClient::builder(model.clone()).advisor(cache.clone()).build().unwrap();
        let asking =
            ChatClient::builder(model.clone()).advisor(ask_again("sunny")).advisor(cache).build().unwrap();
        let ask =
            async |client: &ChatClient, text: &str| client.prompt().user(text).call().await.unwrap().text();
        assert_eq!(ask(&plain, "How is it today?").await, "It is grey.");
        assert_eq!(ask(&asking, "How is it today?").await, "It is sunny.");
        assert_eq!(model.calls(), 2, "the first answer came from the cache");
        assert_eq!(ask(&plain, "how is it today").await, "It is sunny again.");
    }
}

/// An answer that is rejected for a similar question is forgotten.
#[tokio::test]
async fn answer_to_a_similar_question_that_is_rejected_is_removed() {
    let [_, cache] = caches();
    let model = ScriptedModel::new(["It is grey.", "It is sunny.", "It is windy."].map(Answer::from_text));
    let plain = ChatClient::builder(model.clone()).advisor(cache.clone()).build().unwrap();
    let asking =
        ChatClient::builder(model.clone()).advisor(ask_again("sunny")).advisor(cache).build().unwrap();
    for (client, text, expected, calls) in [
        (&plain, "How is it today?", "It is grey.", 1),
        (&asking, "how is it today", "It is sunny.", 2),
        (&plain, "How is it today", "It is windy.", 3),
        (&plain, "How is it today?", "It is windy.", 3),
    ] {
        assert_eq!(client.prompt().user(text).call().await.unwrap().text(), expected, "{text}");
        assert_eq!(model.calls(), calls, "{text}");
    }
}
