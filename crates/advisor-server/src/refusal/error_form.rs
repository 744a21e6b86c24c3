//! The form of the body of an error, by the route.

use advisor_sse::ApiError;
use axum::http::StatusCode;

/// The form of the body of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorForm {
    /// That of the server's own routes: OpenAI's form with the server's own codes.
    Own,
    /// That of OpenAI's clients, with the codes that they look for.
    OpenAi,
    /// That of Anthropic's clients.
    Anthropic,
}

impl ErrorForm {
    /// Returns the form for the clients of a path. Routes below `/v1/messages` are Anthropic's, too.
    pub(crate) fn for_path(path: &str) -> Self {
        match path.strip_prefix("/v1/messages") {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => Self::Anthropic,
            _ if path.starts_with("/v1/") => Self::OpenAi,
            _ => Self::Own,
        }
    }

    /// Returns an error with this status in the terms of the form.
    pub(crate) fn error<'a>(self, status: StatusCode, code: &'a str, message: &'a str) -> ApiError<'a> {
        let status = status.as_u16();
        let mut error = match self {
            Self::Anthropic => ApiError::anthropic(status, code, message),
            Self::Own | Self::OpenAi => ApiError::openai(status, code, message),
        };
        if self == Self::Own {
            (error.code, error.message) = (code, message);
        }
        error
    }
}
