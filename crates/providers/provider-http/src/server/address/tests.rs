//! Tests of `server::address`.

use advisor_core::ErrorKind;

use super::*;

#[test]
fn paths_follow_the_base_url() {
    let cases = [
        ("https://x.example/v1", "/chat/completions", &[][..], "https://x.example/v1/chat/completions"),
        ("https://x.example/v1/", "/chat/completions", &[], "https://x.example/v1/chat/completions"),
        (" http://127.0.0.1:8080 ", "/chat/completions", &[], "http://127.0.0.1:8080/chat/completions"),
        (
            "https://x.example/v1/chat/completions",
            "/chat/completions",
            &[],
            "https://x.example/v1/chat/completions",
        ),
        (
            "https://x.example/v1?key=k",
            "/chat/completions",
            &[],
            "https://x.example/v1/chat/completions?key=k",
        ),
        (
            "https://gateway.example/azure/?a=b",
            "/openai/deployments/my%20gpt/chat/completions",
            &[("api-version", "2024 10")],
            "https://gateway.example/azure/openai/deployments/my%20gpt/chat/completions?a=b&api-version=2024%2010",
        ),
        ("https://x.example?", "/v1/messages", &[("a", "b")], "https://x.example/v1/messages?a=b"),
        // A version that both have appears once.
        ("https://x.example", "/v1/messages", &[], "https://x.example/v1/messages"),
        ("https://x.example/v1", "/v1/messages", &[], "https://x.example/v1/messages"),
        ("https://x.example/proxy/v1/", "/v1/messages", &[], "https://x.example/proxy/v1/messages"),
        ("https://x.example/v1beta", "/v1/messages", &[], "https://x.example/v1beta/v1/messages"),
        ("https://x.example/chat", "/chat/completions", &[], "https://x.example/chat/chat/completions"),
    ];
    for (base_url, path, query, expected) in cases {
        assert_eq!(join(base_url, path, query).expect(base_url).to_string(), expected);
    }
}

#[test]
fn law_r3_unusable_base_url_is_not_shown() {
    for base_url in [
        "",
        "canary",
        "canary.example/v1",
        "ftp://canary.example/v1",
        "https://canary:canary@x.example/v1",
        "https://canary@x.example/v1",
        "https://x.example/canary canary",
        "https:///canary",
    ] {
        let error = join(base_url, "/x", &[]).expect_err(base_url);
        assert_eq!(error.kind(), ErrorKind::Configuration, "{base_url}");
        assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
        assert!(!host(base_url).contains("canary:canary"), "{base_url}");
    }
    assert_eq!(host("https://u:p@x.example:8443/secret?key=1"), "x.example:8443");
    assert_eq!(host("https://x.example"), "x.example");
}
