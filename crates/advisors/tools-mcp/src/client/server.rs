//! `McpServer`: the way to reach a server, and the settings of its tools.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use advisor_core::{Error, Result, Text};
use futures::future::BoxFuture;
use http::{HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::process::Command;

use super::McpTools;
use super::http_client::{has_secrets, is_open};

/// A byte stream to a server.
pub(super) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Duplex for S {}

type OpenStream = dyn Fn() -> BoxFuture<'static, io::Result<Box<dyn Duplex>>> + Send + Sync;

/// The way to reach a server. Each connection begins with it.
pub(super) enum Address {
    Command(Box<dyn Fn() -> Command + Send + Sync>),
    Http(HttpAddress),
    Stream(Box<OpenStream>),
}

/// The address of a server over HTTP, and the headers of each request.
pub(super) struct HttpAddress {
    pub(super) url: Arc<str>,
    pub(super) bearer: Option<SecretString>,
    pub(super) headers: Vec<(String, SecretString)>,
}

impl HttpAddress {
    /// Returns the headers. Their values are marked as secret.
    pub(super) fn headers(&self) -> Result<HashMap<HeaderName, HeaderValue>> {
        let header = |(name, value): &(String, SecretString)| {
            let name: HeaderName = name.parse().ok()?;
            let mut value = HeaderValue::from_str(value.expose_secret()).ok()?;
            value.set_sensitive(true);
            Some((name, value))
        };
        let headers: Option<HashMap<_, _>> = self.headers.iter().map(header).collect();
        headers.ok_or_else(|| {
            Error::configuration("a header of an MCP server has a name or value that HTTP does not allow")
        })
    }

    /// Returns the address and its parts that may be keys, the token and the values of headers.
    fn secrets(&self) -> impl Iterator<Item = &str> {
        let sent = self.bearer.iter().chain(self.headers.iter().map(|(_, value)| value));
        std::iter::once(&*self.url)
            .chain(address_parts(&self.url))
            .chain(sent.map(ExposeSecret::expose_secret))
    }
}

/// Returns the parts of an address that are long enough to be keys, and not its host.
fn address_parts(url: &str) -> impl Iterator<Item = &str> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (authority, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let user = authority.rsplit_once('@').map_or("", |(user, _)| user);
    let (path, query) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
    let user = std::iter::once(user).chain(user.split(':'));
    let query = std::iter::once(query).chain(query.split(['?', '&', '#', '=']));
    let path = path.split('/').filter(|segment| segment.len() >= 16);
    user.chain(query).filter(|part| part.len() >= 6).chain(path)
}

/// The settings of a server's tools.
pub(super) struct Settings {
    pub(super) name: String,
    pub(super) prefix: String,
    pub(super) filter: Box<dyn Fn(&str) -> bool + Send + Sync>,
    pub(super) annotations: Annotations,
    pub(super) timeout: Duration,
}

/// The meaning of a server's statements about the effects of its tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Annotations {
    Ignored,
    Trusted,
}

/// An MCP server: the way to reach it, and the treatment of its tools.
///
/// [`connect`](Self::connect) returns the tools. If the server disappears later, their next use connects again.
///
/// # Example
/// ```no_run
/// use tokio::process::Command;
/// use tools_mcp::McpServer;
///
/// # async fn connect() -> advisor_core::Result<()> {
/// let files = McpServer::from_command(|| {
///     let mut command = Command::new("npx");
///     command.args(["@modelcontextprotocol/server-filesystem", "/srv/documents"]);
///     command
/// })
/// .with_name("files")
/// .with_prefix("files_")
/// .with_filter(|name| name.starts_with("read_"))
/// .connect()
/// .await?;
/// println!("{:?}", files.tools().await?);
/// # Ok(()) }
/// ```
#[must_use]
pub struct McpServer {
    pub(super) address: Address,
    pub(super) settings: Settings,
}

impl McpServer {
    fn new(address: Address) -> Self {
        let settings = Settings {
            name: String::from("mcp"),
            prefix: String::new(),
            filter: Box::new(|_| true),
            annotations: Annotations::Ignored,
            timeout: Duration::from_secs(60),
        };
        Self { address, settings }
    }

    /// Describes a server that `command` starts and that speaks over its standard input and output.
    ///
    /// Each connection starts a process. It ends with the connection, or is killed. Its standard error stays that of
    /// this process.
    pub fn from_command(command: impl Fn() -> Command + Send + Sync + 'static) -> Self {
        Self::new(Address::Command(Box::new(command)))
    }

    /// Describes a server at an address, over streamable HTTP.
    ///
    /// Redirects are not followed. Certificates are checked against the roots of the operating system. The proxies in the
    /// environment are used (`HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`), but never for a server on this machine.
    pub fn from_url(url: impl Into<Arc<str>>) -> Self {
        Self::new(Address::Http(HttpAddress { url: url.into(), bearer: None, headers: Vec::new() }))
    }

    /// Describes a server at the end of a stream, such as a socket. Each connection opens one.
    pub fn from_stream<S, F>(open: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
        F: Future<Output = io::Result<S>> + Send + 'static,
    {
        Self::new(Address::Stream(Box::new(move || {
            let opened = open();
            Box::pin(async move { Ok(Box::new(opened.await?) as Box<dyn Duplex>) })
        })))
    }

    /// Sends a token with each HTTP request, as `Authorization: Bearer`. Other servers ignore it.
    pub fn with_bearer(mut self, token: impl Into<SecretString>) -> Self {
        if let Address::Http(address) = &mut self.address {
            address.bearer = Some(token.into());
        }
        self
    }

    /// Sends a header with each HTTP request, such as a key. Other servers ignore it.
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<SecretString>) -> Self {
        if let Address::Http(address) = &mut self.address {
            address.headers.push((name.into(), value.into()));
        }
        self
    }

    /// Sets the name of the server in errors, plans and traces; `mcp` by default. Approvals of its tools are bound to the
    /// name, and to the URL or the command.
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.settings.name = name.into();
        self
    }

    /// Puts a text before the name of each tool.
    ///
    /// A name that providers refuse is changed: other characters become `_`, a long name is cut, and a short hash of
    /// the name follows. The same name always becomes the same.
    pub fn with_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.settings.prefix = prefix.into();
        self
    }

    /// Keeps only the tools for whose names `keep` returns true. It gets the names of the server, without the prefix.
    pub fn with_filter(mut self, keep: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.settings.filter = Box::new(keep);
        self
    }

    /// Believes the server's statements about its tools: `readOnlyHint` becomes
    /// [`Effect::Pure`](advisor_core::Effect::Pure), `idempotentHint` becomes
    /// [`Effect::Idempotent`](advisor_core::Effect::Idempotent).
    ///
    /// Without it, the effects of all tools are unknown, and no call is repeated.
    pub fn with_trusted_annotations(mut self) -> Self {
        self.settings.annotations = Annotations::Trusted;
        self
    }

    /// Sets the time in which the server must answer a call or report its progress, 60 seconds by default. It also
    /// bounds the list of tools.
    ///
    /// A call as a whole ends after 10 minutes, however often the server reports its progress, or when the tool loop ends it.
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout = timeout;
        self
    }

    /// Checks whether the token or a header crosses a network without encryption: the address begins with `http://`, and
    /// its host is not this machine.
    fn sends_secrets_unencrypted(&self) -> bool {
        let Address::Http(address) = &self.address else { return false };
        let has_key = address.bearer.is_some() || !address.headers.is_empty() || has_secrets(&address.url);
        is_open(&address.url) && has_key
    }

    /// Connects to the server and lists its tools.
    ///
    /// It logs a warning if the token or a header crosses a network without encryption: the address begins with `http://`,
    /// and its host is not this machine.
    ///
    /// # Cancellation
    /// Dropping the future closes the connection.
    ///
    /// # Errors
    /// Of kind `Connection`, `Timeout`, `Authentication` or `Protocol` if no connection begins or the list cannot be
    /// read. Of kind `TooLarge` for a long list.
    pub async fn connect(self) -> Result<McpTools> {
        if self.sends_secrets_unencrypted() {
            let server = self.settings.name.as_str();
            tracing::warn!(server, "the key goes to the server without encryption: use https://");
        }
        McpTools::connect(self).await
    }

    /// Returns a text that tells this server from others, the same in each process: the name, and a hash of the way to
    /// reach it, which may contain keys.
    pub(super) fn origin(&self) -> Text {
        let mut hash = Sha256::new();
        let mut add = |part: &[u8]| {
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        };
        match &self.address {
            Address::Http(address) => add(address.url.as_bytes()),
            Address::Command(command) => {
                let command = command();
                let command = command.as_std();
                let parts = std::iter::once(command.get_program()).chain(command.get_args());
                parts.for_each(|part| add(part.as_encoded_bytes()));
            }
            Address::Stream(_) => {}
        }
        let hash: String = hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        format!("{hash} {}", self.settings.name).into()
    }

    /// Replaces the secrets of this server by `…` in a text of the server.
    pub(super) fn redact(&self, text: &str) -> String {
        let Address::Http(address) = &self.address else { return text.to_owned() };
        let secrets = address.secrets().filter(|secret| !secret.is_empty());
        secrets.fold(text.to_owned(), |text, secret| text.replace(secret, "…"))
    }
}

/// Shows neither the address nor headers: both may contain keys.
impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.address {
            Address::Command(_) => "command",
            Address::Http(_) => "http",
            Address::Stream(_) => "stream",
        };
        f.debug_struct("McpServer")
            .field("name", &self.settings.name)
            .field("address", &kind)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origin_of_tools_tells_servers_apart_in_each_process() {
        let command = |program: &'static str, argument: &'static str| {
            McpServer::from_command(move || {
                let mut command = Command::new(program);
                command.arg(argument);
                command
            })
        };
        let url = |url: &str| McpServer::from_url(url).with_bearer("s3cret");
        let stream = || McpServer::from_stream(|| std::future::ready(Ok(tokio::io::empty())));
        let origins = || {
            let servers = [
                url("http://127.0.0.1/a?key=s3cret"),
                url("http://127.0.0.1/b?key=s3cret"),
                command("a", "b"),
                command("a", "c"),
                command("ab", ""),
                stream(),
                stream().with_name("a"),
            ];
            servers.map(|server| server.origin())
        };
        let first = origins();
        assert_eq!(first, origins());
        for (at, origin) in first.iter().enumerate() {
            assert!(!first[..at].contains(origin) && !origin.contains("s3cret"), "{origin}");
        }
    }

    #[test]
    fn secrets_over_plain_http_to_other_machines_are_noted() {
        for (url, is_noted) in [
            ("http://mcp.example.org/mcp", true),
            ("http://10.0.0.1/mcp", true),
            ("https://mcp.example.org/mcp", false),
            ("http://localhost:1/mcp", false),
            ("http://127.1:1/mcp", false),
            ("http://[::1]:1/mcp", false),
        ] {
            assert!(!McpServer::from_url(url).sends_secrets_unencrypted(), "{url}: there is no secret");
            assert_eq!(
                McpServer::from_url(url).with_bearer("t").sends_secrets_unencrypted(),
                is_noted,
                "{url}"
            );
            let with_header = McpServer::from_url(url).with_header("x-key", "k");
            assert_eq!(with_header.sends_secrets_unencrypted(), is_noted, "{url}");
        }
    }
}
