use advisor_core::ConversationKey;
use axum::extract::FromRequestParts;
use axum::http::header;
use axum::http::request::Parts;

use crate::access::host::{is_foreign, is_local};
use crate::refusal::Refusal;
use crate::server::ChatServer;

/// The sender of a request: the tenant of its token, or the user of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct User {
    tenant: Option<String>,
}

impl User {
    /// Returns the tenant of the user's conversations.
    pub(crate) fn tenant(&self) -> &str {
        self.tenant.as_deref().unwrap_or("default")
    }

    /// Returns the key of one of the user's conversations.
    pub(crate) fn conversation(&self, id: &str) -> Result<ConversationKey, Refusal> {
        ConversationKey::in_tenant(self.tenant(), id).map_err(|error| Refusal::bad_request(error.to_string()))
    }
}

impl FromRequestParts<ChatServer> for User {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, server: &ChatServer) -> Result<Self, Refusal> {
        let tokens = server.tokens();
        if tokens.is_empty() {
            let may_ask = is_local(&parts.headers) && !is_foreign(&parts.headers);
            return if may_ask { Ok(Self { tenant: None }) } else { Err(Refusal::forbidden_host()) };
        }
        let text = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
        let bearer = text(header::AUTHORIZATION.as_str()).and_then(|value| value.strip_prefix("Bearer "));
        // Anthropic's clients send their key in a header of its name.
        let token = bearer.or(text("x-api-key"));
        let tenant = token.and_then(|token| tokens.tenant(token)).ok_or_else(Refusal::unauthorized)?;
        Ok(Self { tenant: Some(tenant.to_owned()) })
    }
}
