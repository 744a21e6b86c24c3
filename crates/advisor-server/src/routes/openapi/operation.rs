//! `Operation`: the description of one route.

use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::answer::{Answer, SchemaOf, error_name};
use crate::refusal::error_form::ErrorForm;

/// The description of one route.
#[derive(Debug)]
pub(in crate::routes) struct Operation {
    id: &'static str,
    summary: &'static str,
    access: Access,
    parameters: Vec<&'static str>,
    body: Option<(SchemaOf, Value)>,
    answers: Vec<(u16, Answer)>,
    errors: Vec<u16>,
    error_form: ErrorForm,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    /// Anyone.
    Open,
    /// Requests with a token, or those of this machine if the server has no tokens.
    Token,
    /// Requests with the token of the operator, or those of this machine if the server has no token at all.
    Operator,
}

/// The errors of every route that needs a token.
const TOKEN_ERRORS: [u16; 3] = [401, 403, 500];

/// The errors of a turn that fails before its answer begins.
const TURN_ERRORS: [u16; 9] = [400, 404, 409, 413, 422, 429, 502, 503, 504];

/// The errors of a body.
const BODY_ERRORS: [u16; 4] = [400, 408, 413, 415];

impl Operation {
    /// Describes a route for anyone.
    pub(in crate::routes) fn open(id: &'static str, summary: &'static str) -> Self {
        Self {
            id,
            summary,
            access: Access::Open,
            parameters: vec!["RequestId"],
            body: None,
            answers: Vec::new(),
            errors: Vec::new(),
            error_form: ErrorForm::Own,
        }
    }

    /// Describes a route that needs a token.
    pub(in crate::routes) fn new(id: &'static str, summary: &'static str) -> Self {
        Self { access: Access::Token, ..Self::open(id, summary) }.with_errors(&TOKEN_ERRORS)
    }

    /// Describes a route for the operator.
    pub(in crate::routes) fn for_operator(id: &'static str, summary: &'static str) -> Self {
        Self { access: Access::Operator, ..Self::new(id, summary) }
    }

    /// Describes a route that shows a turn.
    pub(in crate::routes) fn turn(id: &'static str, summary: &'static str) -> Self {
        Self::new(id, summary).with_errors(&TURN_ERRORS)
    }

    /// Adds parameters of the document's components.
    pub(in crate::routes) fn with_parameters(mut self, names: &[&'static str]) -> Self {
        self.parameters.extend(names);
        self
    }

    /// Adds a JSON body of this type, and an example that the route accepts.
    pub(in crate::routes) fn with_body<T: JsonSchema>(self, example: Value) -> Self {
        let body = Some((SchemaGenerator::subschema_for::<T> as SchemaOf, example));
        Self { body, ..self }.with_errors(&BODY_ERRORS)
    }

    /// Adds an answer of this media type.
    pub(in crate::routes) fn with_text(mut self, kind: &'static str) -> Self {
        self.answers.push((200, Answer::Text(kind)));
        self
    }

    /// Adds a turn as its answer, in this media type.
    pub(in crate::routes) fn with_turn(mut self, kind: &'static str) -> Self {
        self.answers.push((200, Answer::Turn(kind)));
        self
    }

    /// Adds a turn as its answer: events, or an object of the protocol.
    pub(in crate::routes) fn with_turn_or_object(mut self) -> Self {
        self.answers.push((200, Answer::TurnOrObject));
        self
    }

    /// Adds a JSON answer of this type.
    pub(in crate::routes) fn with_json<T: JsonSchema>(mut self) -> Self {
        self.answers.push((200, Answer::Json(SchemaGenerator::subschema_for::<T>)));
        self
    }

    /// Adds an answer without content.
    pub(in crate::routes) fn with_no_content(mut self) -> Self {
        self.answers.push((204, Answer::Empty));
        self
    }

    /// Adds error statuses.
    pub(in crate::routes) fn with_errors(mut self, statuses: &[u16]) -> Self {
        self.errors.extend(statuses);
        self
    }

    /// Sets the form of the errors; by default that of the server's own routes, which has OpenAI's schema.
    pub(in crate::routes) fn with_error_form(self, error_form: ErrorForm) -> Self {
        Self { error_form, ..self }
    }

    /// Writes the operation, with the schemas that it needs.
    pub(super) fn write(self, schemas: &mut SchemaGenerator) -> Value {
        let mut responses = Map::new();
        for (status, answer) in self.answers {
            responses.insert(status.to_string(), answer.write(self.error_form, schemas));
        }
        for status in self.errors {
            let name = format!("#/components/responses/{}", error_name(self.error_form, status));
            responses.insert(status.to_string(), json!({"$ref": name}));
        }
        let parameters: Vec<_> = self
            .parameters
            .iter()
            .map(|name| json!({"$ref": format!("#/components/parameters/{name}")}))
            .collect();
        let mut operation = Map::from_iter([
            ("operationId".to_owned(), self.id.into()),
            ("summary".to_owned(), self.summary.into()),
            ("parameters".to_owned(), parameters.into()),
            ("responses".to_owned(), responses.into()),
        ]);
        match self.access {
            Access::Open => drop(operation.insert("security".into(), json!([]))),
            Access::Operator => drop(operation.insert("security".into(), json!([{"operator": []}, {}]))),
            // That of the document.
            Access::Token => {}
        }
        if let Some((schema, example)) = self.body {
            let content = json!({"schema": schema(schemas), "example": example});
            let body = json!({"required": true, "content": {"application/json": content}});
            operation.insert("requestBody".into(), body);
        }
        operation.into()
    }
}
