use axum::http::{HeaderMap, header};

/// Checks whether a request names this machine as its host.
///
/// A server without tokens serves this machine only. A page of another site could reach it by a name that resolves to
/// the loopback address. Such a request has that name as its host.
pub(crate) fn is_local(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(header::HOST).and_then(|host| host.to_str().ok()) else { return true };
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
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
    fn only_names_of_this_machine_are_local() {
        let local = |host: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, host.parse().unwrap());
            is_local(&headers)
        };
        assert!(
            ["localhost", "LOCALHOST:80", "127.0.0.1:8080", "[::1]:80", "127.9.9.9"].map(local) == [true; 5]
        );
        assert!(["example.org", "localhost.example.org", "10.0.0.1", "[::2]", ""].map(local) == [false; 5]);
        assert!(is_local(&HeaderMap::new()), "HTTP/1.0 has no host");
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
