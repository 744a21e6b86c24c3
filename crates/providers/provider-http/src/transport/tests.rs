//! Tests of `transport`.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use futures::StreamExt;
use futures::future::join;
use http::header::AUTHORIZATION;
use http::{Method, StatusCode};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;

mod http2;

const CHUNKED: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// A server scripted by the test, on one connection.
struct Peer<S>(S);

impl Peer<TcpStream> {
    async fn accept(listener: &TcpListener) -> Self {
        Self(listener.accept().await.expect("a connection").0)
    }

    /// Closes the connection with a reset.
    fn reset(self) {
        self.0.set_zero_linger().expect("a socket option");
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Peer<S> {
    /// Reads one request, whose body is `{}`.
    async fn request(&mut self) -> String {
        let mut read = Vec::new();
        while !read.ends_with(b"\r\n\r\n{}") {
            let mut buffer = [0; 1024];
            let count = self.0.read(&mut buffer).await.expect("the request");
            assert!(count > 0, "closed after {:?}", String::from_utf8_lossy(&read));
            read.extend_from_slice(&buffer[..count]);
        }
        String::from_utf8(read).expect("text").to_lowercase()
    }

    async fn write(&mut self, bytes: &str) {
        self.0.write_all(bytes.as_bytes()).await.expect("the client reads");
        self.0.flush().await.expect("the client reads");
    }

    async fn chunk(&mut self, data: &str) {
        self.write(&format!("{:x}\r\n{data}\r\n", data.len())).await;
    }

    /// Returns `true` once the client has closed the connection. Fails if the client sends anything more.
    async fn closed(&mut self) -> bool {
        match self.0.read(&mut [0; 64]).await {
            Ok(0) => true,
            Ok(_) => false,
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
        }
    }
}

async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    (listener, address)
}

fn transport() -> ReqwestTransport {
    ReqwestTransport::new(Some(Duration::from_secs(10))).expect("a transport")
}

fn post(url: impl AsRef<str>) -> Request<Bytes> {
    let body = Bytes::from_static(b"{}");
    Request::builder().method(Method::POST).uri(url.as_ref()).body(body).expect("a request")
}

async fn send(url: String) -> Response<ByteStream> {
    transport().send(post(url)).await.expect("a response")
}

async fn text(body: &mut ByteStream) -> String {
    let bytes = body.next().await.expect("not the end").expect("no error");
    String::from_utf8(bytes.to_vec()).expect("text")
}

async fn rest(mut body: ByteStream) -> Result<String, TransportError> {
    let mut read = Vec::new();
    while let Some(bytes) = body.next().await {
        read.extend_from_slice(&bytes?);
    }
    Ok(String::from_utf8(read).expect("text"))
}

/// Returns all text that an error could show.
fn everything_in(error: &TransportError) -> String {
    let mut shown = format!("{error:?} {error:#?} {error}");
    let mut source: Option<&dyn Error> = error.source();
    while let Some(error) = source {
        shown += &format!(" {error:?} {error}");
        source = error.source();
    }
    shown
}

#[tokio::test]
async fn pieces_come_as_they_arrive() {
    let (listener, address) = listen().await;
    let server = async {
        let mut peer = Peer::accept(&listener).await;
        peer.request().await;
        peer.write(CHUNKED).await;
        peer
    };
    let (mut peer, response) = join(server, send(format!("http://{address}/v1"))).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut body = response.into_body();
    // The server sends a piece only after the previous one was received.
    for piece in ["one", "two", "three"] {
        assert_eq!(join(peer.chunk(piece), text(&mut body)).await.1, piece);
    }
    peer.write("0\r\n\r\n").await;
    assert!(body.next().await.is_none());
}

#[tokio::test]
async fn request_is_sent_unchanged() {
    let (listener, address) = listen().await;
    let mut request = post(format!("http://{address}/v1/chat?api-version=1"));
    request.headers_mut().insert(AUTHORIZATION, "Bearer key".parse().expect("a value"));
    let server = async {
        let mut peer = Peer::accept(&listener).await;
        let request = peer.request().await;
        peer.write("HTTP/1.1 429 Too Many Requests\r\nretry-after: 7\r\ncontent-length: 4\r\n\r\nslow").await;
        request
    };
    let (request, response) = join(server, transport().send(request)).await;
    assert!(request.starts_with("post /v1/chat?api-version=1 http/1.1\r\n"), "{request}");
    let lines: Vec<&str> = request.lines().collect();
    for header in ["authorization: bearer key", "accept-encoding: identity", "content-length: 2"] {
        assert!(lines.contains(&header), "{header} in {request}");
    }
    let response = response.expect("a status is no error");
    assert_eq!(
        (response.status(), &response.headers()["retry-after"]),
        (StatusCode::TOO_MANY_REQUESTS, &"7".parse().unwrap())
    );
    assert_eq!(rest(response.into_body()).await.expect("a body"), "slow");
}

#[tokio::test]
async fn dropping_the_body_closes_the_connection() {
    let (listener, address) = listen().await;
    let server = async {
        let mut peer = Peer::accept(&listener).await;
        peer.request().await;
        peer.write(CHUNKED).await;
        peer.chunk("one").await;
        peer
    };
    let transport = transport();
    let (mut peer, response) = join(server, transport.send(post(format!("http://{address}/v1")))).await;
    let mut body = response.expect("a response").into_body();
    assert_eq!(text(&mut body).await, "one");
    drop(body);
    assert!(peer.closed().await);
}

#[tokio::test]
async fn dropping_the_call_closes_the_connection() {
    let (listener, address) = listen().await;
    let transport = transport();
    let server = async {
        let mut peer = Peer::accept(&listener).await;
        peer.request().await;
        peer
    };
    let call = transport.send(post(format!("http://{address}/v1")));
    let mut peer = tokio::select! {
        peer = server => peer,
        response = call => panic!("the server said nothing: {:?}", response.map(|_| ())),
    };
    assert!(peer.closed().await);
}

#[tokio::test]
async fn fully_read_body_leaves_connection_reusable() {
    let (listener, address) = listen().await;
    let transport = transport();
    let server = async {
        let mut peer = Peer::accept(&listener).await;
        for answer in ["one", "two", "three"] {
            tokio::select! {
                _ = peer.request() => {}
                _ = listener.accept() => panic!("a second connection"),
            }
            peer.write(CHUNKED).await;
            peer.chunk(answer).await;
            peer.write("0\r\n\r\n").await;
        }
        peer
    };
    let client = async {
        let mut answers = Vec::new();
        for _ in 0..3 {
            let response = transport.send(post(format!("http://{address}/v1"))).await.expect("a response");
            answers.push(rest(response.into_body()).await.expect("a body"));
        }
        answers
    };
    let (_peer, answers) = join(server, client).await;
    assert_eq!(answers, ["one", "two", "three"]);
}

#[tokio::test]
async fn a_redirect_is_a_response() {
    let (listener, address) = listen().await;
    let server = async {
        let mut peer = Peer::accept(&listener).await;
        peer.request().await;
        let location = format!("location: http://{address}/elsewhere");
        peer.write(&format!("HTTP/1.1 302 Found\r\n{location}\r\ncontent-length: 0\r\n\r\n")).await;
        assert!(peer.closed().await, "no second request, and the transport is gone");
    };
    let client = async { send(format!("http://{address}/v1")).await.status() };
    assert_eq!(join(server, client).await.1, StatusCode::FOUND);
}

#[tokio::test]
async fn a_refused_connection_is_typed() {
    let (listener, address) = listen().await;
    drop(listener);
    let error = transport().send(post(format!("http://{address}/v1"))).await.err().expect("nobody listens");
    assert!(matches!(error, TransportError::Connect { .. }), "{error:?}");
}

#[tokio::test]
async fn a_reset_before_the_head_is_typed() {
    let (listener, address) = listen().await;
    let server = async {
        let mut peer = Peer::accept(&listener).await;
        peer.request().await;
        peer.reset();
    };
    let transport = transport();
    let ((), response) = join(server, transport.send(post(format!("http://{address}/v1")))).await;
    let error = response.err().expect("no response");
    assert!(matches!(error, TransportError::Broken { .. }), "{error:?}");
}

/// Returns the next item after the received piece, if the server then does `end`.
async fn after_one_piece(
    head: &str,
    piece: &str,
    end: impl FnOnce(Peer<TcpStream>),
) -> Option<Result<Bytes, TransportError>> {
    let (listener, address) = listen().await;
    let server = async {
        let mut peer = Peer::accept(&listener).await;
        peer.request().await;
        peer.write(head).await;
        peer.write(piece).await;
        peer
    };
    let (peer, response) = join(server, send(format!("http://{address}/v1"))).await;
    let mut body = response.into_body();
    assert_eq!(text(&mut body).await, "hello");
    end(peer);
    let next = body.next().await;
    assert!(body.next().await.is_none(), "nothing follows");
    next
}

#[tokio::test]
async fn broken_body_is_typed_error_unlike_ended_one() {
    let with_length = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n";
    let until_closed = "HTTP/1.1 200 OK\r\n\r\n";
    for (head, piece) in [(CHUNKED, "5\r\nhello\r\n"), (with_length, "hello"), (until_closed, "hello")] {
        let reset = after_one_piece(head, piece, Peer::reset).await;
        assert!(matches!(reset, Some(Err(TransportError::Broken { .. }))), "reset: {head} {reset:?}");
        let closed = after_one_piece(head, piece, drop).await;
        if head == until_closed {
            assert!(closed.is_none(), "this is how such a body ends");
        } else {
            assert!(matches!(closed, Some(Err(TransportError::Broken { .. }))), "closed: {head} {closed:?}");
        }
    }
    let garbled = after_one_piece(CHUNKED, "5\r\nhello\r\nno length\r\n", drop).await;
    assert!(matches!(garbled, Some(Err(TransportError::Broken { .. }))), "{garbled:?}");
}

#[tokio::test]
async fn unsendable_request_is_typed() {
    for url in ["/v1", "ftp://127.0.0.1/v1", "127.0.0.1:1"] {
        let error = transport().send(post(url)).await.err().expect("no such request");
        assert!(matches!(error, TransportError::Other { .. }), "{url}: {error:?}");
    }
}

#[tokio::test]
async fn law_r3_no_error_shows_address_or_request_content() {
    let (listener, address) = listen().await;
    let request = |address: &str| {
        let mut request =
            post(format!("http://canary-user:canary-password@{address}/canary-path?key=canary-query"));
        request.headers_mut().insert(AUTHORIZATION, "Bearer canary-key".parse().expect("a value"));
        request
    };
    let transport = transport();
    let mut errors = Vec::new();
    for cut in [
        "",
        "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhello",
        "not HTTP\r\n\r\n",
        "HTTP/1.1 200 OK\r\nbad header\r\n\r\n",
    ] {
        let server = async {
            let mut peer = Peer::accept(&listener).await;
            peer.request().await;
            peer.write(cut).await;
        };
        let client = async { rest(transport.send(request(&address.to_string())).await?.into_body()).await };
        errors.push(join(server, client).await.1.expect_err("cut short"));
    }
    drop(listener);
    errors.push(transport.send(request(&address.to_string())).await.err().expect("refused"));
    errors.push(
        transport
            .send(post("ftp://canary-user:canary-password@host/canary"))
            .await
            .err()
            .expect("no such scheme"),
    );
    for error in errors {
        let shown = everything_in(&error);
        assert!(!shown.contains("canary"), "{shown}");
    }
    assert!(!format!("{transport:?}").contains("canary"));
}

#[cfg(not(any(feature = "native-tls", feature = "rustls-aws-lc", feature = "rustls-ring")))]
#[tokio::test]
async fn https_without_tls_is_refused_with_advice() {
    let error = transport().send(post("https://127.0.0.1:1/v1")).await.err().expect("no TLS");
    assert!(matches!(error, TransportError::Other { .. }), "{error:?}");
    assert!(everything_in(&error).contains("switch on one of the features `rustls-ring`"), "{error:?}");
}

#[cfg(any(feature = "native-tls", feature = "rustls-aws-lc", feature = "rustls-ring"))]
mod over_tls {
    use super::*;
    use crate::timeouts::Clock;

    #[tokio::test(start_paused = true)]
    async fn endless_handshake_hits_connect_timeout() {
        let (listener, address) = listen().await;
        let transport = transport();
        let server = async {
            let _peer = Peer::accept(&listener).await;
            std::future::pending().await
        };
        let client =
            async { transport.send(post(format!("https://{address}/v1"))).await.err().expect("no response") };
        let error = tokio::select! {
            error = client => error,
            never = server => never,
            () = tokio::time::sleep(Duration::from_secs(60)) => panic!("no clock ran out"),
        };
        let expected = TimedOut::new(Clock::Connect, Duration::from_secs(10));
        assert!(matches!(&error, TransportError::TimedOut(timed_out) if *timed_out == expected), "{error:?}");
        assert_eq!(error.to_string(), "no connection to the server within 10s");
    }

    #[tokio::test]
    async fn server_without_tls_is_failed_connection() {
        let (listener, address) = listen().await;
        let transport = transport();
        let server = async {
            let mut peer = Peer::accept(&listener).await;
            // Reads the whole hello, so that closing the connection does not reset it.
            assert!(peer.0.read(&mut [0; 65536]).await.expect("a hello") > 0);
            peer.write("HTTP/1.1 400 Bad Request\r\n\r\n").await;
        };
        let ((), response) = join(server, transport.send(post(format!("https://{address}/v1")))).await;
        let error = response.err().expect("no TLS there");
        assert!(matches!(error, TransportError::Connect { .. }), "{error:?}");
    }

    #[cfg(not(feature = "native-tls"))]
    mod with_certificates {
        use std::sync::Arc;

        use reqwest::Client;
        use rustls::ServerConfig;
        use rustls::pki_types::CertificateDer;
        use rustls_platform_verifier::Verifier;
        use tokio_rustls::TlsAcceptor;

        use super::*;
        use crate::transport::tls::rustls_config::{provider, with_verifier};

        /// Returns a server for `localhost`, and its self-signed certificate.
        fn acceptor() -> (TlsAcceptor, CertificateDer<'static>) {
            let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
            let certificate = CertificateDer::from(own.cert);
            let key = own.signing_key.into();
            let config = ServerConfig::builder_with_provider(Arc::new(provider::default_provider()))
                .with_safe_default_protocol_versions()
                .and_then(|config| {
                    config.with_no_client_auth().with_single_cert(vec![certificate.clone()], key)
                })
                .expect("a configuration");
            (TlsAcceptor::from(Arc::new(config)), certificate)
        }

        #[tokio::test]
        async fn a_trusted_certificate_is_accepted() {
            let (listener, address) = listen().await;
            let (acceptor, certificate) = acceptor();
            let provider = Arc::new(provider::default_provider());
            let verifier =
                Verifier::new_with_extra_roots([certificate], Arc::clone(&provider)).expect("roots");
            let config = with_verifier(provider, Arc::new(verifier)).expect("a configuration");
            let client = Client::builder().tls_backend_preconfigured(config).build().expect("a client");
            let transport = ReqwestTransport::from_client(client);
            let server = async {
                let socket = listener.accept().await.expect("a connection").0;
                let mut peer = Peer(acceptor.accept(socket).await.expect("a handshake"));
                peer.request().await;
                peer.write(CHUNKED).await;
                peer.chunk("hello").await;
                peer.write("0\r\n\r\n").await;
                peer
            };
            let url = format!("https://localhost:{}/v1", address.port());
            let client = async { rest(transport.send(post(url)).await?.into_body()).await };
            assert_eq!(join(server, client).await.1.expect("a body"), "hello");
        }

        #[tokio::test]
        async fn an_unknown_certificate_is_a_failed_connection() {
            let (listener, address) = listen().await;
            let (acceptor, _) = acceptor();
            let transport = transport();
            let server = async {
                let socket = listener.accept().await.expect("a connection").0;
                acceptor.accept(socket).await.map(|_| ()).expect_err("the client goes away");
            };
            let url = format!("https://localhost:{}/v1", address.port());
            let ((), response) = join(server, transport.send(post(url))).await;
            let error = response.err().expect("an unknown certificate");
            assert!(matches!(error, TransportError::Connect { .. }), "{error:?}");
        }
    }
}

mod garbage;
