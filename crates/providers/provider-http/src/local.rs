//! Addresses on this machine.

use std::net::IpAddr;

use http::Uri;

/// Checks whether an address is on this machine: requests to it cross no network.
pub(crate) fn is_local(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default();
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let address = address.parse::<IpAddr>().map(|address| address.to_canonical());
    // A connection to the unspecified address goes to this machine.
    host.strip_suffix('.').unwrap_or(host).eq_ignore_ascii_case("localhost")
        || address.is_ok_and(|address| address.is_loopback() || address.is_unspecified())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_this_machine() {
        let is_local = |uri: &str| is_local(&uri.parse().unwrap());
        assert!(
            [
                "http://localhost:1/a", "http://LOCALHOST", "http://127.0.0.1:80", "http://127.1.2.3",
                "http://[::1]:1", "http://localhost.:1", "http://[::ffff:127.0.0.1]", "http://0.0.0.0:1"
            ]
            .iter()
            .all(|uri| is_local(uri))
        );
        assert!(
            !["http://localhost.example.org", "http://10.0.0.1", "http://[::2]", "https://a.example", "/a"]
                .iter()
                .any(|uri| is_local(uri))
        );
    }
}
