use axum::http::StatusCode;

/// The form of the body of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorForm {
    /// The form that OpenAI's clients read, for all routes but one.
    OpenAi,
    /// The form that Anthropic's clients read.
    Anthropic,
}

impl ErrorForm {
    /// Returns the form for the clients of a path. Routes below `/v1/messages` are Anthropic's, too.
    pub(crate) fn for_path(path: &str) -> Self {
        match path.strip_prefix("/v1/messages") {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => Self::Anthropic,
            _ => Self::OpenAi,
        }
    }

    /// Returns the type of an error with this status.
    pub(crate) fn kind(self, status: StatusCode) -> &'static str {
        match (self, status.as_u16()) {
            (Self::OpenAi, 500..) => "server_error",
            (Self::Anthropic, 401) => "authentication_error",
            (Self::Anthropic, 403) => "permission_error",
            (Self::Anthropic, 404) => "not_found_error",
            (Self::Anthropic, 408 | 504) => "timeout_error",
            (Self::Anthropic, 409) => "conflict_error",
            (Self::Anthropic, 413) => "request_too_large",
            (Self::Anthropic, 429) => "rate_limit_error",
            (Self::Anthropic, 503) => "overloaded_error",
            (Self::Anthropic, 500..) => "api_error",
            _ => "invalid_request_error",
        }
    }
}
