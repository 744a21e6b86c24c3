use std::error::Error as StdError;
use std::io;

use advisor_core::{Error, ErrorKind};
use rmcp::service::{ClientInitializeError, ServiceError};
use rmcp::transport::streamable_http_client::StreamableHttpError;

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
    let name = &server.settings.name;
    let (kind, text) = match error {
        _ if error.is_authorization_required() => {
            (ErrorKind::Authentication, "refuses the key, or needs one")
        }
        ClientInitializeError::TransportError { error, .. } => of_transport(error),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => {
            return not_connected(server, fallback);
        }
        ClientInitializeError::ConnectionClosed(_) => (ErrorKind::Connection, "closed the connection"),
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => (
            ErrorKind::Protocol { position: None },
            "speaks no version of the protocol that this client knows",
        ),
        _ => (ErrorKind::Protocol { position: None }, "does not begin as the protocol says"),
    };
    Error::new(kind, format!("the MCP server `{name}` {text}"))
}

/// Returns the error of a list that could not be read.
pub(super) fn not_listed(server: &McpServer, error: &ServiceError) -> Error {
    let name = &server.settings.name;
    let (kind, text) = match error {
        _ if error.is_authorization_required() => {
            (ErrorKind::Authentication, "refuses the key, or needs one")
        }
        ServiceError::TransportSend(error) => of_transport(error),
        ServiceError::TransportClosed => (ErrorKind::Connection, "closed the connection"),
        ServiceError::McpError(_) => (ErrorKind::Provider { status: None }, "refuses to list its tools"),
        _ => (ErrorKind::Protocol { position: None }, "does not list its tools as the protocol says"),
    };
    Error::new(kind, format!("the MCP server `{name}` {text}"))
}

fn of_transport(error: &(dyn StdError + 'static)) -> (ErrorKind, &'static str) {
    let causes = || std::iter::successors(Some(error), |error: &&(dyn StdError + 'static)| (*error).source());
    let status = causes().find_map(status);
    match status {
        Some(401 | 403) => (ErrorKind::Authentication, "refuses the key, or needs one"),
        Some(404) => (ErrorKind::NotFound, "is not at this address"),
        Some(429) => (ErrorKind::RateLimited { retry_after: None }, "limits the rate of requests"),
        Some(status) => (ErrorKind::Provider { status: Some(status) }, "answered with an error status"),
        None if causes().any(is_foreign) => {
            (ErrorKind::Protocol { position: None }, "does not answer as the protocol says")
        }
        None => (ErrorKind::Connection, "cannot be reached"),
    }
}

/// Returns the HTTP status of an answer that is an error.
fn status(cause: &(dyn StdError + 'static)) -> Option<u16> {
    match cause.downcast_ref() {
        Some(StreamableHttpError::<reqwest::Error>::HttpStatus(error)) => Some(error.status),
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
        cause.downcast_ref::<StreamableHttpError<reqwest::Error>>(),
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
