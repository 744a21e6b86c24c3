//! The TLS backend of the transport: selected by this crate's features, without changing state outside this crate.

use http::Uri;
use reqwest::ClientBuilder;

use super::TransportError;

/// Selects the backend of the enabled features: `native-tls`, else `rustls-aws-lc`, else `rustls-ring`, else none.
pub(super) fn choose(builder: ClientBuilder) -> Result<ClientBuilder, TransportError> {
    #[cfg(feature = "native-tls")]
    let builder = builder.tls_backend_native();
    #[cfg(all(not(feature = "native-tls"), any(feature = "rustls-aws-lc", feature = "rustls-ring")))]
    let builder = builder.tls_backend_preconfigured(
        rustls_config::shared().map_err(|error| TransportError::Other { source: error.into() })?,
    );
    Ok(builder)
}

/// Rejects `https://` in a build without TLS, with a message that names the remedy.
pub(super) fn check(uri: &Uri) -> Result<(), TransportError> {
    let without_tls =
        cfg!(not(any(feature = "native-tls", feature = "rustls-aws-lc", feature = "rustls-ring")));
    if without_tls && uri.scheme() == Some(&http::uri::Scheme::HTTPS) {
        let source = "this build has no TLS, so it cannot speak https: switch on one of the features `rustls-ring`, \
            `rustls-aws-lc` and `native-tls` of the provider, or use an http:// address";
        return Err(TransportError::Other { source: source.into() });
    }
    Ok(())
}

#[cfg(all(not(feature = "native-tls"), any(feature = "rustls-aws-lc", feature = "rustls-ring")))]
pub(super) mod rustls_config {
    //! One rustls configuration per process with an explicit crypto provider. rustls' process-wide default
    //! provider is neither needed nor set.

    use std::sync::{Arc, OnceLock};

    #[cfg(feature = "rustls-aws-lc")]
    pub(in crate::transport) use rustls::crypto::aws_lc_rs as provider;
    #[cfg(not(feature = "rustls-aws-lc"))]
    pub(in crate::transport) use rustls::crypto::ring as provider;

    use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
    use rustls::crypto::CryptoProvider;
    use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
    use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
    use rustls_platform_verifier::Verifier;

    /// Returns the configuration that all transports of the process share, including its session cache.
    pub(super) fn shared() -> Result<ClientConfig, Error> {
        static SHARED: OnceLock<ClientConfig> = OnceLock::new();
        if let Some(config) = SHARED.get() {
            return Ok(config.clone());
        }
        let provider = Arc::new(provider::default_provider());
        let verifier = LazyVerifier { provider: Arc::clone(&provider), loaded: OnceLock::new() };
        let config = with_verifier(provider, Arc::new(verifier))?;
        Ok(SHARED.get_or_init(|| config).clone())
    }

    pub(in crate::transport) fn with_verifier(
        provider: Arc<CryptoProvider>,
        verifier: Arc<dyn ServerCertVerifier>,
    ) -> Result<ClientConfig, Error> {
        Ok(ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth())
    }

    /// The operating system's verifier, created when the first certificate is checked. Reading the system's roots
    /// takes milliseconds, which a process that only uses http:// to a local server need not spend. Without roots,
    /// no certificate is accepted.
    #[derive(Debug)]
    struct LazyVerifier {
        provider: Arc<CryptoProvider>,
        loaded: OnceLock<Result<Verifier, Error>>,
    }

    impl LazyVerifier {
        fn load(&self) -> Result<&Verifier, Error> {
            let loaded = self.loaded.get_or_init(|| Verifier::new(Arc::clone(&self.provider)));
            loaded.as_ref().map_err(Error::clone)
        }
    }

    impl ServerCertVerifier for LazyVerifier {
        fn verify_server_cert(
            &self,
            end_entity: &CertificateDer<'_>,
            intermediates: &[CertificateDer<'_>],
            server_name: &ServerName<'_>,
            ocsp_response: &[u8],
            now: UnixTime,
        ) -> Result<ServerCertVerified, Error> {
            self.load()?.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
        }

        fn verify_tls12_signature(
            &self,
            message: &[u8],
            cert: &CertificateDer<'_>,
            signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            self.load()?.verify_tls12_signature(message, cert, signature)
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            cert: &CertificateDer<'_>,
            signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            self.load()?.verify_tls13_signature(message, cert, signature)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.provider.signature_verification_algorithms.supported_schemes()
        }
    }
}
