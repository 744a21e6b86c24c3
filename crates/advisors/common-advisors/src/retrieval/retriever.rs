//! `Retriever`, which finds documents, `Query`, and `OnFailure`, for a retriever that fails.

use std::future::Future;
use std::sync::Arc;

use advisor_core::{ConversationKey, Error, Result, Text, Turn, TurnId, async_trait};

use crate::retrieval::Document;

/// Finds documents for a query. A closure that returns a future is a retriever.
///
/// # Ordering
/// The best document is the first.
///
/// # Cancellation
/// Dropping the future stops the search. A retriever has no timeout, unless it documents one.
///
/// # Errors
/// An error means that nothing is known about matching documents. No match is not an error, but an empty list.
/// [`OnFailure`](crate::retrieval::OnFailure) decides how a turn continues.
///
/// # Example
/// ```
/// use common_advisors::retrieval::{Document, Query, Retriever};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> advisor_core::Result<()> {
/// let hours = |query: Query| async move {
///     let matches = query.text.contains("open");
///     Ok(Vec::from_iter(matches.then(|| Document::new("hours", "The shop opens at nine."))))
/// };
/// assert_eq!(hours.retrieve(Query::new("When do you open?")).await?.len(), 1);
/// # Ok(()) }
/// ```
#[async_trait]
pub trait Retriever: Send + Sync + 'static {
    /// Finds the documents for a query.
    async fn retrieve(&self, query: Query) -> Result<Vec<Document>>;
}

#[async_trait]
impl<F, Fut> Retriever for F
where
    F: Fn(Query) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Vec<Document>>> + Send + 'static,
{
    async fn retrieve(&self, query: Query) -> Result<Vec<Document>> {
        self(query).await
    }
}

/// The text to find documents for, and on whose behalf. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Query {
    /// The text.
    pub text: Text,
    /// The conversation of the turn.
    pub conversation: Option<ConversationKey>,
    /// The turn, with its extensions, such as the rights of a user.
    pub turn: Arc<Turn>,
}

impl Query {
    /// Creates a query outside a conversation, in a new turn.
    pub fn new(text: impl Into<Text>) -> Self {
        Self { text: text.into(), conversation: None, turn: Turn::new(TurnId::random()) }
    }

    /// Returns the tenant of the conversation; without a conversation, the tenant `default`.
    #[must_use]
    pub fn tenant(&self) -> &str {
        self.conversation.as_ref().map_or("default", ConversationKey::tenant)
    }
}

/// The continuation of a turn if retrieval fails.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnFailure {
    /// The turn ends with the error.
    #[default]
    Fail,
    /// The turn continues without what failed. A warning is logged.
    Continue,
}

impl OnFailure {
    /// Returns the error, or logs it without any content. `what` failed.
    pub(crate) fn unless_continued(self, advisor: &str, what: &'static str, error: Error) -> Result<()> {
        match self {
            Self::Fail => Err(error),
            Self::Continue => {
                warn(advisor, what, &error);
                Ok(())
            }
        }
    }
}

/// Logs an error without any content. `what` failed.
pub(crate) fn warn(advisor: &str, what: &'static str, error: &Error) {
    let kind = error.kind().as_str();
    tracing::warn!(advisor, kind, what, "retrieval failed, and the turn continues");
}
