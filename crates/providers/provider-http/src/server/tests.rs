//! Tests of `server`.

use advisor_core::ErrorKind;

use super::*;

fn at(url: &str) -> Server {
    Server::new(format!("https://gateway.example/{url}"), Authorization::Bearer)
}

fn header<'a>(call: &'a Call, name: &str) -> Vec<&'a str> {
    call.headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect()
}

fn call(server: &Server) -> Result<Call> {
    server.call("/answer", &[], Bytes::new())
}

#[test]
fn headers_replace_their_namesakes() {
    let version = HeaderName::from_static("x-version");
    let mut server = at("v1")
        .with_api_key("key")
        .with_header("X-A", "one")
        .with_header("x-a", "two")
        .with_header("x-b", "three");
    server.api_headers.insert(version, HeaderValue::from_static("1"));
    let sent = call(&server).expect("a call");
    assert_eq!((header(&sent, "x-a"), header(&sent, "x-b")), (vec!["two"], vec!["three"]));
    assert_eq!((header(&sent, "x-version"), header(&sent, "authorization")), (vec!["1"], vec!["Bearer key"]));
    server.api_headers.insert(http::header::ACCEPT, HeaderValue::from_static("application/x-ndjson"));
    let server = server.with_header("x-version", "2").with_header("authorization", "Token t");
    let sent = call(&server).expect("a call");
    assert_eq!((header(&sent, "x-version"), header(&sent, "authorization")), (vec!["2"], vec!["Token t"]));
    assert_eq!(header(&sent, "accept"), ["application/x-ndjson"]);
}

#[test]
fn law_r3_secret_headers_are_marked() {
    let key = HeaderName::from_static("x-api-key");
    for (authorization, name, value) in [
        (Authorization::Bearer, "authorization", "Bearer sk-canary"),
        (Authorization::Header(key), "x-api-key", "sk-canary"),
    ] {
        let server = Server { authorization, ..at("v1") };
        assert!(!call(&server).expect("a call").headers.contains_key(name));
        let sent =
            call(&server.with_api_key("sk-canary").with_header("X-Own", "canary-own")).expect("a call");
        assert_eq!((header(&sent, name), header(&sent, "x-own")), (vec![value], vec!["canary-own"]));
        assert!(!format!("{:?}", sent.headers).contains("canary"), "{:?}", sent.headers);
    }
}

#[test]
fn law_r3_headers_that_cannot_be_sent_are_not_shown() {
    for server in [
        at("v1").with_api_key("canary\n"),
        at("v1").with_header("x", "canary\n"),
        at("v1").with_header("a b", "canary"),
    ] {
        let error = server.validate().expect_err("bad");
        assert_eq!(error.kind(), ErrorKind::Configuration);
        assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
    }
}

#[test]
fn law_r3_key_used_as_header_name_is_hidden() {
    let mixed_up = at("v1").with_header("Bearer sk-0123456789abcdef", "authorization");
    let error = mixed_up.validate().expect_err("no such name");
    assert_eq!(error.to_string(), "`Bearer [secret]` is no name for a header");
}

/// The first request creates the redaction, and clones share it.
#[test]
fn law_r3_changed_server_copy_knows_its_own_secrets() {
    let server = at("v1").with_api_key("sk-first-key-0123456789");
    let known = |server: &Server| server.redaction.get().is_some();
    server.redaction();
    assert!(known(&server.clone()) && known(&Server { retries: Backoff::none(), ..server.clone() }));
    assert!(!known(&server.clone().with_api_key("sk-second-key-0123456789")));
    assert!(!known(&server.clone().with_header("x-key", "canary-header-0123")));
    assert!(!known(&server.with_base_url("https://host.example/canary-part-0123")));
}

#[test]
fn transport_is_shared_until_connect_timeout_changes() {
    let server = at("v1");
    let place = |server: &Server| {
        server.transport().expect("a transport");
        Arc::as_ptr(&server.reqwest)
    };
    assert_eq!(place(&server), place(&server.clone()));
    let timeouts = Timeouts { idle_timeout: None, ..Timeouts::default() };
    assert_eq!(place(&server), place(&server.clone().with_timeouts(timeouts)));
    let others = Timeouts { connect_timeout: None, ..timeouts };
    assert_ne!(place(&server), place(&server.clone().with_timeouts(others)));
}

#[test]
fn law_r3_debug_shows_host_and_no_secret() {
    let server =
        Server::new("https://canary:canary@host.example:8443/canary?key=canary", Authorization::Bearer)
            .with_api_key("canary")
            .with_header("x", "canary");
    let shown = format!("{server:?}");
    assert!(!shown.contains("canary"), "{shown}");
    assert!(shown.contains("host.example:8443"), "{shown}");
}

fn shown(server: &Server, words: &str) -> String {
    server.redaction().show(&words.into(), 2048)
}

#[test]
fn law_r3_values_in_headers_and_query_are_secret() {
    let server = at("v1/chat?key=abc%2Fdef%2B123456789&api-version=2024-10-21&canarywithoutequals")
        .with_api_key("key-0123456789")
        .with_header("Authorization", "Token tok-0123456789")
        .with_header("x-title", "Documentation Assistant");
    let words = "POST /v1/chat?key=abc%2Fdef%2B123456789&api-version=2024-10-21 abc/def+123456789 canarywithoutequals \
        key-0123456789 tok-0123456789 from Documentation Assistant; see the documentation for Assistants";
    assert_eq!(
        shown(&server, words),
        "POST /v1/chat?key=[secret]&api-version=2024-10-21 [secret] [secret] [secret] [secret] from [secret]; \
        see the documentation for Assistants"
    );
}

#[test]
fn key_over_plain_http_is_noticed_unless_it_stays_on_this_machine() {
    for (url, expected) in [
        ("http://llm.example/v1", true),
        ("http://10.0.0.1:8000", true),
        ("https://llm.example/v1", false),
        ("http://localhost:8080", false),
        ("http://127.0.0.1:8080", false),
        ("http://[::1]:8080", false),
        ("no URL", false),
    ] {
        let server = Server::new(url, Authorization::Bearer);
        assert!(!server.sends_secrets_unencrypted(), "{url}: there is no secret");
        assert_eq!(server.clone().with_api_key("key").sends_secrets_unencrypted(), expected, "{url}");
        assert_eq!(server.with_header("x-key", "key").sends_secrets_unencrypted(), expected, "{url}");
    }
    for (url, expected) in
        [("http://10.0.0.1/v1?key=k", true), ("http://u:p@10.0.0.1", true), ("http://[::1]/?key=k", false)]
    {
        assert_eq!(Server::new(url, Authorization::Bearer).sends_secrets_unencrypted(), expected, "{url}");
    }
}
