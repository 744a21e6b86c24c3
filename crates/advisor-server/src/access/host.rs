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

/// Checks whether a browser says that a page of another site, or of another port, sends the request.
///
/// Such a page cannot read answers, but it could send a request without a body.
pub(crate) fn is_foreign(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site").map(|site| site.as_bytes());
    site.is_some_and(|site| !matches!(site, b"same-origin" | b"none"))
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
}
