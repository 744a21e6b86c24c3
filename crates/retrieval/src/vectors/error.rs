//! `VectorError`: why an operation of a vector store failed.

use advisor_core::{BoxError, Error, ErrorKind};

/// The reason why an operation of a vector store failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VectorError {
    /// An embedding has another number of dimensions than those in the store. Nothing was written.
    #[error(
        "the embedding has {found} dimensions, those in the store have {expected}; use the embedding model \
         that the documents were embedded with"
    )]
    Dimensions {
        /// The number of dimensions in the store.
        expected: usize,
        /// The number of dimensions of the embedding.
        found: usize,
    },
    /// The store has reached its bound on documents. Nothing was written.
    #[error("the store takes at most {limit} documents; delete some, or raise its bound")]
    Full {
        /// The bound on documents.
        limit: usize,
    },
    /// The store cannot keep a document as it is. Nothing was written.
    #[error("the store refuses the documents: {reason}")]
    Refused {
        /// The reason, and what to do about it.
        reason: &'static str,
    },
    /// The store is unavailable. An update may have been written: repeat it, which changes nothing else.
    #[error("the vector store is not available")]
    Unavailable {
        /// The cause.
        source: BoxError,
    },
}

impl VectorError {
    /// Creates an `Unavailable` error.
    pub fn unavailable(source: impl Into<BoxError>) -> Self {
        Self::Unavailable { source: source.into() }
    }
}

impl From<VectorError> for Error {
    fn from(error: VectorError) -> Self {
        let kind = match error {
            VectorError::Dimensions { .. } => ErrorKind::Configuration,
            VectorError::Full { .. } | VectorError::Refused { .. } | VectorError::Unavailable { .. } => {
                ErrorKind::Advisor
            }
        };
        Self::new(kind, error.to_string()).with_source(error)
    }
}
