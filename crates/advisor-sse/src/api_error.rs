//! Errors in the terms that clients of OpenAI and Anthropic look for, for the bodies of responses and for streams.

use serde_json::{Value, json};

/// The type, code and text of an error, as the clients of one API look for them.
///
/// Clients tell errors apart by these terms, such as a conversation that is too long: the code
/// `context_length_exceeded`, or the words `prompt is too long`. What an API has no term for keeps the code and the text
/// of the server.
///
/// | failure | OpenAI: type, code | Anthropic: type |
/// | --- | --- | --- |
/// | the conversation is too long | `invalid_request_error`, `context_length_exceeded` | `invalid_request_error` |
/// | the model is busy | `rate_limit_error`, `rate_limit_exceeded` | `rate_limit_error` |
/// | the model, its key or its connection failed, or the answer broke off | `server_error`, the kind of the error | `api_error`, `timeout_error` or `overloaded_error` |
/// | the request cannot succeed as it is | `invalid_request_error`, the kind of the error | `invalid_request_error`, `conflict_error` or `request_too_large` |
///
/// OpenAI's list of codes of a failed response is closed: `response.failed` has `server_error`, `rate_limit_exceeded` or
/// `invalid_prompt`, and beside the list `context_length_exceeded`. The `error` event before it has the code of the table.
///
/// # Example
/// ```
/// use advisor_core::ErrorKind;
/// use advisor_sse::{ApiError, Failure};
///
/// let failure = Failure::from(ErrorKind::ContextOverflow);
/// assert_eq!(ApiError::openai(failure.status(), failure.code(), failure.message()).code, "context_length_exceeded");
/// let error = ApiError::anthropic(failure.status(), failure.code(), failure.message());
/// assert!(error.message.starts_with("prompt is too long: "));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApiError<'a> {
    /// The type of the error, such as `invalid_request_error`.
    pub kind: &'static str,
    /// The code of the error, such as `rate_limit_exceeded`.
    pub code: &'a str,
    /// The text for people. Some clients look for its words.
    pub message: &'a str,
}

impl<'a> ApiError<'a> {
    /// Returns the error in the terms of OpenAI. The arguments are its HTTP status, and the server's own code and text.
    #[must_use]
    pub fn openai(status: u16, code: &'a str, message: &'a str) -> Self {
        let kind = match status {
            429 => "rate_limit_error",
            500.. => "server_error",
            _ => "invalid_request_error",
        };
        let (code, message) = match (status, code) {
            (_, TOO_LONG) => ("context_length_exceeded", TOO_LONG_TEXT),
            (401, _) => ("invalid_api_key", message),
            (429, _) => ("rate_limit_exceeded", message),
            other => (other.1, message),
        };
        Self { kind, code, message }
    }

    /// Returns the error in the terms of Anthropic. The arguments are its HTTP status, and the server's own code and text.
    #[must_use]
    pub fn anthropic(status: u16, code: &'a str, message: &'a str) -> Self {
        let kind = match status {
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            408 | 504 => "timeout_error",
            409 => "conflict_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            503 => "overloaded_error",
            500.. => "api_error",
            _ => "invalid_request_error",
        };
        let message = match code {
            TOO_LONG => TOO_LONG_TEXT,
            _ => message,
        };
        Self { kind, code, message }
    }

    /// Returns the object of the error in OpenAI's form.
    pub(crate) fn openai_object(&self) -> Value {
        json!({"message": self.message, "type": self.kind, "code": self.code, "param": null})
    }

    /// Returns the code of a failed response. OpenAI's list of them is closed; beside it, its API sends
    /// `context_length_exceeded`, for which clients look.
    pub(crate) fn response_code(&self) -> &'a str {
        match self.code {
            code @ ("context_length_exceeded" | "rate_limit_exceeded") => code,
            _ if self.kind == "server_error" => "server_error",
            _ => "invalid_prompt",
        }
    }
}

/// The server's own code of a conversation that is too long for the model.
const TOO_LONG: &str = "context_overflow";

/// Clients that do not read the code look for `prompt is too long`, `exceeds the context window` (LangChain, in a
/// stream), or `this model's maximum context length is` (litellm).
const TOO_LONG_TEXT: &str = "prompt is too long: it exceeds the context window (this model's maximum context length is \
                             reached); shorten the message, or begin a new conversation";
