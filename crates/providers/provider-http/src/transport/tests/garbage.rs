//! Bytes that a server writes after the end of an answer, before the next request is sent on the connection.

use super::*;

const END: &str = "0\r\n\r\n";
/// An answer to a request that was never sent.
const FORGED: &str = "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged";
/// Sent by servers before they close a connection that was idle for long.
const TIMED_OUT: &str = "HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// Returns the bytes that a peer reads until the client closes the connection.
async fn until_closed<S: AsyncRead + Unpin>(peer: &mut S) -> Vec<u8> {
    let mut read = Vec::new();
    while let Ok(1..) = peer.read_buf(&mut read).await {}
    read
}

/// Answers `one` and writes `behind` after it. Returns the answer to the second request; another connection
/// answers it with `two`.
async fn second_answer(behind: &str, at_once: bool, closes: bool) -> Result<String, TransportError> {
    let (listener, address) = listen().await;
    let transport = transport();
    let server = async {
        let mut peer = Peer::accept(&listener).await;
        peer.request().await;
        peer.write(CHUNKED).await;
        peer.chunk("one").await;
        peer.write(&if at_once { format!("{END}{behind}") } else { END.to_owned() }).await;
        peer
    };
    let client = async { rest(transport.send(post(format!("http://{address}/"))).await?.into_body()).await };
    let (mut peer, first) = join(server, client).await;
    assert_eq!(first.expect("the first answer"), "one");
    if !at_once {
        peer.write(behind).await;
    }
    let first_connection = async move {
        if !closes {
            assert_eq!(
                until_closed(&mut peer.0).await,
                b"",
                "nothing is sent on a connection that says too much"
            );
        }
    };
    let second_connection = async {
        let mut peer = Peer::accept(&listener).await;
        peer.request().await;
        peer.write(CHUNKED).await;
        peer.chunk("two").await;
        peer.write(END).await;
    };
    // Nothing has yielded since: the written bytes are in the socket, and the client has not read them.
    let client = async { rest(transport.send(post(format!("http://{address}/"))).await?.into_body()).await };
    let servers = join(first_connection, second_connection);
    match tokio::time::timeout(Duration::from_secs(20), join(client, servers)).await {
        Ok((second, _)) => second,
        Err(_) => panic!("the second connection never came"),
    }
}

#[tokio::test]
async fn d22_bytes_after_answer_never_become_next_answer() {
    for behind in ["garbage", FORGED, TIMED_OUT] {
        for (at_once, closes) in [(true, false), (true, true), (false, false), (false, true)] {
            let second = second_answer(behind, at_once, closes).await;
            assert_eq!(second.expect(behind), "two", "{behind:?} at once: {at_once}, closes: {closes}");
        }
    }
}
