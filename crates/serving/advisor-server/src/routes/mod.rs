//! `router`: the routes, and the headers of all responses.

mod ag_ui;
mod anthropic;
mod approvals;
mod ask;
mod chat;
mod conversations;
mod health;
mod input;
mod openai_chat;
mod openai_responses;
mod page;
mod ui_messages;
mod v1;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderName, HeaderValue, Uri, header};
use axum::middleware::{from_fn, map_response};
use axum::response::Response;
use axum::routing::{get, post};

use crate::ChatServer;
use crate::refusal::Refusal;
use crate::request_id::caught;
use crate::request_id::identified;

impl ChatServer {
    /// Returns the routes, for any axum application. They need a tokio runtime.
    ///
    /// Merge them, or nest them under a path, with [`Router::nest`] or [`Router::nest_service`].
    pub fn router(&self) -> Router {
        let router = described()
            .merge(page::router())
            .fallback(|uri: Uri| async move { Refusal::not_found(absent_route(uri.path())) })
            .method_not_allowed_fallback(|| async { Refusal::method_not_allowed() })
            .layer(from_fn(caught))
            .layer(DefaultBodyLimit::max(self.limits.body_bytes))
            .layer(map_response(secured))
            .with_state(self.clone());
        let router = match self.origins.layer() {
            Some(cors) => router.layer(cors),
            None => router,
        };
        router.layer(from_fn(identified))
    }
}

/// Returns the text about a route that the server does not have. Clients of OpenAI and Anthropic ask for some.
fn absent_route(path: &str) -> &'static str {
    match path {
        "/v1/messages/count_tokens" => {
            "this server counts no tokens of a request: the chain adds instructions, history and tools; count in the client"
        }
        _ if path.starts_with("/v1/conversations") => {
            "conversations are begun by their first message, and read at `/api/conversations`"
        }
        _ if path.starts_with("/v1/responses/") => {
            "responses are read as a part of their conversation, at `/api/conversations`"
        }
        _ => "there is no such route: `GET /openapi.json` lists them",
    }
}

/// The OpenAPI description of the routes. Its tests compare it with them.
const DESCRIPTION: &str = include_str!("openapi.json");

/// Returns the routes that the description has. The files of the page are no interface.
fn described() -> Router<ChatServer> {
    let description = || async { ([(header::CONTENT_TYPE, "application/json")], DESCRIPTION) };
    let conversation = get(conversations::read).delete(conversations::delete);
    Router::new()
        .route("/openapi.json", get(description))
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/api/chat", post(chat::ask))
        .route("/api/chunks", post(chat::ask_chunks))
        .route("/api/ui", post(ui_messages::ask))
        .route("/api/ui/{id}", get(ui_messages::history::read))
        .route("/api/ui/{id}/stream", get(ui_messages::resume))
        .route("/api/ag-ui", post(ag_ui::ask))
        .route("/v1/models", get(v1::models))
        .route("/v1/models/{model}", get(v1::model))
        .route("/v1/chat/completions", post(openai_chat::ask))
        .route("/v1/responses", post(openai_responses::ask))
        .route("/v1/messages", post(anthropic::ask))
        .route("/api/conversations", get(conversations::list))
        .route("/api/conversations/{id}", conversation)
        .route("/api/conversations/{id}/stream", get(chat::resume))
        .route("/api/conversations/{id}/stop", post(conversations::stop))
        .route("/api/conversations/{id}/turns/{turn}/journal", get(conversations::journal))
}

/// Adds the headers that keep browsers from guessing types, from loading anything from elsewhere, and from loading the
/// answer into a page of another site, and caches from storing conversations. Requests of allowed origins (CORS) are not
/// loads of that kind.
async fn secured(mut response: Response) -> Response {
    // Browsers refuse `innerHTML` by this. So Markdown goes to the page as elements, and needs no sanitiser.
    const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                          img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                          require-trusted-types-for 'script'; trusted-types 'none'";
    let headers: [(HeaderName, &str); 4] = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in headers {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    let caching = response.headers_mut().entry(header::CACHE_CONTROL);
    caching.or_insert(HeaderValue::from_static("no-store"));
    response
}
