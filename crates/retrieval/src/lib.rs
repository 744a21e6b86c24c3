//! Retrieval for chains of advisors: documents for a model, found by their meaning or in any other way.
//!
//! - [`Retrieval`] is the advisor. It retrieves documents once per turn, sends them with each request, and cites them.
//! - [`PastTurns`] is a long-term memory: it finds earlier turns by their meaning, and stores each turn.
//! - A [`Retriever`] finds [`Document`]s for a [`Query`]. A closure is one.
//! - [`VectorRetriever`] finds them by their embeddings, in a [`VectorStore`] such as [`InMemoryVectors`]. An
//!   [`EmbeddingModel`] of a provider makes the embeddings.
//! - A [`Filter`] selects documents by tenant, metadata and ids.

mod advisor;
mod document;
mod on_failure;
mod past_turns;
mod prompt;
mod retriever;
mod vectors;

pub use advisor::Retrieval;
pub use advisor::citations::CITATION_FORMAT;
pub use advisor::retrieved::Retrieved;
#[doc(no_inline)]
pub use advisor_core::{Embedding, EmbeddingError, EmbeddingModel};
pub use document::Document;
pub use on_failure::OnFailure;
pub use past_turns::{PastTurns, Scope};
pub use retriever::{Query, Retriever};
#[cfg(any(test, feature = "conformance"))]
pub use vectors::conformance;
pub use vectors::error::VectorError;
pub use vectors::filter::{Condition, Filter};
pub use vectors::in_memory::InMemoryVectors;
pub use vectors::retriever::VectorRetriever;
pub use vectors::{EmbeddedDocument, VectorStore, embed_documents};

/// Runs the code of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
