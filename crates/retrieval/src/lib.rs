#![doc = include_str!("../README.md")]

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
