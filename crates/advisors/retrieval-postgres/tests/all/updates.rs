//! Tests of documents and filters beyond the suite.

use std::sync::Arc;

use advisor_core::{Embedding, EmbeddingModel, Text};
use advisor_testkit::WordEmbeddings;
use common_advisors::retrieval::{
    Condition, Document, EmbeddedDocument, Filter, Query, Retriever, VectorError, VectorRetriever,
    VectorStore, embed_documents,
};
use retrieval_postgres::PostgresVectors;
use serde_json::json;

use crate::support::{Place, document, found};

#[tokio::test]
async fn texts_with_nul_are_stored_and_found() {
    let Some(place) = Place::new() else { return };
    let store = place.store(1).await;
    let mut documents = Vec::new();
    for (number, id) in ["a\u{0}", "a", "a\u{1}0", "a\u{0}\u{1}"].into_iter().enumerate() {
        let mut new = document(id, [1.0, 0.0, 0.0]);
        new.document = new.document.with_metadata("na\u{0}me", json!({"\u{0}": [id]}));
        new.document.text = format!("te\u{0}xt {number}").into();
        documents.push(new);
    }
    for tenant in ["t\u{0}", "t\u{1}0"] {
        store.upsert(tenant, documents.clone()).await.unwrap();
    }
    let filter = Filter::in_tenant("t\u{0}").with_equal("na\u{0}me", json!({"\u{0}": ["a\u{0}"]}));
    let hit = store.search(&Embedding::new([1.0, 0.0, 0.0]).unwrap(), 9, &filter).await.unwrap();
    assert_eq!(hit.len(), 1);
    assert_eq!((&*hit[0].id, &*hit[0].text), ("a\u{0}", "te\u{0}xt 0"));
    assert_eq!(
        found(&store, 9, &Filter::in_tenant("t\u{0}").with(Condition::Ids(vec!["a\u{0}\u{1}".into()])))
            .await
            .len(),
        1
    );
    assert_eq!(store.delete(&Filter::in_tenant("t\u{0}")).await.unwrap(), 4);
    assert_eq!(store.delete(&Filter::in_tenant("t\u{1}0")).await.unwrap(), 4);
    place.remove().await;
}

/// Squares of such numbers are no `f32`.
#[tokio::test]
async fn scores_of_extreme_numbers_are_cosines() {
    let Some(place) = Place::new() else { return };
    let store = place.store(1).await;
    let documents = vec![document("large", [f32::MAX, f32::MAX, 0.0]), document("small", [0.0, 1e-45, 0.0])];
    store.upsert("acme", documents).await.unwrap();
    let asked = Embedding::new([0.0, 1e-30, 0.0]).unwrap();
    let hits = store.search(&asked, 9, &Filter::in_tenant("acme")).await.unwrap();
    let scores: Vec<_> = hits.iter().map(|hit| hit.score.unwrap()).collect();
    assert_eq!(hits[0].id.as_str(), "small");
    assert!((scores[0] - 1.0).abs() < 1e-6 && (scores[1] - 0.707_106_77).abs() < 1e-6, "{scores:?}");
    place.remove().await;
}

#[tokio::test]
async fn refused_documents_write_nothing() {
    let Some(place) = Place::new() else { return };
    let store = place.store(1).await;
    let long = document(&"i".repeat(3_000), [1.0, 0.0, 0.0]);
    let refused = store.upsert("acme", vec![document("a", [1.0, 0.0, 0.0]), long]).await;
    assert!(matches!(refused, Err(VectorError::Refused { .. })), "{refused:?}");
    assert_eq!(found(&store, 9, &Filter::in_tenant("acme")).await, [""; 0]);
    // The longest allowed key, which the server cannot compress.
    let text: String = (0_u64..)
        .map(|number| format!("{:x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
        .take(200)
        .collect();
    let longest = document(&text[..2_596], [1.0, 0.0, 0.0]);
    store.upsert("acme", vec![longest]).await.unwrap();
    // Nobody has a longer one.
    let all = Filter::in_tenant("t".repeat(10_000)).with(Condition::Ids(vec!["i".repeat(10_000).into()]));
    assert_eq!(store.delete(&all).await.unwrap(), 0);
    place.remove().await;
}

#[tokio::test]
async fn retriever_applies_limit_threshold_and_filter() {
    let Some(place) = Place::new() else { return };
    let store = PostgresVectors::from_pool(place.pool(2), &place.schema, 256).await.unwrap();
    let model = WordEmbeddings::new();
    let texts = ["The shop opens at nine.", "The shop opens at ten.", "Cats sleep."];
    let documents = texts.iter().zip(["en", "us", "en"]).enumerate();
    let documents = documents.map(|(number, (text, language))| {
        Document::new(number.to_string(), *text).with_metadata("language", language)
    });
    store.upsert("shared", embed_documents(&model, documents).await.unwrap()).await.unwrap();
    let retriever = VectorRetriever {
        limit: 5,
        min_score: Some(0.2),
        filter: Arc::new(|_| Filter::in_tenant("shared").with_equal("language", "en")),
        ..VectorRetriever::new(model, store)
    };
    let hits = retriever.retrieve(Query::new("When does the shop open?")).await.unwrap();
    assert_eq!(hits.iter().map(|hit| hit.id.as_str()).collect::<Vec<_>>(), ["0"]);
    place.remove().await;
}

/// Updates and deletions of the same documents lock rows in different orders.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_updates_and_deletions_do_not_fail() {
    let Some(place) = Place::new() else { return };
    let store = place.store(4).await;
    let tasks = (0..4).map(|task| {
        let store = store.clone();
        tokio::spawn(async move {
            for round in 0..10 {
                let numbers = (0..30).map(|number| format!("{}", (number * (task + 3) + round) % 30));
                let documents = numbers.map(|id| document(&id, [1.0, 0.0, 0.0])).collect();
                store.upsert("acme", documents).await.unwrap();
                store
                    .delete(&Filter::in_tenant("acme").with(Condition::NotEqual("kept".into(), true.into())))
                    .await
                    .unwrap();
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    assert_eq!(found(&store, 100, &Filter::in_tenant("acme")).await, [""; 0]);
    place.remove().await;
}

/// The model of these embeddings and that of the store differ.
#[tokio::test]
async fn other_dimensions_are_refused_before_anything_is_sent() {
    let Some(place) = Place::new() else { return };
    let pool = place.pool(1);
    let store = PostgresVectors::from_pool(pool.clone(), &place.schema, 3).await.unwrap();
    pool.close();
    let texts: [Text; 1] = ["wide".into()];
    let wide = WordEmbeddings::new().embed_all(&texts).await.unwrap().remove(0);
    let refused = store.search(&wide, 1, &Filter::in_tenant("acme")).await;
    assert!(matches!(refused, Err(VectorError::Dimensions { expected: 3, found: 256 })), "{refused:?}");
    let new = EmbeddedDocument { document: Document::new("wide", "wide"), embedding: wide };
    let refused = store.upsert("acme", vec![new]).await;
    assert!(matches!(refused, Err(VectorError::Dimensions { expected: 3, found: 256 })), "{refused:?}");
    place.remove().await;
}
