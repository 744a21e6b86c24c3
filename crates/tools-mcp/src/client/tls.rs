use std::sync::Arc;

use advisor_core::{Error, Result};
use reqwest::redirect::Policy;
use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt;

/// Creates an HTTP client with rustls and ring. The process-wide provider of rustls is neither needed nor set.
pub(super) fn http_client() -> Result<reqwest::Client> {
    // A redirect would send the headers, and so the keys, to another place.
    let client =
        reqwest::Client::builder().redirect(Policy::none()).tls_backend_preconfigured(rustls_config()?);
    client.build().map_err(|error| broken(error.without_url()))
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
