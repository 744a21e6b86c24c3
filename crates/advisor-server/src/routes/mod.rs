mod ag_ui;
mod anthropic;
mod ask;
mod chat;
mod chunks;
mod conversations;
mod json_body;
mod openai_chat;
mod openai_responses;
mod operator;
mod page;
mod ui_messages;
mod user;
mod view;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::{from_fn, from_fn_with_state, map_response};
use axum::response::Response;
use axum::routing::{get, post};

use self::operator::{health, metrics};
use crate::ChatServer;
use crate::refusal::Refusal;
use crate::request_id::identified;

impl ChatServer {
    /// Returns the routes, to be mounted in any axum application. They need a tokio runtime.
    pub fn router(&self) -> Router {
        let router = page::router()
            .route("/healthz", get(health::alive))
            .route("/readyz", get(health::ready))
            .route("/metrics", get(metrics::text))
            .route("/api/chat", post(chat::ask))
            .route("/api/chunks", post(chunks::ask))
            .route("/api/ui", post(ui_messages::ask))
            .route("/api/ui/{conversation}/stream", get(ui_messages::resume))
            .route("/api/ag-ui", post(ag_ui::ask))
            .route("/api/conversations", get(conversations::list))
            .route("/api/conversations/{id}", get(conversations::read).delete(conversations::delete))
            .route("/api/conversations/{id}/stream", get(chat::resume))
            .route("/api/conversations/{id}/stop", post(conversations::stop))
            .route("/v1/models", get(openai_chat::models))
            .route("/v1/chat/completions", post(openai_chat::ask))
            .route("/v1/responses", post(openai_responses::ask))
            .route("/v1/messages", post(anthropic::ask))
            .fallback(|| async { Refusal::not_found("there is no such route") })
            .method_not_allowed_fallback(|| async { Refusal::method_not_allowed() })
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

/// Adds the headers that keep browsers from guessing types and from loading anything from elsewhere.
async fn secured(mut response: Response) -> Response {
    const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                          img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    let headers: [(HeaderName, &str); 3] = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    for (name, value) in headers {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
