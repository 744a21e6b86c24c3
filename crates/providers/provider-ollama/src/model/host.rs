//! The forms of `OLLAMA_HOST`.

use std::net::Ipv6Addr;

/// The base URL of a server on this machine.
pub(super) const LOCAL: &str = "http://127.0.0.1:11434";

/// Returns the base URL for a value of `OLLAMA_HOST`, by Ollama's own rules.
///
/// The value is a host, a host and a port, a port after a colon, or a URL. Without a scheme the default port is 11434.
///
/// An address on which a server listens for all others, such as `0.0.0.0`, means this machine.
pub(super) fn base_url(value: &str) -> String {
    let value = value.trim().trim_matches(['"', '\'']).trim();
    match value.split_once("://") {
        None if value == "ollama.com" => "https://ollama.com".to_owned(),
        None => joined("http", value, ":11434"),
        Some((scheme, rest)) => joined(scheme, rest, ""),
    }
}

fn joined(scheme: &str, rest: &str, default_port: &str) -> String {
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (host, port) = if authority.parse::<Ipv6Addr>().is_ok() {
        (format!("[{authority}]"), "")
    } else {
        // The colons inside brackets are those of an address.
        let colon =
            authority.rfind(':').filter(|colon| !authority.get(*colon..).unwrap_or_default().contains(']'));
        let (host, port) =
            colon.and_then(|colon| authority.split_at_checked(colon)).unwrap_or((authority, ""));
        (host.to_owned(), port)
    };
    let host = match host.as_str() {
        "" | "0.0.0.0" => "127.0.0.1",
        "[::]" => "[::1]",
        host => host,
    };
    let port = if port.is_empty() { default_port } else { port };
    let slash = if path.is_empty() { "" } else { "/" };
    format!("{scheme}://{host}{port}{slash}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_host_is_understood() {
        let cases = [
            ("", LOCAL),
            (" ", LOCAL),
            ("localhost", "http://localhost:11434"),
            ("10.0.0.7:8080", "http://10.0.0.7:8080"),
            ("\"10.0.0.7:8080\"", "http://10.0.0.7:8080"),
            (":8080", "http://127.0.0.1:8080"),
            ("0.0.0.0", LOCAL),
            ("0.0.0.0:8080", "http://127.0.0.1:8080"),
            ("::1", "http://[::1]:11434"),
            ("[::1]", "http://[::1]:11434"),
            ("[::1]:8080", "http://[::1]:8080"),
            ("[::]:8080", "http://[::1]:8080"),
            ("::", "http://[::1]:11434"),
            ("models.example/ollama", "http://models.example:11434/ollama"),
            ("http://models.example", "http://models.example"),
            ("https://models.example", "https://models.example"),
            ("https://models.example:8443/ollama/", "https://models.example:8443/ollama/"),
            ("http://0.0.0.0:11434", LOCAL),
            ("ollama.com", "https://ollama.com"),
        ];
        for (value, expected) in cases {
            assert_eq!(base_url(value), expected, "{value}");
        }
    }
}
