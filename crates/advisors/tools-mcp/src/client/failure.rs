//! Errors of connections, lists and calls, without the text of transports.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::io;
use std::time::{Duration, SystemTime};

use advisor_core::{Error, ErrorKind, ToolError};
use rmcp::model::ErrorCode;
use rmcp::service::{ClientInitializeError, ServiceError};
use rmcp::transport::streamable_http_client::StreamableHttpError;

use super::http_client::Unnamed;
use super::server::McpServer;

/// The longest text of a server in an error, in bytes.
const LONGEST_TEXT: usize = 4 << 10;

/// The longest text of a server in a log, in bytes.
const LONGEST_IN_LOGS: usize = 256;

/// Returns the error of a process or stream that could not be opened. Its source has the kind of `error`, not its text.
pub(super) fn not_opened(server: &McpServer, error: &io::Error) -> Error {
    let name = &server.settings.name;
    let cause = io::Error::from(error.kind());
    Error::new(ErrorKind::Connection, format!("the MCP server `{name}` cannot be reached")).with_source(cause)
}

/// Returns the error of a connection that did not begin.
///
/// Neither the text of the server nor that of the transport is in it: both may contain the address and keys.
pub(super) fn not_connected(server: &McpServer, error: &ClientInitializeError) -> Error {
    let (kind, text) = match error {
        ClientInitializeError::TransportError { error, .. } => of_transport(error),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => {
            return not_connected(server, fallback);
        }
        ClientInitializeError::ConnectionClosed(_) => (ErrorKind::Connection, "closed the connection".into()),
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => (
            ErrorKind::Protocol { position: None },
            "speaks no version of the protocol that this client knows".into(),
        ),
        _ => (ErrorKind::Protocol { position: None }, "does not begin as the protocol says".into()),
    };
    Error::new(kind, format!("the MCP server `{}` {text}", server.settings.name))
}

/// Returns the error of a list that could not be read.
pub(super) fn not_listed(server: &McpServer, error: &ServiceError) -> Error {
    let (kind, text) = match error {
        ServiceError::TransportSend(error) => of_transport(error),
        ServiceError::TransportClosed => (ErrorKind::Connection, "closed the connection".into()),
        ServiceError::McpError(_) => {
            (ErrorKind::Provider { status: None }, "refuses to list its tools".into())
        }
        _ => (ErrorKind::Protocol { position: None }, "does not list its tools as the protocol says".into()),
    };
    Error::new(kind, format!("the MCP server `{}` {text}", server.settings.name))
}

/// Returns what the model reads of a call that has no result.
pub(super) fn of_call(server: &McpServer, error: &ServiceError) -> ToolError {
    let name = &server.settings.name;
    match error {
        ServiceError::McpError(error) => {
            let text = shown(server, &error.message);
            match error.code {
                ErrorCode::INTERNAL_ERROR => failed(server, &text),
                _ => ToolError::new(format!("the server `{name}` refused the call: {text}")),
            }
        }
        ServiceError::TransportSend(error) => of_undelivered(server, error),
        ServiceError::TransportClosed => of_unknown_outcome(&format!("the server `{name}` is gone")),
        ServiceError::Cancelled { .. } => {
            of_unknown_outcome(&format!("the server `{name}` stopped the call"))
        }
        _ => foreign(server),
    }
}

/// Returns what the model reads of a call that its transport could not deliver or have answered.
fn of_undelivered(server: &McpServer, error: &(dyn StdError + 'static)) -> ToolError {
    let name = &server.settings.name;
    let not_run = |reason: &str| ToolError::new(format!("not started: the server `{name}` {reason}"));
    if let Some(unnamed) = causes(error).find_map(unnamed) {
        let text = shown(server, &unnamed.0.message);
        return match unnamed.is_refusal() {
            true => not_run(&format!("refused the call: {text}")),
            false => failed(server, &text),
        };
    }
    let (kind, text) = of_transport(error);
    match (kind, causes(error).find_map(status)) {
        (ErrorKind::Authentication | ErrorKind::RateLimited { .. } | ErrorKind::NotFound, _)
        | (_, Some(300..=407 | 409..=499)) => not_run(&text),
        (_, Some(status)) => failed(server, &format!("it answered with the error status {status}")),
        (ErrorKind::Protocol { .. }, _) => foreign(server),
        _ => of_unknown_outcome(&format!("the server `{name}` is gone")),
    }
}

/// The server failed at the call. The text may be of the server.
fn failed(server: &McpServer, text: &str) -> ToolError {
    of_unknown_outcome(&format!("the server `{}` failed at the call: {text}", server.settings.name))
}

/// The answer is none that the protocol has for calls.
pub(super) fn foreign(server: &McpServer) -> ToolError {
    let name = &server.settings.name;
    of_unknown_outcome(&format!("the server `{name}` answered in a way that the protocol does not have"))
}

/// Returns the error of a call that may have run.
pub(super) fn of_unknown_outcome(text: &str) -> ToolError {
    ToolError::new(format!("{text}; the outcome is unknown"))
}

/// Checks whether further requests may succeed over the same connection.
pub(super) fn keeps_connection(error: &(dyn StdError + 'static)) -> bool {
    matches!(of_transport(error).0, ErrorKind::Authentication | ErrorKind::RateLimited { .. })
}

fn of_transport(error: &(dyn StdError + 'static)) -> (ErrorKind, Cow<'static, str>) {
    let status = causes(error).find_map(status);
    match status {
        Some(401 | 403) => (ErrorKind::Authentication, "refuses the key, or needs one".into()),
        Some(404) => (ErrorKind::NotFound, "is not at this address".into()),
        Some(429) => {
            let retry_after = causes(error).find_map(retry_after);
            let after = retry_after.map(|delay| format!("; try again after {} s", delay.as_secs()));
            let text = format!("limits the rate of requests{}", after.unwrap_or_default());
            (ErrorKind::RateLimited { retry_after }, text.into())
        }
        Some(status) => (
            ErrorKind::Provider { status: Some(status) },
            format!("answered with the error status {status}").into(),
        ),
        None if causes(error).any(has_forgotten) => {
            (ErrorKind::NotFound, "has forgotten the session, also after it began anew".into())
        }
        None if causes(error).any(|cause| unnamed(cause).is_some()) => {
            (ErrorKind::Provider { status: None }, "refuses requests".into())
        }
        None if causes(error).any(is_foreign) => {
            (ErrorKind::Protocol { position: None }, "does not answer as the protocol says".into())
        }
        None => (ErrorKind::Connection, "cannot be reached".into()),
    }
}

fn causes<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |error: &&'a (dyn StdError + 'static)| (*error).source())
}

fn http_error<'a>(cause: &'a (dyn StdError + 'static)) -> Option<&'a StreamableHttpError<reqwest::Error>> {
    cause.downcast_ref()
}

/// Returns the error of an answer that does not name its request.
fn unnamed<'a>(cause: &'a (dyn StdError + 'static)) -> Option<&'a Unnamed> {
    match http_error(cause)? {
        StreamableHttpError::Io(error) => error.get_ref()?.downcast_ref(),
        _ => None,
    }
}

/// Returns the delay that the server asks for, in seconds or as a date.
fn retry_after(cause: &(dyn StdError + 'static)) -> Option<Duration> {
    let StreamableHttpError::HttpStatus(error) = http_error(cause)? else { return None };
    let value = error.retry_after.as_deref()?.trim();
    let until = || httpdate::parse_http_date(value).ok()?.duration_since(SystemTime::now()).ok();
    value.parse().map(Duration::from_secs).ok().or_else(until)
}

/// Checks whether the server has forgotten the session, and another one did not begin.
fn has_forgotten(cause: &(dyn StdError + 'static)) -> bool {
    use StreamableHttpError::{ReinitializationFailed, SessionExpired};
    matches!(http_error(cause), Some(SessionExpired | ReinitializationFailed(_)))
}

/// Returns the HTTP status of an answer that is an error.
fn status(cause: &(dyn StdError + 'static)) -> Option<u16> {
    match http_error(cause) {
        Some(StreamableHttpError::AuthRequired(_)) => Some(401),
        Some(StreamableHttpError::InsufficientScope(_)) => Some(403),
        Some(StreamableHttpError::HttpStatus(error)) => Some(error.status),
        // The status is only in the text, whose rest is of the server.
        Some(StreamableHttpError::UnexpectedServerResponse(text)) => {
            text.strip_prefix("HTTP ")?.get(..3)?.parse().ok()
        }
        _ => cause.downcast_ref::<reqwest::Error>()?.status().map(|status| status.as_u16()),
    }
}

/// Checks whether something at the address answered that is no MCP server.
fn is_foreign(cause: &(dyn StdError + 'static)) -> bool {
    matches!(
        http_error(cause),
        Some(
            StreamableHttpError::UnexpectedContentType(_)
                | StreamableHttpError::UnexpectedServerResponse(_)
                | StreamableHttpError::ResponseBodyTooLarge { .. }
                | StreamableHttpError::Deserialize(_)
        )
    )
}

/// Removes secrets from a text of a server, and cuts it to a length that an error may have.
pub(super) fn shown(server: &McpServer, text: &str) -> String {
    let mut text = server.redact(text);
    text.truncate(text.floor_char_boundary(LONGEST_TEXT));
    text
}

/// Cuts and escapes a text of a server for logs.
pub(super) fn logged(text: &str) -> String {
    text.get(..text.floor_char_boundary(LONGEST_IN_LOGS)).unwrap_or_default().escape_debug().to_string()
}
