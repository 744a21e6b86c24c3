//! `caught`: a request that panics is an internal error.

use advisor_core::CatchPanics;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::refusal::Refusal;

/// Answers a request whose handler panics, such as in a store, with an internal error. The connection stays usable.
pub(crate) async fn caught(request: Request, next: Next) -> Response {
    CatchPanics::new(next.run(request)).await.unwrap_or_else(|_| {
        // The hook of the program has written the text.
        tracing::error!("a request panicked");
        Refusal::internal().into_response()
    })
}
