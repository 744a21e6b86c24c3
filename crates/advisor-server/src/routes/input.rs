use axum::Json;
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use tokio::time::timeout;

use crate::ChatServer;
use crate::refusal::Refusal;

/// The body of a request as a value.
///
/// # Errors
/// A [`Refusal`] if the body is larger, slower or deeper than allowed, breaks off, or is not such a value.
#[derive(Debug)]
pub(super) struct JsonBody<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<ChatServer> for JsonBody<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, server: &ChatServer) -> Result<Self, Refusal> {
        // The limit is one for the whole body: a byte now and then does not extend it.
        let body = timeout(server.limits().body_timeout, Json::from_request(request, server)).await;
        let Json(value) = body.map_err(|_| Refusal::slow_body())??;
        Ok(Self(value))
    }
}

/// The parameters of a query as a value.
///
/// # Errors
/// A [`Refusal`] if the query is not such a value.
#[derive(Debug)]
pub(super) struct Parameters<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequestParts<ChatServer> for Parameters<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, server: &ChatServer) -> Result<Self, Refusal> {
        let Query(value) = Query::from_request_parts(parts, server).await?;
        Ok(Self(value))
    }
}

/// Reads a field whose value `null` means its absence, as the APIs of the providers allow.
pub(super) fn null_is_absent<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Returns the text of a field in which an empty text means its absence.
pub(super) fn given(text: Option<&String>) -> Option<&str> {
    text.map(String::as_str).filter(|text| !text.is_empty())
}

/// The query of a route without parameters.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NoParameters {}
