//! `AllowedOrigins`: the sites whose pages may read answers. Whether a request names this machine, and whether a page of
//! another site sends it.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use advisor_core::Error;
use axum::http::request::Parts;
use axum::http::uri::{Authority, Uri};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Version, header};
use tower_http::cors::{AllowHeaders, CorsLayer};

use crate::refusal::X_SHOULD_RETRY;

/// The time for which a browser may remember that a request is allowed.
const REMEMBERED: Duration = Duration::from_secs(600);

/// The headers of answers that pages may read, beside those that every page may read.
const EXPOSED: [HeaderName; 6] = [
    HeaderName::from_static("x-conversation-id"),
    HeaderName::from_static("x-turn-id"),
    HeaderName::from_static("x-request-id"),
    HeaderName::from_static("request-id"),
    header::RETRY_AFTER,
    X_SHOULD_RETRY,
];

/// The origins of other sites whose pages may send requests and read the answers (CORS).
///
/// A page still needs a token if the server has tokens. Browsers send such a page's requests without cookies, so a session
/// of the application does not work from there.
///
/// # Example
/// ```
/// use advisor_server::AllowedOrigins;
///
/// assert!(AllowedOrigins::new(["https://chat.example.org", "http://localhost:5173"]).is_ok());
/// assert!(AllowedOrigins::new(["*"]).is_err());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedOrigins(Arc<[HeaderValue]>);

impl AllowedOrigins {
    /// Checks the origins: each has a scheme, a host and perhaps a port, as browsers send it.
    ///
    /// # Errors
    /// For a text that no browser sends as an origin, such as one with a path, a slash at its end, or `*`.
    pub fn new<'a>(origins: impl IntoIterator<Item = &'a str>) -> Result<Self, Error> {
        origins.into_iter().map(origin).collect::<Result<_, _>>().map(Self)
    }

    /// Checks whether a page of one of these origins sends the request.
    pub(crate) fn sent(&self, headers: &HeaderMap) -> bool {
        headers.get(header::ORIGIN).is_some_and(|origin| self.0.contains(origin))
    }

    /// Returns the layer that answers browsers, if there is an origin.
    pub(crate) fn layer(&self) -> Option<CorsLayer> {
        let layer = CorsLayer::new()
            .allow_origin(self.0.to_vec())
            .allow_methods([Method::GET, Method::POST, Method::DELETE])
            // The libraries of providers send headers of their own, which no list has.
            .allow_headers(AllowHeaders::mirror_request())
            .expose_headers(EXPOSED)
            .max_age(REMEMBERED);
        (!self.0.is_empty()).then_some(layer)
    }
}

fn origin(text: &str) -> Result<HeaderValue, Error> {
    let invalid = || {
        Error::configuration(format!(
            "`{text}` is not an origin: write a scheme, a host and perhaps a port in small letters, such as \
             `https://chat.example.org`"
        ))
    };
    let uri: Uri = text.parse().map_err(|_| invalid())?;
    let (Some(scheme @ ("http" | "https")), Some(host)) = (uri.scheme_str(), uri.authority()) else {
        return Err(invalid());
    };
    // A browser's text has nothing else. `Uri` adds a path.
    match text == format!("{scheme}://{host}") && text == text.to_ascii_lowercase() && !text.contains('@') {
        true => HeaderValue::from_str(text).map_err(|_| invalid()),
        false => Err(invalid()),
    }
}

/// Checks whether a request names this machine as its host.
///
/// A server without tokens serves this machine only. A page of another site could reach it by a name that resolves to
/// the loopback address. Such a request has that name as its host, or in its target. Only before HTTP/1.1 there may be no
/// host.
pub(crate) fn is_local(request: &Parts) -> bool {
    let mut hosts = request.headers.get_all(header::HOST).iter();
    let (host, target) = (hosts.next(), request.uri.authority());
    let is_named = host.is_some() || target.is_some() || request.version < Version::HTTP_11;
    let host = host.is_none_or(|host| Authority::try_from(host.as_bytes()).is_ok_and(|host| is_this(&host)));
    is_named && host && hosts.next().is_none() && target.is_none_or(is_this)
}

/// Checks whether a proxy forwards the request from another machine. A proxy on this machine may name this machine as the
/// host.
pub(crate) fn is_forwarded(headers: &HeaderMap) -> bool {
    let values = |name: &str| {
        let texts = headers.get_all(name).iter().map(|value| value.to_str().unwrap_or_default());
        texts.flat_map(|text| text.split(',').map(str::trim)).collect::<Vec<_>>()
    };
    let is_this_machine = |name: &&str| Authority::try_from(*name).is_ok_and(|name| is_this(&name));
    let is_loopback = |address: &&str| {
        address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback()) || is_this_machine(address)
    };
    headers.contains_key(header::FORWARDED)
        || !["x-forwarded-for", "x-real-ip"]
            .iter()
            .flat_map(|name| values(name))
            .all(|from| is_loopback(&from))
        || !values("x-forwarded-host").iter().all(is_this_machine)
}

/// Checks whether an authority names this machine.
fn is_this(authority: &Authority) -> bool {
    let name = authority.host();
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    let is_loopback = address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    !authority.as_str().contains('@') && (is_loopback || name.eq_ignore_ascii_case("localhost"))
}

/// Checks whether a page of another site, or of another port, sends the request.
///
/// Such a page cannot read answers, but it could send a request without a body. Browsers name the relation of the sites
/// to addresses with TLS and to this machine only. Elsewhere, the origin of the page is not the host of the request.
pub(crate) fn is_foreign(headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).map(|value| value.as_bytes());
    match (text("sec-fetch-site"), text(header::ORIGIN.as_str())) {
        (Some(site), _) => !matches!(site, b"same-origin" | b"none"),
        (None, Some(origin)) => !is_origin_of(origin, text(header::HOST.as_str()).unwrap_or_default()),
        // No browser, or a request that changes nothing.
        (None, None) => false,
    }
}

/// Checks whether an origin, such as `https://a.example`, is that of a host.
fn is_origin_of(origin: &[u8], host: &[u8]) -> bool {
    let authority = [&b"http://"[..], b"https://"].iter().find_map(|scheme| origin.strip_prefix(*scheme));
    authority.is_some_and(|authority| authority.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_browsers_send_is_an_origin() {
        for good in ["https://chat.example.org", "http://localhost:5173", "http://[::1]:80"] {
            assert!(AllowedOrigins::new([good]).is_ok(), "{good}");
        }
        let bad = [
            "", "*", "null", "chat.example.org", "https://", "https://a.org/", "https://a.org/b",
            "ftp://a.org", "https://A.org", "https://me@a.org", "https://a.org?b", "https://a b.org",
            "HTTPS://a.org",
        ];
        for bad in bad {
            assert!(AllowedOrigins::new([bad]).is_err(), "{bad}");
        }
    }
}

#[cfg(test)]
mod host_tests {
    use axum::http::Request;

    use super::*;

    #[test]
    fn only_names_of_this_machine_are_local() {
        let request = |version: Version, target: &str, hosts: &[&[u8]]| {
            let mut request = Request::get(target).version(version);
            for host in hosts {
                request = request.header(header::HOST, *host);
            }
            is_local(&request.body(()).unwrap().into_parts().0)
        };
        let local = |host: &str| request(Version::HTTP_11, "/", &[host.as_bytes()]);
        assert!(
            ["localhost", "LOCALHOST:80", "127.0.0.1:8080", "[::1]:80", "127.9.9.9"].map(local) == [true; 5]
        );
        assert!(["example.org", "localhost.example.org", "10.0.0.1", "[::2]", ""].map(local) == [false; 5]);
        assert!(["[::1", "::1]", "me@localhost", "localhost/a", "local host"].map(local) == [false; 5]);
        assert!(request(Version::HTTP_10, "/", &[]), "HTTP/1.0 has no host");
        assert!(!request(Version::HTTP_11, "/", &[]));
        assert!(!request(Version::HTTP_11, "/", &[b"localhost", b"localhost"]), "two hosts");
        assert!(!request(Version::HTTP_11, "/", &[b"\xe9vil.example"]), "no ASCII");
        assert!(!request(Version::HTTP_11, "http://example.org/", &[b"localhost"]), "an absolute target");
        assert!(request(Version::HTTP_11, "http://localhost/", &[b"localhost"]));
        assert!(request(Version::HTTP_2, "http://localhost/", &[]), "HTTP/2 has an authority");
    }

    #[test]
    fn requests_of_other_machines_through_a_proxy_are_forwarded() {
        let forwarded = |name: &'static str, values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(name, value.parse().unwrap());
            }
            is_forwarded(&headers)
        };
        assert!(!forwarded("host", &["localhost"]));
        assert!(
            !forwarded("x-forwarded-for", &["127.0.0.1", "::1, 127.0.0.1:5000"]),
            "a proxy of this machine's user"
        );
        assert!(!forwarded("x-forwarded-host", &["localhost:8080"]));
        for values in [
            &["203.0.113.5"][..],
            &["127.0.0.1, 203.0.113.5"],
            &["127.0.0.1", "203.0.113.5"],
            &["unknown"],
            &[""],
        ] {
            assert!(forwarded("x-forwarded-for", values) && forwarded("x-real-ip", values), "{values:?}");
        }
        assert!(forwarded("x-forwarded-host", &["chat.example.org"]));
        assert!(forwarded("forwarded", &["for=203.0.113.5;host=localhost"]));
    }

    #[test]
    fn pages_of_other_origins_are_foreign() {
        let foreign = |site: Option<&str>, origin: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, "chat.example:8080".parse().unwrap());
            site.into_iter().for_each(|site| drop(headers.insert("sec-fetch-site", site.parse().unwrap())));
            origin
                .into_iter()
                .for_each(|origin| drop(headers.insert(header::ORIGIN, origin.parse().unwrap())));
            is_foreign(&headers)
        };
        assert!(!foreign(None, None), "no browser");
        assert!(!foreign(Some("same-origin"), None) && !foreign(Some("none"), None));
        assert!(
            foreign(Some("same-site"), None) && foreign(Some("cross-site"), Some("http://chat.example:8080"))
        );
        assert!(
            !foreign(None, Some("http://chat.example:8080"))
                && !foreign(None, Some("https://Chat.example:8080"))
        );
        for other in ["http://a.example", "http://chat.example", "http://chat.example:80", "null", ""] {
            assert!(foreign(None, Some(other)), "{other}");
        }
    }
}
