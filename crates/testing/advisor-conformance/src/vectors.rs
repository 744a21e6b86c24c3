//! The conformance suite of a [`VectorStore`]: one clause per function, and the macro that runs them all.
//!
//! A clause panics if the store violates it. Each uses its own tenants, so that clauses can run concurrently on one
//! server. All embeddings have [`DIMENSIONS`] dimensions.
//!
//! ```
//! mod conformance {
//!     // The expression makes the store; it may await.
//!     advisor_conformance::vector_conformance!(common_advisors::retrieval::InMemoryVectors::new());
//! }
//! ```
//!
//! Each clause becomes a test on several threads of a tokio runtime. So the crate that uses the macro needs tokio with
//! `macros` and `rt-multi-thread`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a clause fails by panicking"
)]

use std::sync::Arc;

use advisor_core::{Embedding, Text, TurnId};
use common_advisors::retrieval::{Condition, Document, EmbeddedDocument, Filter, VectorError, VectorStore};
use serde_json::json;

/// Runs every clause of the module [`vectors`](mod@crate::vectors) on a vector store, each as a test.
#[macro_export]
macro_rules! vector_conformance {
    ($make_store:expr) => {
        $crate::vector_conformance! { @tests $make_store;
            closest_documents_come_first
            limit_bounds_the_found_documents
            documents_survive_unchanged
            same_id_replaces_a_document
            tenants_share_nothing
            filters_apply_before_the_limit
            filters_compare_metadata
            deletion_is_for_matching_documents_only
            other_dimensions_are_refused_whole
            concurrent_updates_lose_nothing
        }
    };
    (@tests $make_store:expr; $($clause:ident)*) => {$(
        #[::tokio::test(flavor = "multi_thread", worker_threads = 4)]
        async fn $clause() {
            $crate::vectors::$clause(::std::sync::Arc::new($make_store)).await;
        }
    )*};
}

/// The number of dimensions of all embeddings in the suite, for stores that are created with a fixed one.
pub const DIMENSIONS: usize = 3;

type Store = Arc<dyn VectorStore>;

/// Returns a tenant that no other test uses, on any server.
fn new_tenant() -> String {
    String::from(TurnId::random())
}

fn embedding(numbers: [f32; DIMENSIONS]) -> Embedding {
    Embedding::new(numbers).unwrap()
}

fn stored(document: Document, numbers: [f32; DIMENSIONS]) -> EmbeddedDocument {
    EmbeddedDocument { document, embedding: embedding(numbers) }
}

fn plain(id: &str) -> Document {
    Document::new(id, format!("text of {id}"))
}

fn document(id: &str, numbers: [f32; DIMENSIONS]) -> EmbeddedDocument {
    stored(plain(id), numbers)
}

/// The ids of the documents that are found from the first axis.
async fn found(store: &Store, limit: usize, filter: &Filter) -> Vec<String> {
    let found = store.search(&embedding([1.0, 0.0, 0.0]), limit, filter).await.unwrap();
    found.iter().map(|document| document.id.to_string()).collect()
}

/// The closest document is the first. Its score is the cosine, whatever the lengths of the vectors are.
pub async fn closest_documents_come_first(store: Store) {
    let tenant = new_tenant();
    let documents = vec![
        document("opposite", [-2.0, 0.0, 0.0]),
        document("near", [3.0, 3.0, 0.0]),
        document("square", [0.0, 0.5, 0.0]),
        document("same", [0.01, 0.0, 0.0]),
    ];
    store.upsert(&tenant, documents).await.unwrap();
    let filter = Filter::in_tenant(tenant.as_str());
    assert_eq!(found(&store, 9, &filter).await, ["same", "near", "square", "opposite"]);
    let scored = store.search(&embedding([7.0, 0.0, 0.0]), 9, &filter).await.unwrap();
    for (document, expected) in scored.iter().zip([1.0, std::f32::consts::FRAC_1_SQRT_2, 0.0, -1.0]) {
        let score = document.score.unwrap();
        assert!((score - expected).abs() < 1e-5, "{} has {score}, not {expected}", document.id.as_str());
    }
}

/// A search returns at most as many documents as it is asked for: the closest ones, and of equally close ones those
/// whose ids come first, so that a search can be repeated.
pub async fn limit_bounds_the_found_documents(store: Store) {
    let tenant = new_tenant();
    for (id, height) in [("c", 2.0), ("a", 2.0), ("b", 2.0), ("z", 1.0), ("y", 3.0)] {
        store.upsert(&tenant, vec![document(id, [1.0, height, 0.0])]).await.unwrap();
    }
    let filter = Filter::in_tenant(tenant);
    for (limit, expected) in [(0, ""), (1, "z"), (3, "zab"), (50, "zabcy")] {
        assert_eq!(found(&store, limit, &filter).await.concat(), expected);
    }
}

/// A document comes back as it was stored, apart from its score.
pub async fn documents_survive_unchanged(store: Store) {
    let tenant = new_tenant();
    let plain = Document::new("plain ' \" % ä/🦀", "");
    let full = Document::new("full", "Zeile 1\nZeile 2 \u{1F980} e\u{301} \\ '; --")
        .with_metadata("nested", json!({"list": [1, null, "x", {"deep": true}], "text": "ä"}))
        .with_metadata("", "a name without letters");
    let (title, url) = (Some("T\"itle".into()), Some("https://example.org/?a=1&b=ü#c".into()));
    let full = Document { title, url, score: Some(9.0), ..full };
    for (number, document) in [plain, full].into_iter().enumerate() {
        let numbers = if number == 0 { [1.0, 0.0, 0.0] } else { [0.0, 1.0, 0.0] };
        store.upsert(&tenant, vec![stored(document.clone(), numbers)]).await.unwrap();
        let found = store.search(&embedding(numbers), 1, &Filter::in_tenant(tenant.as_str())).await.unwrap();
        let score = found[0].score.unwrap();
        assert!((score - 1.0).abs() < 1e-5, "the score is the cosine, not {score}");
        let mut expected = document;
        expected.score = Some(score);
        assert_eq!(found[0], expected);
    }
}

/// A document with a known id replaces the known one, its embedding and metadata included. One update may have an id
/// several times: the last document counts.
pub async fn same_id_replaces_a_document(store: Store) {
    let tenant = new_tenant();
    let old = || stored(plain("a").with_metadata("old", true), [1.0, 0.0, 0.0]);
    let new = || document("a", [-1.0, 0.0, 0.0]);
    store.upsert(&tenant, vec![old(), document("b", [1.0, 1.0, 0.0])]).await.unwrap();
    let filter = Filter::in_tenant(tenant.as_str());
    for update in [vec![new()], vec![old(), new()]] {
        store.upsert(&tenant, update).await.unwrap();
        assert_eq!(found(&store, 9, &filter).await, ["b", "a"]);
        assert_eq!(found(&store, 9, &filter.clone().with_equal("old", true)).await, [""; 0]);
    }
    assert_eq!(store.delete(&filter).await.unwrap(), 2);
}

/// A tenant finds and deletes no document of another one, also under the same id.
pub async fn tenants_share_nothing(store: Store) {
    let (one, other) = (new_tenant(), new_tenant());
    for (tenant, number) in [(&one, 1), (&other, 2)] {
        let same_id = stored(plain("a").with_metadata("number", number), [1.0, 0.0, 0.0]);
        store.upsert(tenant, vec![same_id]).await.unwrap();
    }
    let of = |tenant: &str, number: i32| Filter::in_tenant(tenant).with_equal("number", number);
    assert_eq!(found(&store, 9, &of(&one, 1)).await, ["a"]);
    assert_eq!(found(&store, 9, &of(&one, 2)).await, [""; 0]);
    assert_eq!(store.delete(&Filter::in_tenant(one.as_str())).await.unwrap(), 1);
    assert_eq!(found(&store, 9, &of(&other, 2)).await, ["a"]);
    // Neither upper and lower case nor a common beginning make tenants equal.
    for similar in [other.to_uppercase(), format!("{other} "), format!("{other}%")] {
        let same = similar == other;
        assert_eq!(found(&store, 9, &Filter::in_tenant(similar)).await.is_empty(), !same);
    }
}

/// The limit counts documents that pass the filter, also if many others are closer.
pub async fn filters_apply_before_the_limit(store: Store) {
    let tenant = new_tenant();
    let mut documents: Vec<_> =
        (0..200).map(|number| document(&format!("near {number}"), [1.0, 0.0, 0.0])).collect();
    documents.push(stored(plain("far").with_metadata("wanted", true), [-1.0, 0.1, 0.0]));
    store.upsert(&tenant, documents).await.unwrap();
    assert_eq!(found(&store, 1, &Filter::in_tenant(tenant).with_equal("wanted", true)).await, ["far"]);
}

/// Conditions compare whole values, and all of them have to be met. A missing value equals none.
pub async fn filters_compare_metadata(store: Store) {
    let tenant = new_tenant();
    let null = serde_json::Value::Null;
    let documents = [
        plain("a").with_metadata("language", "en").with_metadata("year", 2020),
        plain("b").with_metadata("language", "de").with_metadata("year", 2020),
        plain("c").with_metadata("language", json!(["en"])),
        plain("d").with_metadata("language", null.clone()),
        plain("e"),
    ];
    let documents = documents.map(|document| stored(document, [1.0, 0.0, 0.0]));
    store.upsert(&tenant, documents.into()).await.unwrap();
    let all = || Filter::in_tenant(tenant.as_str());
    let one_of = |values| Condition::OneOf("language".into(), values);
    let not_english = || Condition::NotEqual("language".into(), "en".into());
    let cases: [(Filter, &[&str]); 10] = [
        (all(), &["a", "b", "c", "d", "e"]),
        (all().with_equal("language", "en"), &["a"]),
        (all().with_equal("language", "EN"), &[]),
        (all().with_equal("language", null.clone()), &["d"]),
        (all().with(one_of(["en", "de", "fr"].map(Into::into).into())), &["a", "b"]),
        (all().with(one_of(vec![json!(["en"]), null.clone()])), &["c", "d"]),
        (all().with(not_english()), &["b", "c", "d", "e"]),
        (all().with_equal("year", 2020).with(not_english()), &["b"]),
        (all().with(Condition::Ids(["a", "e", "f"].map(Text::from).into())), &["a", "e"]),
        (all().with(Condition::Ids(Vec::new())), &[]),
    ];
    for (filter, expected) in cases {
        assert_eq!(found(&store, 9, &filter).await, expected, "{filter:?}");
    }
}

/// Deletion removes the documents that pass the filter, none of an unknown tenant. It returns their number, and leaves all
/// others.
pub async fn deletion_is_for_matching_documents_only(store: Store) {
    let tenant = new_tenant();
    let documents =
        ["a", "b", "c"].map(|id| stored(plain(id).with_metadata("odd", id != "b"), [1.0, 0.0, 0.0]));
    store.upsert(&tenant, documents.into()).await.unwrap();
    let all = Filter::in_tenant(tenant.as_str());
    assert_eq!(store.delete(&Filter::in_tenant(new_tenant())).await.unwrap(), 0);
    assert_eq!(store.delete(&all.clone().with_equal("odd", true)).await.unwrap(), 2);
    assert_eq!(found(&store, 9, &all).await, ["b"]);
    assert_eq!(store.delete(&all.clone().with_equal("odd", true)).await.unwrap(), 0);
    store.upsert(&tenant, vec![document("a", [1.0, 0.0, 0.0])]).await.unwrap();
    assert_eq!(store.delete(&all).await.unwrap(), 2);
}

/// An update with an embedding of other dimensions is refused whole, and so is a search with one.
pub async fn other_dimensions_are_refused_whole(store: Store) {
    let tenant = new_tenant();
    store.upsert(&tenant, vec![document("a", [1.0, 0.0, 0.0])]).await.unwrap();
    let short = || Embedding::new([1.0, 0.0]).unwrap();
    let odd = EmbeddedDocument { document: Document::new("odd", "odd"), embedding: short() };
    let filter = Filter::in_tenant(tenant.as_str());
    let updated = store.upsert(&tenant, vec![document("b", [1.0, 0.0, 0.0]), odd]).await;
    let searched = store.search(&short(), 1, &filter).await.map(drop);
    for refused in [updated, searched] {
        let is_refused = matches!(refused, Err(VectorError::Dimensions { expected: DIMENSIONS, found: 2 }));
        assert!(is_refused, "{refused:?}");
    }
    assert_eq!(found(&store, 9, &filter).await, ["a"]);
}

/// Updates at the same time are all applied.
pub async fn concurrent_updates_lose_nothing(store: Store) {
    let tenant = new_tenant();
    let writers = (0..8).map(|writer| {
        let (store, tenant) = (Arc::clone(&store), tenant.clone());
        tokio::spawn(async move {
            for number in 0..10 {
                let document = document(&format!("{writer} {number}"), [1.0, 0.0, 0.0]);
                store.upsert(&tenant, vec![document]).await.unwrap();
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    assert_eq!(found(&store, 100, &Filter::in_tenant(tenant)).await.len(), 80);
}

#[cfg(test)]
mod tests {
    use std::panic::AssertUnwindSafe;

    use advisor_core::async_trait;
    use common_advisors::retrieval::InMemoryVectors;
    use futures::FutureExt;

    use super::*;

    mod in_memory {
        crate::vector_conformance!(common_advisors::retrieval::InMemoryVectors::new());
    }

    #[tokio::test]
    async fn law_m5_tenants_share_no_vectors() {
        tenants_share_nothing(Arc::new(InMemoryVectors::new())).await;
    }

    /// A store with one tenant for all.
    struct Leaky(InMemoryVectors);

    #[async_trait]
    impl VectorStore for Leaky {
        async fn upsert(&self, _: &str, documents: Vec<EmbeddedDocument>) -> Result<(), VectorError> {
            self.0.upsert("all", documents).await
        }

        async fn search(
            &self,
            embedding: &Embedding,
            limit: usize,
            filter: &Filter,
        ) -> Result<Vec<Document>, VectorError> {
            let all = filter.conditions.iter().cloned().fold(Filter::in_tenant("all"), Filter::with);
            self.0.search(embedding, limit, &all).await
        }

        async fn delete(&self, filter: &Filter) -> Result<usize, VectorError> {
            self.0.delete(filter).await
        }
    }

    #[tokio::test]
    async fn a_store_that_mixes_tenants_fails() {
        let clause = tenants_share_nothing(Arc::new(Leaky(InMemoryVectors::new())));
        assert!(AssertUnwindSafe(clause).catch_unwind().await.is_err());
    }
}
