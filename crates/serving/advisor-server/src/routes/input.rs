//! What requests have in common: a body within its limits of bytes, values, depth and time, a query, and the sender.

use std::sync::{Arc, OnceLock};

use advisor_core::{ChatOptions, ConversationKey, Prompt};
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
use crate::access::origins::{is_foreign, is_forwarded, is_local};
use crate::places::check_values;
use crate::refusal::Refusal;
use crate::request_id::RequestId;

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
        let read = timeout(server.limits.body_timeout, Bytes::from_request(request, server)).await;
        let body = read.map_err(|_| Refusal::slow_body())?.map_err(JsonRejection::from)?;
        let Json(value) = match body.len() <= SMALL {
            true => Json::from_bytes(&body)?,
            false => server.large_bodies.begin().await?.work(move || parsed(&body)).await??,
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

/// The sender of a request: the tenant of its token, or the user of this machine. With it come the request's id, and its
/// prompt.
#[derive(Clone)]
pub(super) struct User {
    /// The tenant of the user's conversations.
    pub(super) tenant: String,
    pub(super) request: RequestId,
    /// The head of the request, if the application changes the prompt by it.
    head: Option<Arc<Parts>>,
    /// The options that the request asks for. Those that the application sets count before them.
    options: ChatOptions,
    prompt: Arc<OnceLock<Prompt>>,
}

impl User {
    /// Returns the sender of a request that asks for these options of its turn.
    pub(super) fn asking_for(self, options: ChatOptions) -> Self {
        Self { options, prompt: Arc::default(), ..self }
    }

    /// Returns the prompt of the user's turn. The application changes it once, in the first call.
    pub(super) fn prompt(&self, server: &ChatServer) -> &Prompt {
        self.prompt.get_or_init(|| {
            let prompt = server.client.prompt().options(self.options.clone());
            match (&server.change_prompt, &self.head) {
                (Some(change), Some(head)) => change(prompt, head),
                _ => prompt,
            }
        })
    }

    /// Returns whether the user's client runs a tool itself; `None` for a tool that the prompt does not have.
    pub(super) fn runs(&self, server: &ChatServer, tool: &str) -> Option<bool> {
        self.prompt(server).tools().find(tool).map(|tool| tool.definition().client_side)
    }

    /// Returns the key of one of the user's conversations.
    pub(super) fn conversation(&self, id: &str) -> Result<ConversationKey, Refusal> {
        ConversationKey::in_tenant(&self.tenant, id).map_err(Refusal::invalid)
    }
}

impl FromRequestParts<ChatServer> for User {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, server: &ChatServer) -> Result<Self, Refusal> {
        let tenant = tenant(parts, server)?;
        // The layer of ids is around every route.
        let request = parts.extensions.get::<RequestId>().cloned();
        let request = request.unwrap_or_else(|| RequestId::from_headers(&parts.headers));
        let head = server.change_prompt.is_some().then(|| Arc::new(parts.clone()));
        Ok(Self { tenant, request, head, options: ChatOptions::default(), prompt: Arc::default() })
    }
}

/// Returns the tenant of the request. A server that does not know its users has one, and serves this machine only.
fn tenant(parts: &Parts, server: &ChatServer) -> Result<String, Refusal> {
    if let Some(authenticate) = &server.authenticate {
        // A browser may add the cookies of a session to requests of any page.
        require_own_page(parts, server)?;
        return authenticate(parts).ok_or_else(Refusal::unauthorized);
    }
    if server.tokens.is_empty() {
        require_this_machine(parts, server)?;
        return Ok("default".to_owned());
    }
    let tenant =
        tokens(parts).find_map(|token| server.tokens.tenant(token)).ok_or_else(Refusal::unauthorized)?;
    Ok(tenant.to_owned())
}

/// Refuses a request that names another machine, that a proxy forwards from one, or that a page of another site sends.
fn require_this_machine(parts: &Parts, server: &ChatServer) -> Result<(), Refusal> {
    match (is_local(parts), is_forwarded(&parts.headers)) {
        (true, false) => require_own_page(parts, server),
        (true, true) => Err(Refusal::forbidden(
            "this server has no tokens and serves its own machine only, but a proxy forwards this request from another one: \
             set tokens, or authenticate the users in the application",
        )),
        (false, _) => Err(Refusal::forbidden(
            "this server has no tokens and serves its own machine only, under `localhost`",
        )),
    }
}

/// Refuses a request that a page of another site sends.
fn require_own_page(parts: &Parts, server: &ChatServer) -> Result<(), Refusal> {
    let is_allowed = !is_foreign(&parts.headers) || server.origins.sent(&parts.headers);
    let message = "pages of other sites may not use this server, unless it allows their origin";
    if is_allowed { Ok(()) } else { Err(Refusal::forbidden(message)) }
}

/// Returns the tokens of a request. One of a proxy may stand beside the one for this server.
fn tokens(parts: &Parts) -> impl Iterator<Item = &str> {
    let text = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = text(header::AUTHORIZATION.as_str()).and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim_start_matches(' '))
    });
    // Anthropic's clients send their key in a header of its name.
    bearer.into_iter().chain(text("x-api-key"))
}
