//! `JsonBody`: a body within its limits of bytes, values, depth and time. `Parameters`: a query.

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use tokio::time::timeout;

use crate::ChatServer;
use crate::large_bodies::{check_values, parse_elsewhere};
use crate::refusal::Refusal;

/// The bytes of a body that is parsed at once. It is too short for many values.
const SMALL: usize = 64 << 10;

/// The body of a request as a value.
///
/// # Errors
/// A [`Refusal`] if the body is larger, slower or deeper than allowed, has more values, breaks off, or is not such a value.
#[derive(Debug)]
pub(super) struct JsonBody<T>(pub(super) T);

impl<T: DeserializeOwned + Send + 'static> FromRequest<ChatServer> for JsonBody<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, server: &ChatServer) -> Result<Self, Refusal> {
        if !is_json(request.headers()) {
            return Err(Refusal::no_json());
        }
        // The limit is one for the whole body: a byte now and then does not extend it.
        let read = timeout(server.limits().body_timeout, Bytes::from_request(request, server)).await;
        let body = read.map_err(|_| Refusal::slow_body())?.map_err(JsonRejection::from)?;
        let Json(value) = match body.len() <= SMALL {
            true => Json::from_bytes(&body)?,
            false => parse_elsewhere(server.large_bodies(), move || parsed(&body)).await??,
        };
        Ok(Self(value))
    }
}

fn parsed<T: DeserializeOwned>(body: &[u8]) -> Result<Json<T>, Refusal> {
    check_values([body])?;
    Ok(Json::from_bytes(body)?)
}

/// Checks whether the header names JSON. A page of another site cannot send it without being asked for (CORS).
fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind.strip_prefix("application/").is_some_and(|kind| kind == "json" || kind.ends_with("+json"))
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
