//! Documents found once per turn, sent as context and cited; a long-term memory; the contract of a vector store.

mod advisor;
mod document;
mod past_turns;
mod prompt;
mod retriever;
mod vectors;

pub use advisor::{Retrieval, Retrieved};
#[doc(no_inline)]
pub use advisor_core::{Embedding, EmbeddingModel};
pub use document::Document;
pub use past_turns::PastTurns;
pub use retriever::{OnFailure, Query, Retriever};
pub use vectors::filter::{Condition, Filter};
pub use vectors::in_memory::InMemoryVectors;
pub use vectors::retriever::VectorRetriever;
pub use vectors::{EmbeddedDocument, VectorError, VectorStore, embed_documents};
