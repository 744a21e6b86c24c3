use advisor_core::ErrorKind;

use super::*;

#[test]
fn the_path_follows_the_base_url() {
    let plain = Endpoint::ChatCompletions;
    let azure = Endpoint::AzureDeployment { api_version: "2024-10-21".into() };
    let cases = [
        ("https://api.openai.com/v1", &plain, "https://api.openai.com/v1/chat/completions"),
        ("https://api.openai.com/v1/", &plain, "https://api.openai.com/v1/chat/completions"),
        (" http://127.0.0.1:8080 ", &plain, "http://127.0.0.1:8080/chat/completions"),
        ("https://x.example/v1/chat/completions", &plain, "https://x.example/v1/chat/completions"),
        ("https://x.example/v1?key=k", &plain, "https://x.example/v1/chat/completions?key=k"),
        (
            "https://r.openai.azure.com",
            &azure,
            "https://r.openai.azure.com/openai/deployments/my%20gpt/chat/completions?api-version=2024-10-21",
        ),
        (
            "https://gateway.example/azure/?a=b",
            &azure,
            "https://gateway.example/azure/openai/deployments/my%20gpt/chat/completions?a=b&api-version=2024-10-21",
        ),
    ];
    for (base_url, endpoint, expected) in cases {
        assert_eq!(of(base_url, "my gpt", endpoint).expect(base_url).to_string(), expected);
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
        let error = of(base_url, "m", &Endpoint::ChatCompletions).expect_err(base_url);
        assert_eq!(error.kind(), ErrorKind::Configuration, "{base_url}");
        assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
        assert!(!host(base_url).contains("canary:canary"), "{base_url}");
    }
    assert_eq!(host("https://u:p@x.example:8443/secret?key=1"), "x.example:8443");
    assert_eq!(host("https://x.example"), "x.example");
}

#[test]
fn law_r3_secret_headers_are_marked() {
    let key = SecretString::from("sk-canary");
    let own = [("X-Own".to_owned(), SecretString::from("canary-own"))];
    for (authorization, name, value) in [
        (Authorization::Bearer, "authorization", "Bearer sk-canary"),
        (Authorization::ApiKeyHeader, "api-key", "sk-canary"),
    ] {
        let headers = headers(&own, Some(&key), authorization).expect("headers");
        assert_eq!(headers.get(name).and_then(|value| value.to_str().ok()), Some(value));
        assert_eq!(headers.get("x-own").and_then(|value| value.to_str().ok()), Some("canary-own"));
        assert!(!format!("{headers:?}").contains("canary"), "{headers:?}");
    }
    let none = headers(&[], None, Authorization::Bearer).expect("headers");
    assert!(!none.contains_key("authorization"));
}

#[test]
fn law_r3_headers_that_cannot_be_sent_are_not_shown() {
    let bad = SecretString::from("canary\n");
    for result in [
        headers(&[], Some(&bad), Authorization::Bearer),
        headers(&[("x".to_owned(), bad.clone())], None, Authorization::Bearer),
        headers(&[("a b".to_owned(), SecretString::from("canary"))], None, Authorization::Bearer),
    ] {
        let error = result.expect_err("bad");
        assert_eq!(error.kind(), ErrorKind::Configuration);
        assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
    }
}
