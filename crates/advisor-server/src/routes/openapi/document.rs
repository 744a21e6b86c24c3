//! `Document`: all operations and schemas.

use std::fmt;

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::components;
use super::operation::Operation;

/// The OpenAPI description of the routes.
pub(super) struct Document {
    paths: Map<String, Value>,
    schemas: SchemaGenerator,
}

impl Default for Document {
    fn default() -> Self {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        });
        Self { paths: Map::new(), schemas: settings.into_generator() }
    }
}

impl Document {
    pub(super) fn add(&mut self, method: &str, path: &str, operation: Operation) {
        let operation = operation.write(&mut self.schemas);
        let item = self.paths.entry(path).or_insert_with(|| json!({}));
        if let Some(item) = item.as_object_mut() {
            item.insert(method.to_owned(), operation);
        }
    }

    pub(super) fn finish(mut self) -> Value {
        let mut schemas = self.schemas.take_definitions(true);
        schemas.insert("Error".into(), components::error_schema());
        schemas.insert("AnthropicError".into(), components::anthropic_error_schema());
        json!({
            "openapi": "3.1.0",
            "info": {
                "title": "advisor-server",
                "version": env!("CARGO_PKG_VERSION"),
                "description": "A chain of a language model, tools and memory under the protocols of many clients. \
                                The history of a conversation comes from memory, never from a client.",
            },
            // Relative to the document, which an application may mount anywhere.
            "servers": [{"url": "./"}],
            "security": [{"bearer": []}, {"apiKey": []}, {}],
            "paths": self.paths,
            "components": {
                "securitySchemes": components::security_schemes(),
                "parameters": components::parameters(),
                "headers": components::answer_headers(),
                "responses": components::errors(),
                "schemas": schemas,
            },
        })
    }
}

impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Document").field("paths", &self.paths).finish_non_exhaustive()
    }
}
