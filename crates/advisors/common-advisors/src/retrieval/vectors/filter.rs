//! `Filter` and `Condition`: documents of a tenant, by metadata and ids.

use advisor_core::Text;
use serde_json::Value;

use crate::retrieval::Document;

/// The documents that an operation applies to: those of one tenant that meet all conditions.
///
/// # Example
/// ```
/// use common_advisors::retrieval::{Condition, Filter};
///
/// let published = Condition::NotEqual("draft".into(), true.into());
/// let filter = Filter::in_tenant("acme").with_equal("language", "en").with(published);
/// assert_eq!((filter.tenant.as_str(), filter.conditions.len()), ("acme", 2));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Filter {
    /// The tenant.
    pub tenant: Text,
    /// The conditions, all of which a document has to meet.
    pub conditions: Vec<Condition>,
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

    /// Adds a condition.
    #[must_use]
    pub fn with(mut self, condition: Condition) -> Self {
        self.conditions.push(condition);
        self
    }

    /// Checks whether a document of this tenant passes the filter.
    pub(crate) fn matches(&self, tenant: &str, document: &Document) -> bool {
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
