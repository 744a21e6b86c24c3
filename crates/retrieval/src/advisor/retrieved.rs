//! `Retrieved`: the documents of a turn, in its extensions.

use std::sync::Arc;

use crate::Document;

/// The documents of a turn, in the extensions of the turn. Cheap to clone.
///
/// Several [`Retrieval`](crate::Retrieval)s of a chain number their documents consecutively. A turn without an
/// answer of a retriever has no `Retrieved`; without a match, its list is empty.
///
/// # Example
/// ```
/// use advisor_core::ChatClient;
/// use advisor_testkit::{Answer, ScriptedModel};
/// use retrieval::{Document, Query, Retrieval, Retrieved};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> advisor_core::Result<()> {
/// let hours = |_: Query| async { Ok(vec![Document::new("hours", "The shop opens at nine.")]) };
/// let model = ScriptedModel::new([Answer::from_text("At nine [1].")]);
/// let client = ChatClient::builder(model).advisor(Retrieval::new(hours)).build()?;
/// let response = client.prompt().user("When do you open?").call().await?;
/// let retrieved = response.turn().extensions().get::<Retrieved>().unwrap_or_default();
/// assert_eq!(retrieved.numbered(1).map(|document| document.id.as_str()), Some("hours"));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Retrieved(Arc<Vec<Document>>);

impl Retrieved {
    /// Returns the documents in the order of their numbers, from 1.
    #[must_use]
    pub fn documents(&self) -> &[Document] {
        &self.0
    }

    /// Returns the document that `[number]` cites.
    #[must_use]
    pub fn numbered(&self, number: usize) -> Option<&Document> {
        self.0.get(number.checked_sub(1)?)
    }

    /// Appends documents, and returns the number of the first one.
    pub(super) fn append(&mut self, documents: &[Document]) -> usize {
        let first = self.0.len() + 1;
        Arc::make_mut(&mut self.0).extend_from_slice(documents);
        first
    }
}
