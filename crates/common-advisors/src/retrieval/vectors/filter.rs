//! `Filter` and `Condition`: documents of a tenant, by metadata and ids.

use advisor_core::Text;
use serde_json::Value;

use crate::retrieval::Document;

/// The documents that an operation applies to: those of one tenant that meet all conditions.
///
/// # Example
/// ```
/// use common_advisors::retrieval::{Document, Filter};
///
/// let filter = Filter::in_tenant("acme").with_equal("language", "en").with_not_equal("draft", true);
/// let document = Document::new("hours", "The shop opens at nine.").with_metadata("language", "en");
/// assert!(filter.matches("acme", &document));
/// assert!(!filter.matches("other", &document));
/// assert!(!filter.matches("acme", &document.with_metadata("draft", true)));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Filter {
    tenant: Text,
    conditions: Vec<Condition>,
}

/// A condition on a document. Values are compared as JSON. A value that is missing equals no other one, not even
/// `null`.
///
/// Whether `1` and `1.0` are equal depends on the store.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Condition {
    /// The metadata have this value under this name.
    Equal(String, Value),
    /// The metadata have one of these values under this name.
    OneOf(String, Vec<Value>),
    /// The metadata have another value under this name, or none.
    NotEqual(String, Value),
    /// The id of the document is one of these.
    Ids(Vec<Text>),
}

impl Filter {
    /// Creates a filter for all documents of a tenant.
    pub fn in_tenant(tenant: impl Into<Text>) -> Self {
        Self { tenant: tenant.into(), conditions: Vec::new() }
    }

    /// Requires this value of the metadata.
    #[must_use]
    pub fn with_equal(self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.with(Condition::Equal(name.into(), value.into()))
    }

    /// Requires one of these values of the metadata.
    #[must_use]
    pub fn with_one_of<V: Into<Value>>(
        self,
        name: impl Into<String>,
        values: impl IntoIterator<Item = V>,
    ) -> Self {
        self.with(Condition::OneOf(name.into(), values.into_iter().map(Into::into).collect()))
    }

    /// Requires another value of the metadata, or none.
    #[must_use]
    pub fn with_not_equal(self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.with(Condition::NotEqual(name.into(), value.into()))
    }

    /// Requires one of these ids.
    #[must_use]
    pub fn with_ids<T: Into<Text>>(self, ids: impl IntoIterator<Item = T>) -> Self {
        self.with(Condition::Ids(ids.into_iter().map(Into::into).collect()))
    }

    /// Adds a condition.
    #[must_use]
    pub fn with(mut self, condition: Condition) -> Self {
        self.conditions.push(condition);
        self
    }

    /// Returns the tenant.
    #[must_use]
    pub fn tenant(&self) -> &str {
        &self.tenant
    }

    /// Returns the conditions, all of which a document has to meet.
    #[must_use]
    pub fn conditions(&self) -> &[Condition] {
        &self.conditions
    }

    /// Checks whether a document of this tenant passes the filter.
    #[must_use]
    pub fn matches(&self, tenant: &str, document: &Document) -> bool {
        *self.tenant == *tenant && self.conditions.iter().all(|condition| condition.is_met_by(document))
    }
}

impl Condition {
    fn is_met_by(&self, document: &Document) -> bool {
        let value_of = |name: &String| document.metadata.get(name);
        match self {
            Self::Equal(name, value) => value_of(name) == Some(value),
            Self::OneOf(name, values) => value_of(name).is_some_and(|found| values.contains(found)),
            Self::NotEqual(name, value) => value_of(name) != Some(value),
            Self::Ids(ids) => ids.contains(&document.id),
        }
    }
}
