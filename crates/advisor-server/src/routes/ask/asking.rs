//! The turn that a client asks for, by its headers or its body.

use advisor_core::TurnId;
use axum::http::HeaderMap;

use super::headers::header;
use crate::refusal::Refusal;

/// The turn that a client asks for.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::routes) struct Asking<'a> {
    /// Its id, if the client has chosen one.
    pub(in crate::routes) turn: Option<&'a str>,
    /// The earlier turn that it continues, if the client names one.
    pub(in crate::routes) after: Option<&'a TurnId>,
    /// Whether the client says that it repeats its request.
    pub(in crate::routes) repeats: bool,
}

/// The header of OpenAI's and Anthropic's clients that counts the repeats of a request.
const RETRY_COUNT: &str = "x-stainless-retry-count";

impl<'a> Asking<'a> {
    /// Reads the headers of a request whose protocol has no id of a turn.
    pub(in crate::routes) fn of(headers: &'a HeaderMap) -> Result<Self, Refusal> {
        let repeats = headers.get(RETRY_COUNT).is_some_and(|count| count != "0");
        Ok(Self { turn: header(headers, "idempotency-key")?, after: None, repeats })
    }

    pub(in crate::routes) fn named(turn: &'a str) -> Self {
        Self { turn: Some(turn), ..Self::default() }
    }
}
