//! A vector store for [`retrieval`] in PostgreSQL, by its extension `vector` (pgvector).
//!
//! [`PostgresVectors`] is a [`VectorStore`](retrieval::VectorStore). Documents of all tenants are rows of one table,
//! and every statement names one tenant. A search is exact until an [index](PostgresVectors::create_index) is created.
//!
//! # Example
//! ```no_run
//! use advisor_core::ChatClient;
//! use advisor_testkit::{Answer, ScriptedModel, WordEmbeddings};
//! use retrieval::{Document, Retrieval, VectorRetriever, VectorStore, embed_documents};
//! use retrieval_postgres::PostgresVectors;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Models for tests replace those of a provider. These embeddings have 256 dimensions.
//! let (embeddings, model) = (WordEmbeddings::new(), ScriptedModel::new([Answer::from_text("At nine [1].")]));
//! let store = PostgresVectors::connect("postgres://app@127.0.0.1/app", 256).await?;
//! let documents = [Document::new("hours", "The shop opens at nine.")];
//! store.upsert("default", embed_documents(&embeddings, documents).await?).await?;
//!
//! let retriever = VectorRetriever::new(embeddings, store).with_limit(3).with_min_score(0.2);
//! let client = ChatClient::builder(model).advisor(Retrieval::new(retriever)).build()?;
//! # drop(client);
//! # Ok(()) }
//! ```
//!
//! # Logs
//! This crate logs nothing. The driver logs statements at the level `debug` of the crate `log`, without their
//! parameters: the text of a statement has no value.
//!
//! # Words
//! | word | type |
//! | --- | --- |
//! | the store | [`PostgresVectors`] |
//! | the PostgreSQL schema with its table | [`Schema`] |
//! | error of opening a store | [`SetupError`] |

mod condition;
mod connection;
mod failure;
mod index;
mod migrations;
mod names;
mod opening;
mod rows;
mod schema;
mod setup_error;
mod statement;
mod store;

/// The pool crate of [`PostgresVectors::from_pool`], in the version that this crate uses.
pub use deadpool_postgres;
pub use schema::Schema;
pub use setup_error::SetupError;
pub use store::PostgresVectors;

/// Runs the README's examples as doc tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
