//! The connections of a server: their number, and clients that do not read.

use std::net::SocketAddr;
use std::time::Duration;

use advisor_testkit::Answer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{Instant, timeout};

use crate::connection::{read_until, served};
use crate::disconnects::endless;
use crate::setting::{LIMIT, setting};

async fn asking(address: SocketAddr) -> TcpStream {
    let mut client = TcpStream::connect(address).await.unwrap();
    client.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    client
}

#[tokio::test(start_paused = true)]
async fn law_r1_further_connection_waits_for_an_open_one() {
    let setting = setting([]).limited(|limits| limits.open_connections = 2);
    let (address, serving) = served(setting.server).await;
    let (mut first, mut second) = (asking(address).await, asking(address).await);
    read_until(&mut first, "alive").await;
    read_until(&mut second, "alive").await;
    let mut third = asking(address).await;
    let early = timeout(Duration::from_secs(9), third.read(&mut [0; 1])).await;
    assert!(early.is_err(), "a third connection is served: {early:?}");
    drop(first);
    read_until(&mut third, "alive").await;
    serving.abort();
}

/// The turn of a client that asks and never reads stops, and its connection closes.
#[tokio::test(start_paused = true)]
async fn law_r2_client_that_never_reads_is_disconnected() {
    let (waiting, stopped) = endless();
    // More than the buffers of the connection hold.
    let long = (0..64).fold(Answer::new(), |answer, _| answer.text("x".repeat(1 << 17)));
    let setting = setting([long.wait(waiting)]);
    let setting = setting.limited(|limits| limits.write_timeout = Duration::from_secs(9));
    let (address, serving) = served(setting.server).await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(1 << 16).unwrap();
    let mut client = socket.connect(address).await.unwrap();
    let body = r#"{"model":"chain","messages":[{"role":"user","content":"Hi"}],"stream":true}"#;
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json";
    let request = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let since = Instant::now();
    client.write_all(request.as_bytes()).await.unwrap();
    assert!(timeout(LIMIT, stopped).await.is_ok(), "the turn goes on");
    assert_eq!(since.elapsed().as_secs(), 9);
    serving.abort();
}
