//! HTTP/2, over connections on which both sides know beforehand that they use it.

use h2::server::{self, Connection, SendResponse};
use h2::{Reason, RecvStream};

use super::*;

/// Returns the frames of a server that closes the connection: empty settings, and a `GOAWAY` as in RFC 9113. It
/// has the last processed stream, the reason, and additional text.
fn goaway(last_stream: u8, reason: Reason, words: &str) -> Vec<u8> {
    let length = u8::try_from(8 + words.len()).expect("few words");
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    let head = [0, 0, length, 7, 0, 0, 0, 0, 0];
    let streams = [0, 0, 0, last_stream];
    [&settings[..], &head, &streams, &u32::from(reason).to_be_bytes(), words.as_bytes()].concat()
}

fn transport() -> ReqwestTransport {
    let builder = tls::choose(reqwest::Client::builder().http2_prior_knowledge()).expect("TLS");
    ReqwestTransport::from_client(builder.build().expect("a client"))
}

async fn connection(listener: &TcpListener) -> Connection<TcpStream, Bytes> {
    let (stream, _) = listener.accept().await.expect("a connection");
    server::handshake(stream).await.expect("HTTP/2")
}

async fn request(
    connection: &mut Connection<TcpStream, Bytes>,
) -> (Request<RecvStream>, SendResponse<Bytes>) {
    connection.accept().await.expect("a request").expect("a whole one")
}

/// Answers with `words`. Returns the body of the request once the client has closed the connection.
async fn answer(mut connection: Connection<TcpStream, Bytes>, words: &'static str) -> Vec<u8> {
    let (mut request, mut respond) = request(&mut connection).await;
    let mut sending = respond.send_response(Response::new(()), false).expect("the head");
    sending.send_data(Bytes::from_static(words.as_bytes()), true).expect("the body");
    let body = async {
        let mut body = Vec::new();
        while let Some(piece) = request.body_mut().data().await {
            body.extend_from_slice(&piece.expect("the body goes on"));
        }
        body
    };
    let (body, closed) = join(body, std::future::poll_fn(|cx| connection.poll_closed(cx))).await;
    closed.expect("closed by the client");
    body
}

/// Reads the body of a request, which begins with a piece `{}`, writes `words`, and closes the connection.
async fn go_away(listener: &TcpListener, words: &[u8]) {
    let mut peer = Peer::accept(listener).await;
    let mut read = Vec::new();
    while !read.windows(2).any(|bytes| bytes == b"{}") {
        assert!(peer.0.read_buf(&mut read).await.expect("the request") > 0, "closed before the body");
    }
    peer.0.write_all(words).await.expect("the client reads");
}

#[tokio::test]
async fn dropped_answer_resets_stream_and_keeps_connection() {
    let (listener, address) = listen().await;
    let transport = transport();
    let client = async {
        let mut answers = Vec::new();
        for _ in 0..2 {
            let mut response = transport.send(post(format!("http://{address}/"))).await.expect("a response");
            assert_eq!(response.version(), http::Version::HTTP_2);
            let piece = response.body_mut().next().await.expect("a piece").expect("bytes");
            // The answer continues, but is dropped here.
            answers.push(piece);
        }
        answers
    };
    let server = async {
        let mut connection = connection(&listener).await;
        let mut answers = Vec::new();
        for words in ["one", "two"] {
            let (_, mut respond) = request(&mut connection).await;
            let mut answer = respond.send_response(Response::new(()), false).expect("the head");
            answer.send_data(Bytes::from_static(words.as_bytes()), false).expect("a piece");
            answers.push(answer);
        }
        let mut resets = Vec::new();
        for mut answer in answers {
            resets.push(tokio::select! {
                biased;
                reset = std::future::poll_fn(|cx| answer.poll_reset(cx)) => reset.expect("a reset"),
                next = connection.accept() => panic!("instead of a reset: {next:?}"),
            });
        }
        resets
    };
    let (answers, resets) = join(client, server).await;
    assert_eq!(answers, ["one", "two"]);
    assert_eq!(resets, [Reason::CANCEL; 2]);
}

#[tokio::test]
async fn unseen_request_is_resent_whole_on_new_connection() {
    let (listener, address) = listen().await;
    let client = async {
        let mut request = post(format!("http://{address}/"));
        *request.body_mut() = Bytes::from_static(b"{}\n");
        let response = transport().send(request).await.expect("a response");
        rest(response.into_body()).await.expect("a whole body")
    };
    let server = async {
        go_away(&listener, &goaway(0, Reason::NO_ERROR, "")).await;
        answer(connection(&listener).await, "hello").await
    };
    let (words, body) = join(client, server).await;
    assert_eq!(words, "hello");
    assert_eq!(body, b"{}\n");
}

/// Sends a request and closes the connection.
async fn send_to(address: SocketAddr) -> Result<(), TransportError> {
    let mut request = post(format!("http://{address}/"));
    *request.body_mut() = Bytes::from_static(b"{}");
    transport().send(request).await.map(|_| ())
}

#[tokio::test]
async fn refused_stream_is_sent_at_most_three_times() {
    for refused in [2, 3] {
        let (listener, address) = listen().await;
        let server = async {
            let mut connection = connection(&listener).await;
            for _ in 0..refused {
                request(&mut connection).await.1.send_reset(Reason::REFUSED_STREAM);
            }
            if refused == 2 {
                let mut respond = request(&mut connection).await.1;
                respond.send_response(Response::new(()), true).expect("the head");
            }
            let next = connection.accept().await;
            assert!(next.is_none(), "asked more often than three times: {next:?}");
        };
        match join(send_to(address), server).await.0 {
            Ok(()) => assert_eq!(refused, 2),
            Err(TransportError::Broken { .. }) => assert_eq!(refused, 3),
            Err(error) => panic!("{error:?}"),
        }
    }
}

#[tokio::test]
async fn possibly_processed_request_is_sent_once() {
    let of_connections = [(1, Reason::NO_ERROR), (1, Reason::INTERNAL_ERROR), (0, Reason::ENHANCE_YOUR_CALM)];
    for (last_stream, reason) in of_connections {
        let (listener, address) = listen().await;
        let words = goaway(last_stream, reason, "");
        let server = async {
            go_away(&listener, &words).await;
            listener.accept().await
        };
        tokio::select! {
            response = send_to(address) => {
                assert!(matches!(response, Err(TransportError::Broken { .. })), "{reason:?}: {response:?}");
            }
            again = server => panic!("sent again after {reason:?}, stream {last_stream}: {again:?}"),
        }
    }
    for reason in [Reason::CANCEL, Reason::INTERNAL_ERROR] {
        let (listener, address) = listen().await;
        let server = async {
            let mut connection = connection(&listener).await;
            request(&mut connection).await.1.send_reset(reason);
            assert!(connection.accept().await.is_none(), "sent again after {reason:?}");
        };
        let (response, ()) = join(send_to(address), server).await;
        assert!(matches!(response, Err(TransportError::Broken { .. })), "{reason:?}: {response:?}");
    }
}

#[tokio::test]
async fn goaway_message_of_server_is_not_shown() {
    let (listener, address) = listen().await;
    let words = goaway(0, Reason::ENHANCE_YOUR_CALM, "not with Bearer key");
    let (response, ()) = join(send_to(address), go_away(&listener, &words)).await;
    let shown = everything_in(&response.expect_err("no response"));
    assert!(!shown.contains("Bearer"), "{shown}");
    assert!(shown.contains("detected excessive load"), "{shown}");
}

/// Empty settings, and a complete answer to the first request: `:status: 200` and no body.
const ANSWERED: [u8; 19] = [0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 1, 1, 5, 0, 0, 0, 1, 0x88];
/// An answer to a second request that was never sent.
const FORGED: [u8; 10] = [0, 0, 1, 1, 5, 0, 0, 0, 3, 0x88];

#[tokio::test]
async fn d22_bytes_after_an_answer_close_the_connection() {
    let goes_away = goaway(1, Reason::NO_ERROR, "");
    for behind in [b"garbage that is no frame".as_slice(), &FORGED, &goes_away[9..]] {
        let (listener, address) = listen().await;
        let transport = transport();
        let ask = || async {
            let mut request = post(format!("http://{address}/"));
            *request.body_mut() = Bytes::from_static(b"{}");
            transport.send(request).await.map(|response| response.status())
        };
        let server = async {
            let mut peer = Peer::accept(&listener).await;
            let mut read = Vec::new();
            while !read.windows(2).any(|bytes| bytes == b"{}") {
                assert!(peer.0.read_buf(&mut read).await.expect("the request") > 0);
            }
            peer.0.write_all(&ANSWERED).await.expect("the client reads");
            peer
        };
        let (mut peer, first) = join(server, ask()).await;
        assert_eq!(first.expect("an answer"), StatusCode::OK);
        peer.0.write_all(behind).await.expect("the client reads");
        let server = async {
            let mut connection = connection(&listener).await;
            let mut respond = request(&mut connection).await.1;
            let head = Response::builder().status(StatusCode::ACCEPTED).body(()).expect("a head");
            respond.send_response(head, true).expect("the head");
            assert!(connection.accept().await.is_none(), "one request");
        };
        tokio::select! {
            second = ask() => assert_eq!(second.expect("an answer"), StatusCode::ACCEPTED, "{behind:?}"),
            () = server => panic!("the client goes first"),
            () = tokio::time::sleep(Duration::from_secs(20)) => panic!("{behind:?}: no second connection"),
        }
    }
}
