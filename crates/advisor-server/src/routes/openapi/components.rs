//! Parameters, headers and errors that operations name.

use serde_json::{Map, Value, json};

use super::answer::{ERRORS, error_name, headers};
use crate::refusal::error_form::ErrorForm;

/// Returns the parameters that operations name.
pub(super) fn parameters() -> Value {
    let all = [in_addresses(), in_headers()].into_iter().filter_map(|parameters| match parameters {
        Value::Object(parameters) => Some(parameters),
        _ => None,
    });
    Value::Object(all.flatten().collect())
}

fn in_addresses() -> Value {
    json!({
        "Conversation": {
            "name": "id", "in": "path", "required": true, "schema": {"type": "string"},
            "description": "The conversation: 1 to 512 bytes without NUL, percent-encoded.",
        },
        "ModelInPath": {
            "name": "model", "in": "path", "required": true, "schema": {"type": "string"},
            "description": "The name of the model.",
        },
        "TurnInPath": {
            "name": "turn", "in": "path", "required": true, "schema": {"type": "string"},
            "description": "The turn.",
        },
        "After": {
            "name": "after", "in": "query", "schema": {"type": "string"},
            "description": "The value of `next` of the page before.",
        },
        "Order": {
            "name": "order", "in": "query", "schema": {"enum": ["asc", "desc"], "default": "asc"},
            "description": "The order of the ids, by their bytes. Those that the server makes are in the order of their creation, so `desc` begins with the newest conversation.",
        },
        "TurnLimit": {
            "name": "limit", "in": "query",
            "schema": {"type": "integer", "minimum": 1, "maximum": 100, "default": 50},
            "description": "The most turns of the page. Turns that answer calls of one another are not separated. A page with large turns has fewer.",
        },
        "Before": {
            "name": "before", "in": "query", "schema": {"type": "string"},
            "description": "The value of `before` of the page after this one; without it, the last turns.",
        },
        "View": {
            "name": "view", "in": "query", "schema": {"enum": ["answer", "page"], "default": "answer"},
            "description": "With `page`, also reasoning, calls as they form, progress of tools, and the blocks of each answer.",
        },
        "EventView": {
            "name": "view", "in": "query",
            "schema": {"enum": ["answer", "page", "legacy"], "default": "answer"},
            "description": "With `page`, also reasoning and the blocks of each answer. With `legacy`, the forms of older clients: text without a type, and `tool_call` for `tool_call_start`.",
        },
    })
}

fn in_headers() -> Value {
    let header = |name: &str, description: &str| json!({"name": name, "in": "header", "description": description, "schema": {"type": "string"}});
    json!({
        "ConversationHeader": header("x-conversation-id", "The conversation. It precedes the one in the body."),
        "IdempotencyKey": header("idempotency-key", "The id of the turn, within its conversation. The same id is the same turn. It precedes the one in the body."),
        "LastEventId": header("last-event-id", "The last event that the client has received. One of another turn does not count."),
        "Turn": header("x-turn-id", "A turn that ended lately; without it, the one that runs."),
        "UiProfile": {
            "name": "x-ui-profile", "in": "header", "schema": {"enum": ["v5", "v6", "v7"], "default": "v5"},
            "description": "The version of the AI SDK.",
        },
        "OnDisconnect": {
            "name": "x-on-disconnect", "in": "header",
            "schema": {"enum": ["continue", "stop"], "default": "continue"},
            "description": "Whether the turn continues if the client disconnects. A turn that stops cannot be joined again.",
        },
        "ServerTools": {
            "name": "x-server-tools", "in": "header", "schema": {"enum": ["shown", "hidden"], "default": "hidden"},
            "description": "Whether tools that the server runs are shown.",
        },
        "RequestId": {
            "name": "x-request-id", "in": "header",
            "schema": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"},
            "description": "The id of the request. The server makes one if it is missing or has another form.",
        },
    })
}

/// Returns the headers that answers name.
pub(super) fn answer_headers() -> Value {
    let header =
        |kind: &str, description: &str| json!({"description": description, "schema": {"type": kind}});
    json!({
        "x-conversation-id": header("string", "The conversation."),
        "x-turn-id": header("string", "The turn."),
        "x-request-id": header("string", "The id of the request."),
        "request-id": header("string", "The id of the request, for Anthropic's clients."),
        "retry-after": header("integer", "The seconds after which to try again."),
        "x-should-retry": header("string", "`false` if the same request would begin a second turn."),
    })
}

/// Returns the errors that operations name.
pub(super) fn errors() -> Value {
    let error = |form: ErrorForm, &(status, _, description): &(u16, &str, &str)| {
        let schema = match form {
            ErrorForm::Own | ErrorForm::OpenAi => "#/components/schemas/Error",
            ErrorForm::Anthropic => "#/components/schemas/AnthropicError",
        };
        let more: &[&str] = match status {
            429 | 503 => &["retry-after", "x-should-retry"],
            400 | 409 | 413 | 422 | 500 | 502 | 504 => &["x-should-retry"],
            _ => &[],
        };
        let content = json!({"application/json": {"schema": {"$ref": schema}}});
        let error = json!({"description": description, "headers": headers(form, more), "content": content});
        (error_name(form, status), error)
    };
    let of_form = |form| ERRORS.iter().map(move |row| error(form, row));
    Value::Object(of_form(ErrorForm::Own).chain(of_form(ErrorForm::Anthropic)).collect::<Map<_, _>>())
}

/// Returns the schema of the body of an error.
pub(super) fn error_schema() -> Value {
    let text = |description: &str| json!({"type": "string", "description": description});
    let error = json!({
        "type": "object",
        "properties": {
            "message": text("A text for people. It has nothing of an internal error."),
            "type": {"enum": ["invalid_request_error", "rate_limit_error", "server_error"]},
            "code": text("The kind of the error, such as `unauthorized` or `rate_limited`. Routes for clients of OpenAI have OpenAI's codes, such as `invalid_api_key` or `rate_limit_exceeded`."),
            "param": {"type": "null"},
            "request_id": text("The id of the request, as in `x-request-id`."),
        },
        "required": ["message", "type", "code", "param", "request_id"],
    });
    json!({"type": "object", "properties": {"error": error}, "required": ["error"]})
}

/// Returns the schema of the body of an error for Anthropic's clients.
pub(super) fn anthropic_error_schema() -> Value {
    let text = |description: &str| json!({"type": "string", "description": description});
    let error = json!({
        "type": "object",
        "properties": {
            "type": text("The type that Anthropic documents for the status."),
            "message": text("A text for people. It has nothing of an internal error."),
            "code": text("The kind of the error, such as `unauthorized` or `rate_limited`."),
        },
        "required": ["type", "message", "code"],
    });
    json!({
        "type": "object",
        "properties": {
            "type": {"const": "error"},
            "error": error,
            "request_id": text("The id of the request, as in `x-request-id`."),
        },
        "required": ["type", "error", "request_id"],
    })
}

/// Returns the ways in which a request names its token.
pub(super) fn security_schemes() -> Value {
    json!({
        "bearer": {
            "type": "http", "scheme": "bearer",
            "description": "A token opens the conversations of its tenant. A server without tokens serves its own \
                            machine only.",
        },
        "operator": {
            "type": "http", "scheme": "bearer",
            "description": "The token of the operator. It opens no conversation. A server without any token shows its \
                            counters to its own machine only.",
        },
        "apiKey": {
            "type": "apiKey", "in": "header", "name": "x-api-key",
            "description": "The same token, as clients of Anthropic send it.",
        },
    })
}
