//! `Answer` and the errors of the routes.

use schemars::{Schema, SchemaGenerator};
use serde_json::{Value, json};

use crate::refusal::error_form::ErrorForm;

/// The schema of a type.
pub(super) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// An answer of a route that is no error.
#[derive(Debug)]
pub(super) enum Answer {
    Empty,
    Text(&'static str),
    Turn(&'static str),
    /// Events if the body says `"stream": true`, else one object.
    TurnOrObject,
    Json(SchemaOf),
}

impl Answer {
    pub(super) fn write(&self, form: ErrorForm, schemas: &mut SchemaGenerator) -> Value {
        let headers = |more: &[&str]| headers(form, more);
        let text = || json!({"schema": {"type": "string"}});
        match self {
            Self::Empty => json!({"description": "Nothing more to say.", "headers": headers(&[])}),
            Self::Text(kind) => {
                json!({"description": "The content.", "headers": headers(&[]), "content": {*kind: text()}})
            }
            Self::Turn(kind) => {
                let headers = headers(&["x-conversation-id", "x-turn-id"]);
                json!({"description": "The turn, as it happens.", "headers": headers, "content": {*kind: text()}})
            }
            Self::TurnOrObject => json!({
                "description": "Events if `stream` is true, else the whole answer.",
                "headers": headers(&["x-conversation-id", "x-turn-id"]),
                "content": {
                    "text/event-stream": text(),
                    "application/json": {"schema": {"type": "object"}},
                },
            }),
            Self::Json(schema) => {
                let content = json!({"application/json": {"schema": schema(schemas)}});
                json!({"description": "The content.", "headers": headers(&[]), "content": content})
            }
        }
    }
}

/// Returns the headers of a response: the id of the request, and these.
pub(super) fn headers(form: ErrorForm, more: &[&str]) -> Value {
    let ids: &[&str] = match form {
        ErrorForm::Own | ErrorForm::OpenAi => &["x-request-id"],
        ErrorForm::Anthropic => &["x-request-id", "request-id"],
    };
    let all = ids.iter().chain(more);
    all.map(|name| ((*name).to_owned(), json!({"$ref": format!("#/components/headers/{name}")}))).collect()
}

/// The errors of the routes: a status, its name in the document, and its meaning.
pub(super) const ERRORS: [(u16, &str, &str); 14] = [
    (
        400,
        "BadRequest",
        "The request is not valid or not of this form, its body broke off, or the model refused it, such as a conversation that is too long.",
    ),
    (401, "Unauthorized", "The token is missing or unknown."),
    (
        403,
        "Forbidden",
        "A server without tokens serves its own machine only. Unless a token is needed, pages of other sites are refused, too.",
    ),
    (
        404,
        "NotFound",
        "There is no such conversation, turn, model or route, or the beginning of the turn is no longer kept.",
    ),
    (408, "BodyTimeout", "The body did not arrive in time."),
    (409, "Conflict", "Another turn of the conversation runs, or has changed it."),
    (413, "TooLarge", "The body is too large, or has too many values."),
    (415, "UnsupportedMediaType", "The content type of the body is not JSON."),
    (
        422,
        "Unprocessable",
        "The id of the turn was used for another message, the turn was stopped, or the answer is too large for one piece.",
    ),
    (429, "TooManyRequests", "Too many turns run, or the model is busy."),
    (500, "Internal", "An internal error."),
    (502, "BadGateway", "The model refused the server, or cannot be reached, or its answer broke off."),
    (
        503,
        "Unavailable",
        "The store does not answer, the server is stopping, or other large requests take too long.",
    ),
    (504, "Timeout", "The model took too long."),
];

/// Returns the name of an error in the document.
pub(super) fn error_name(form: ErrorForm, status: u16) -> String {
    let name = ERRORS.iter().find(|(of, ..)| *of == status).map_or("Internal", |(_, name, _)| name);
    match form {
        ErrorForm::Own | ErrorForm::OpenAi => name.to_owned(),
        ErrorForm::Anthropic => format!("Anthropic{name}"),
    }
}
