//! Tests of `replay::request`.

use super::*;
use serde_json::json;

async fn read(bytes: &[u8]) -> io::Result<Incoming> {
    read_request(&mut &bytes[..], &mut BytesMut::new()).await
}

async fn refusal(bytes: &[u8]) -> String {
    let error = read(bytes).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{error}");
    error.to_string()
}

#[tokio::test]
async fn method_path_headers_and_body_are_kept() {
    let incoming =
        read(b"POST /v1/chat?x=1 HTTP/1.1\r\nContent-Length: 9\r\nX-A: 1\r\nx-a:  2 \r\n\r\n{\"a\": 17}")
            .await
            .unwrap();
    let request = incoming.request;
    assert_eq!(request.method, Method::POST);
    assert_eq!(request.path, "/v1/chat?x=1");
    assert_eq!(request.header("Content-Length"), Some("9"));
    let values: Vec<_> = request.headers.get_all("x-a").iter().collect();
    assert_eq!(values, ["1", "2"]);
    assert_eq!(request.json().unwrap(), json!({"a": 17}));
    assert!(!incoming.close);
}

#[tokio::test]
async fn pipelined_requests_are_separated_at_any_split() {
    let first = b"POST /1 HTTP/1.1\r\ncontent-length: 3\r\n\r\nabc";
    let second = b"POST /2 HTTP/1.1\r\ncontent-length: 2\r\n\r\nde";
    let third = b"GET /3 HTTP/1.1\r\n\r\n";
    let whole = [&first[..], second, third].concat();
    for (left, right) in (0..=whole.len()).map(|at| whole.split_at(at)) {
        let mut input = left.chain(right);
        let mut buffer = BytesMut::new();
        let mut bodies = Vec::new();
        for path in ["/1", "/2", "/3"] {
            let request = read_request(&mut input, &mut buffer).await.unwrap().request;
            assert_eq!(request.path, path, "cut at {}", left.len());
            bodies.push(request.body);
        }
        assert_eq!(bodies, ["abc", "de", ""], "cut at {}", left.len());
        let end = read_request(&mut input, &mut buffer).await;
        assert_eq!(end.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}

#[tokio::test]
async fn client_disconnect_is_detected_at_every_byte() {
    let whole = b"POST /2 HTTP/1.1\r\ncontent-length: 2\r\n\r\nde";
    assert!(read(whole).await.is_ok());
    for end in 0..whole.len() {
        let outcome = read(&whole[..end]).await;
        assert_eq!(outcome.unwrap_err().kind(), io::ErrorKind::UnexpectedEof, "{end} bytes");
    }
}

#[tokio::test]
async fn the_client_says_whether_to_close() {
    for (request, close) in [
        ("GET / HTTP/1.1\r\n\r\n", false),
        ("GET / HTTP/1.1\r\nconnection: Keep-Alive\r\n\r\n", false),
        ("GET / HTTP/1.1\r\nConnection: Close\r\n\r\n", true),
    ] {
        assert_eq!(read(request.as_bytes()).await.unwrap().close, close, "{request}");
    }
}

#[tokio::test]
async fn malformed_request_is_refused_with_reason() {
    for (bytes, why) in [
        ("hello\r\n\r\n", "`hello` is no request line"),
        ("GET / HTTP/1.1 x\r\n\r\n", "`GET / HTTP/1.1 x` is no request line"),
        ("GET / HTTP/2\r\n\r\n", "`HTTP/2` is not HTTP/1.1"),
        ("G=T / HTTP/1.1\r\n\r\n", "`G=T` is no method"),
        ("GET / HTTP/1.1\r\nfoo\r\n\r\n", "a header line has no name"),
        ("GET / HTTP/1.1\r\ncontent-length: x\r\n\r\n", "`x` is no length"),
        ("GET / HTTP/1.1\r\ncontent-length: 99999999999\r\n\r\n", "the body is too large"),
        (
            "GET / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n",
            "the body has no `content-length`; send it whole",
        ),
    ] {
        assert_eq!(refusal(bytes.as_bytes()).await, why);
    }
    assert_eq!(refusal(b"\xff\r\n\r\n").await, "the head is not UTF-8");
    let endless = [b'a'; LARGEST_HEAD + 10_000];
    assert_eq!(refusal(&endless).await, "the head is too large");
}

#[tokio::test]
async fn keys_are_in_no_debug_output() {
    for name in ["Authorization", "API-Key", "x-api-key", "Cookie"] {
        let bytes = format!("GET / HTTP/1.1\r\n{name}: canary\r\n\r\n");
        let request = read(bytes.as_bytes()).await.unwrap().request;
        assert_eq!(request.header(name), Some("canary"));
        assert!(!format!("{request:?}").contains("canary"), "{request:?}");
    }
}
