//! HTTP/2, over connections on which both sides know beforehand that they speak it.

use h2::server::{self, Connection, SendResponse};
use h2::{Reason, RecvStream};

use super::*;

/// What a server says that closes the connection without having looked at any request: empty settings, and `GOAWAY` with
/// the last stream 0 and `NO_ERROR`, as RFC 9113 has them.
const REFUSAL: &[u8] = b"\0\0\0\x04\0\0\0\0\0\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\0";

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

/// Answers with `words`, and gives the body of the request once the client has closed the connection.
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

#[tokio::test]
async fn an_answer_streams_and_dropping_it_resets_its_stream_and_keeps_the_connection() {
    let (listener, address) = listen().await;
    let transport = transport();
    let client = async {
        let mut answers = Vec::new();
        for _ in 0..2 {
            let mut response = transport.send(post(format!("http://{address}/"))).await.expect("a response");
            assert_eq!(response.version(), http::Version::HTTP_2);
            let piece = response.body_mut().next().await.expect("a piece").expect("bytes");
            // It goes on, but it is dropped here.
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
async fn a_request_whose_connection_goes_away_unseen_is_sent_again_whole_on_another() {
    let (listener, address) = listen().await;
    let client = async {
        let mut request = post(format!("http://{address}/"));
        *request.body_mut() = vec![Bytes::from_static(b"{}"), Bytes::from_static(b"\n")];
        let response = transport().send(request).await.expect("a response");
        rest(response.into_body()).await.expect("a whole body")
    };
    let server = async {
        let mut refusing = Peer::accept(&listener).await;
        let mut read = Vec::new();
        while !read.windows(2).any(|bytes| bytes == b"{}") {
            assert!(refusing.0.read_buf(&mut read).await.expect("the request") > 0, "closed before the body");
        }
        refusing.0.write_all(REFUSAL).await.expect("the client reads");
        answer(connection(&listener).await, "hello").await
    };
    let (words, body) = join(client, server).await;
    assert_eq!(words, "hello");
    assert_eq!(body, b"{}\n");
}
