//! `User`: the sender of a request, and the keys of its conversations.

use advisor_core::{ChatOptions, ConversationKey, Prompt};
use axum::extract::FromRequestParts;
use axum::http::header;
use axum::http::request::Parts;

use crate::access::application::RequestPrompt;
use crate::access::host::{is_foreign, is_forwarded, is_local};
use crate::refusal::Refusal;
use crate::request_id::RequestId;
use crate::server::ChatServer;

/// The sender of a request, which is the tenant of its token or the user of this machine, and the request's id.
#[derive(Debug, Clone)]
pub(super) struct User {
    tenant: Option<String>,
    request: RequestId,
    prompt: RequestPrompt,
}

impl User {
    /// Returns the tenant of the user's conversations.
    pub(crate) fn tenant(&self) -> &str {
        self.tenant.as_deref().unwrap_or("default")
    }

    /// Returns the id of the request.
    pub(crate) fn request(&self) -> &RequestId {
        &self.request
    }

    /// Returns the sender of a request that asks for these options of its turn.
    pub(super) fn asking_for(self, options: ChatOptions) -> Self {
        Self { prompt: self.prompt.with_options(options), ..self }
    }

    /// Returns the prompt of this request.
    pub(crate) fn request_prompt(&self) -> &RequestPrompt {
        &self.prompt
    }

    /// Returns the prompt of the user's turn, as the application has changed it.
    pub(crate) fn prompt(&self, server: &ChatServer) -> &Prompt {
        self.prompt.of(server.client())
    }

    /// Returns the key of one of the user's conversations.
    pub(crate) fn conversation(&self, id: &str) -> Result<ConversationKey, Refusal> {
        ConversationKey::in_tenant(self.tenant(), id).map_err(|error| Refusal::bad_request(error.to_string()))
    }
}

impl FromRequestParts<ChatServer> for User {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, server: &ChatServer) -> Result<Self, Refusal> {
        let tenant = tenant(parts, server)?;
        // The layer of ids is around every route.
        let request = parts.extensions.get::<RequestId>().cloned();
        let request = request.unwrap_or_else(|| RequestId::from_headers(&parts.headers));
        let prompt = RequestPrompt::new(server.change_prompt(), parts);
        Ok(Self { tenant, request, prompt })
    }
}

/// Returns the tenant of the request. A server that does not know its users has none, and serves this machine only.
fn tenant(parts: &Parts, server: &ChatServer) -> Result<Option<String>, Refusal> {
    if let Some(authenticate) = server.authenticate() {
        // A browser may add the cookies of a session to requests of any page.
        require_own_page(parts, server)?;
        return authenticate.tenant(parts).map(Some).ok_or_else(Refusal::unauthorized);
    }
    let known = server.tokens();
    if known.is_empty() {
        require_this_machine(parts, server)?;
        return Ok(None);
    }
    let tenant = tokens(parts).find_map(|token| known.tenant(token)).ok_or_else(Refusal::unauthorized)?;
    Ok(Some(tenant.to_owned()))
}

/// Refuses a request that names another machine, that a proxy forwards from one, or that a page of another site sends.
fn require_this_machine(parts: &Parts, server: &ChatServer) -> Result<(), Refusal> {
    match (is_local(parts), is_forwarded(&parts.headers)) {
        (true, false) => require_own_page(parts, server),
        (true, true) => Err(Refusal::forwarded()),
        (false, _) => Err(Refusal::forbidden_host()),
    }
}

/// Refuses a request that a page of another site sends.
fn require_own_page(parts: &Parts, server: &ChatServer) -> Result<(), Refusal> {
    let is_allowed = !is_foreign(&parts.headers) || server.origins().sent(&parts.headers);
    if is_allowed { Ok(()) } else { Err(Refusal::forbidden_page()) }
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
