//! What a client asks for by headers, and the ids that turns and calls have for it.

use advisor_core::TurnId;
use axum::http::{HeaderMap, HeaderValue};

use crate::refusal::Refusal;
use crate::routes::ask::digest;
use crate::turns::run::OnDisconnect;

/// Returns a header as text, if the request has it.
///
/// # Errors
/// If it has other characters than visible ASCII ones.
pub(in crate::routes) fn header<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Refusal> {
    let text = headers.get(name).map(HeaderValue::to_str).transpose();
    text.map_err(|_| {
        Refusal::bad_request(format!("the header `{name}` has other characters than ASCII ones"))
    })
}

/// Returns the policy that a client of a route with resumption wants. By default, its turn continues.
///
/// # Errors
/// For another value than `stop` or `continue`.
pub(in crate::routes) fn on_disconnect(headers: &HeaderMap) -> Result<OnDisconnect, Refusal> {
    match headers.get("x-on-disconnect").map(HeaderValue::as_bytes) {
        None | Some(b"continue") => Ok(OnDisconnect::Continue),
        Some(b"stop") => Ok(OnDisconnect::StopOnRequest),
        Some(_) => Err(Refusal::bad_request("`x-on-disconnect` is `stop` or `continue`")),
    }
}

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

/// The prefix of the id of a turn that continues a message of the AI SDK.
const CONTINUED: &str = "continued-";

/// The length of a suffix behind its dash.
const LEN: usize = 8;

/// The end of the ids of a turn's calls, for clients that keep the calls of several turns together: models repeat ids.
///
/// It depends on the id of the turn alone, so that a repeated request has the same ids in each process.
#[derive(Debug)]
pub(in crate::routes) struct CallSuffix {
    text: String,
    is_of_continued: bool,
}

impl CallSuffix {
    pub(in crate::routes) fn of(turn: &TurnId) -> Self {
        let digest = digest(turn.as_str().as_bytes());
        let text = format!("-{}", digest.get(..LEN).unwrap_or_default());
        Self { text, is_of_continued: turn.as_str().starts_with(CONTINUED) }
    }

    /// Returns the suffix for a thread, which has all turns of the conversation.
    pub(in crate::routes) fn in_thread(self) -> String {
        self.text
    }

    /// Returns the suffix for a message of the AI SDK. Its first turn needs none.
    pub(in crate::routes) fn in_message(self) -> String {
        if self.is_of_continued { self.text } else { String::new() }
    }

    /// Checks whether the turn continues a message of the AI SDK.
    pub(in crate::routes) fn is_of_continued(&self) -> bool {
        self.is_of_continued
    }

    /// Checks whether a client knows the call of this id of the turn as `sent`. The id alone is that of an earlier call if the
    /// turn continues a message.
    pub(in crate::routes) fn names(&self, id: &str, sent: &str) -> bool {
        let has_suffix = sent.strip_suffix(&self.text) == Some(id);
        has_suffix || (id == sent && !self.is_of_continued)
    }
}

/// Returns the id of a turn that continues a message of the AI SDK.
pub(in crate::routes) fn continued_turn(parts: &[u8]) -> String {
    format!("{CONTINUED}{}", digest(parts))
}
