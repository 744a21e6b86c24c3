//! `router`: the routes, and the headers of all responses.

mod ag_ui;
mod anthropic;
mod approvals;
mod ask;
mod chat;
mod chunks;
mod conversations;
mod input;
mod journal;
mod models;
mod openai_chat;
mod openai_responses;
mod openapi;
mod operator;
mod page;
mod ui_messages;
mod user;
mod view;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderName, HeaderValue, Uri, header};
use axum::middleware::{from_fn, from_fn_with_state, map_response};
use axum::response::Response;

use self::openapi::operation::Operation;
use self::openapi::routes::Routes;
use self::operator::{health, metrics};
use crate::ChatServer;
use crate::inspector::journal::WrittenJournal;
use crate::panics::caught;
use crate::refusal::Refusal;
use crate::request_id::identified;

impl ChatServer {
    /// Returns the routes, for any axum application. They need a tokio runtime.
    ///
    /// Merge them, or nest them under a path, with [`Router::nest`] or [`Router::nest_service`].
    pub fn router(&self) -> Router {
        let router = documented()
            .into_router("/openapi.json")
            .merge(page::router())
            .fallback(|uri: Uri| async move { Refusal::not_found(absent_route(uri.path())) })
            .method_not_allowed_fallback(|| async { Refusal::method_not_allowed() })
            .layer(from_fn(caught))
            .layer(DefaultBodyLimit::max(self.limits().body_bytes))
            .layer(map_response(secured))
            .with_state(self.clone());
        let router = match self.origins().layer() {
            Some(cors) => router.layer(cors),
            None => router,
        };
        let router = match self.metrics() {
            Some(metrics) => router.layer(from_fn_with_state(Arc::clone(metrics), metrics::counted)),
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

/// Returns the routes with their descriptions. The files of the page are no interface, and have none.
fn documented() -> Routes {
    let routes = Routes::default()
        .get("/healthz", health::alive, health::alive_operation())
        .get("/readyz", health::ready, health::ready_operation())
        .get("/metrics", metrics::text, metrics::operation())
        .post("/api/chat", chat::ask, chat::operation())
        .post("/api/chunks", chunks::ask, chunks::operation())
        .post("/api/ui", ui_messages::ask, ui_messages::operation())
        .get("/api/ui/{id}", ui_messages::history::read, ui_messages::history::operation())
        .get("/api/ui/{id}/stream", ui_messages::resume::resume, ui_messages::resume::operation())
        .post("/api/ag-ui", ag_ui::ask, ag_ui::operation())
        .get("/v1/models", models::list, models::list_operation())
        .get("/v1/models/{model}", models::one, models::operation())
        .post("/v1/chat/completions", openai_chat::ask, openai_chat::operation())
        .post("/v1/responses", openai_responses::ask, openai_responses::operation())
        .post("/v1/messages", anthropic::ask, anthropic::operation());
    with_conversations(routes)
}

fn with_conversations(routes: Routes) -> Routes {
    let one = |id, summary| Operation::new(id, summary).with_parameters(&["Conversation"]);
    let list = Operation::new("listConversations", "Conversations of the tenant, 100 at a time")
        .with_parameters(&["After", "Order", "View"])
        .with_json::<conversations::Listed>()
        .with_errors(&[400, 503]);
    let read = one(
        "readConversation",
        "A page of the messages of a conversation, oldest first; without `before`, its last turns",
    )
    .with_parameters(&["TurnLimit", "Before", "View"])
    .with_json::<conversations::ShownMessages>()
    .with_errors(&[400, 404, 503]);
    let delete = one("deleteConversation", "Deletes a conversation, and stops its turns")
        .with_no_content()
        .with_errors(&[400, 503]);
    let stop = one("stopTurn", "Stops the running turn and those that wait. Memory keeps the shown text.")
        .with_no_content()
        .with_errors(&[400, 503]);
    let journal = one("readJournal", "The order of work in a turn, if the server has an inspector")
        .with_parameters(&["TurnInPath"])
        .with_json::<WrittenJournal>()
        .with_errors(&[400, 404]);
    routes
        .get("/api/conversations/{id}/turns/{turn}/journal", journal::read, journal)
        .get("/api/conversations", conversations::list, list)
        .get("/api/conversations/{id}", conversations::read, read)
        .get(
            "/api/conversations/{id}/export",
            conversations::export::export,
            conversations::export::operation(),
        )
        .delete("/api/conversations/{id}", conversations::delete, delete)
        .get("/api/conversations/{id}/stream", chat::resume, chat::resume_operation())
        .post("/api/conversations/{id}/stop", conversations::stop, stop)
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
