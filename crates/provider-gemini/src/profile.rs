//! Differences between servers and models, as plain data.

use advisor_core::Text;
use http::HeaderName;
use provider_http::server::Authorization;

/// The differences between servers, and between their models.
///
/// ```
/// use provider_gemini::{Profile, SchemaForm};
///
/// let mut profile = Profile::gemini_api();
/// profile.schemas = SchemaForm::OpenApi;
/// assert_eq!(profile.name, "gemini");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Profile {
    /// The server's name in traces, such as `gemini`.
    pub name: Text,
    /// The header that carries the key.
    pub authorization: Authorization,
    /// The form of a streamed answer.
    pub stream: StreamForm,
    /// The form of schemas, of tools and of answers.
    pub schemas: SchemaForm,
    /// Whether calls and their results carry ids.
    pub call_ids: CallIdField,
    /// The generation of the models.
    pub generation: Generation,
}

/// The form of a streamed answer to ask for. Whatever the server sends is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamForm {
    /// Server-sent events (`alt=sse`).
    Events,
    /// The elements of one JSON array, for servers that know no events.
    Array,
}

/// The form of schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SchemaForm {
    /// JSON schemas, unchanged: `parametersJsonSchema` and `responseJsonSchema`.
    JsonSchema,
    /// The subset of OpenAPI 3.0 that every version of the API reads: `parameters` and `responseSchema`.
    ///
    /// A schema is rewritten. Each reference is replaced by its target, a recursive one by any object. `oneOf` becomes
    /// `anyOf`, `const` an `enum`, and a type that may be `null` is `nullable`. The parts of `allOf` are merged, and
    /// keywords that the subset lacks are left out. Beyond 10,000 schemas or 1 MiB of values, such as descriptions,
    /// further schemas are any object.
    OpenApi,
}

/// The presence of ids in calls and their results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallIdField {
    /// Calls and results carry ids.
    Sent,
    /// Ids are left out, since the server refuses the field. Results are matched by name and order.
    LeftOut,
}

/// The generation of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Generation {
    /// Derived from the name of the model. An unknown name counts as Gemini 3.
    FromName,
    /// Gemini 1 and 2, and Gemma: media of tool results stand beside the results.
    BeforeGemini3,
    /// Gemini 3 and later. It refuses a call without a thought signature, so calls of other models get a placeholder.
    /// It takes media inside tool results.
    Gemini3,
}

impl Profile {
    /// Google's Gemini API.
    #[must_use]
    pub fn gemini_api() -> Self {
        Self {
            name: "gemini".into(),
            authorization: Authorization::Header(HeaderName::from_static("x-goog-api-key")),
            stream: StreamForm::Events,
            schemas: SchemaForm::JsonSchema,
            call_ids: CallIdField::Sent,
            generation: Generation::FromName,
        }
    }

    /// Vertex AI, with an access token as key. Its base URL is
    /// `https://LOCATION-aiplatform.googleapis.com/v1/projects/PROJECT/locations/LOCATION/publishers/google`.
    #[must_use]
    pub fn vertex_ai() -> Self {
        Self {
            name: "vertex-ai".into(),
            authorization: Authorization::Bearer,
            call_ids: CallIdField::LeftOut,
            ..Self::gemini_api()
        }
    }

    /// Returns the rules for messages to a model. `format` is the format name of the server's data.
    pub(crate) fn message_rules(&self, model: &str, format: Text) -> MessageRules {
        MessageRules { format, call_ids: self.call_ids, generation: self.generation.for_model(model) }
    }
}

/// The rules for messages. The wire form of a message depends on nothing else, so it is kept per set of rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MessageRules {
    /// The format of the provider data and opaque blocks that go back.
    pub(crate) format: Text,
    pub(crate) call_ids: CallIdField,
    /// Never [`Generation::FromName`].
    pub(crate) generation: Generation,
}

impl Generation {
    /// Returns the generation of a model.
    pub(crate) fn for_model(self, model: &str) -> Self {
        const EARLIER: [&str; 4] = ["gemini-1", "gemini-2", "gemma", "learnlm"];
        let model = model.to_ascii_lowercase();
        match self {
            Self::FromName if EARLIER.iter().any(|name| model.contains(name)) => Self::BeforeGemini3,
            Self::FromName => Self::Gemini3,
            known => known,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generation_follows_name_unless_given() {
        for (model, generation) in [
            ("gemini-2.5-flash", Generation::BeforeGemini3),
            ("models/Gemini-1.5-pro", Generation::BeforeGemini3),
            ("gemma-3-27b-it", Generation::BeforeGemini3),
            ("gemini-3-flash-preview", Generation::Gemini3),
            ("gemini-flash-latest", Generation::Gemini3),
        ] {
            assert_eq!(Generation::FromName.for_model(model), generation, "{model}");
            assert_eq!(Generation::Gemini3.for_model(model), Generation::Gemini3);
        }
    }
}
