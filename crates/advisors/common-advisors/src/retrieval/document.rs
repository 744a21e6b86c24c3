//! `Document`: a text that can be found, with its source.

use advisor_core::Text;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A text that can be found, with its source. Long texts are split into several documents before they are stored.
///
/// # Example
/// ```
/// use common_advisors::retrieval::Document;
///
/// let document = Document {
///     title: Some("Opening hours".into()),
///     url: Some("https://shop.example/hours".into()),
///     ..Document::new("hours", "The shop opens at nine.").with_metadata("language", "en")
/// };
/// assert_eq!(document.metadata["language"], "en");
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(clippy::exhaustive_structs, reason = "callers write it with `..Document::new(…)`")]
pub struct Document {
    /// The id, unique in a tenant.
    pub id: Text,
    /// The text that the model reads.
    pub text: Text,
    /// The title of the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<Text>,
    /// The address of the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<Text>,
    /// Further properties, for filters and for the program. The model does not see them.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// The similarity to the query, as far as the retriever computes one. The greatest is the best.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f32>,
}

impl Document {
    /// Creates a document without a title, an address and metadata.
    pub fn new(id: impl Into<Text>, text: impl Into<Text>) -> Self {
        let (id, text) = (id.into(), text.into());
        Self { id, text, title: None, url: None, metadata: Map::new(), score: None }
    }

    /// Adds a property, and replaces an earlier one of this name.
    #[must_use]
    pub fn with_metadata(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.metadata.insert(name.into(), value.into());
        self
    }
}
