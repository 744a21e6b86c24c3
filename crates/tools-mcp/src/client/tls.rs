//! The HTTP client: rustls with ring, no redirects.

use std::net::IpAddr;
use std::sync::Arc;

use advisor_core::{Error, Result};
use reqwest::Url;
use reqwest::redirect::Policy;
use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt;

/// Creates an HTTP client for requests to one address, with rustls and ring. The process-wide provider of rustls is neither
/// needed nor set. A server on this machine, which a proxy would not find, is asked without one.
pub(super) fn http_client(url: &str) -> Result<reqwest::Client> {
    // A redirect would send the headers, and so the keys, to another place.
    let client =
        reqwest::Client::builder().redirect(Policy::none()).tls_backend_preconfigured(rustls_config()?);
    let client = if is_local(url) { client.no_proxy() } else { client };
    client.build().map_err(|error| broken(error.without_url()))
}

/// Checks whether requests to an address cross a network without encryption.
pub(super) fn is_open(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| url.scheme() == "http") && !is_local(url)
}

/// Checks whether an address has parts that may be secret: a user, or a query.
pub(super) fn has_secrets(url: &str) -> bool {
    Url::parse(url)
        .is_ok_and(|url| url.query().is_some() || !url.username().is_empty() || url.password().is_some())
}

/// Checks whether an address is on this machine.
fn is_local(url: &str) -> bool {
    let Ok(url) = Url::parse(url) else { return false };
    let host = url.host_str().unwrap_or_default();
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let address = address.parse::<IpAddr>().map(|address| address.to_canonical());
    // A connection to the unspecified address goes to this machine.
    host.strip_suffix('.').unwrap_or(host) == "localhost"
        || address.is_ok_and(|address| address.is_loopback() || address.is_unspecified())
}

fn rustls_config() -> Result<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(broken)?.with_platform_verifier().map_err(broken)?;
    Ok(config.with_no_client_auth())
}

fn broken(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::configuration("the HTTP client of an MCP server cannot be created").with_source(error)
}
