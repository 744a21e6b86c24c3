//! The counters as text, and the layer that counts requests.

use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::ChatServer;
use crate::metrics::Metrics;
use crate::refusal::Refusal;
use crate::routes::openapi::operation::Operation;
use crate::routes::user::Operator;

/// The media type of the text.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(in crate::routes) fn operation() -> Operation {
    Operation::for_operator("metrics", "Counters for Prometheus, if the server counts")
        .with_text("application/openmetrics-text")
        .with_errors(&[404])
}

/// Returns the counters as text, if the server has any.
pub(in crate::routes) async fn text(
    State(server): State<ChatServer>,
    _operator: Operator,
) -> Result<Response, Refusal> {
    let metrics = server.metrics().ok_or_else(|| Refusal::not_found("the server counts nothing"))?;
    let text = metrics.text(server.turns().running_count(), server.turns().readers());
    Ok(([(header::CONTENT_TYPE, OPEN_METRICS)], text).into_response())
}

/// Counts a request by its route. Unknown paths and methods are one each, as clients choose them.
pub(in crate::routes) async fn counted(
    State(metrics): State<Arc<Metrics>>,
    request: Request,
    next: Next,
) -> Response {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let method = match *request.method() {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::DELETE => "DELETE",
        _ => "other",
    };
    let response = next.run(request).await;
    let route = route.as_ref().map_or("unknown", MatchedPath::as_str);
    metrics.request(method, route, response.status().as_u16());
    response
}
