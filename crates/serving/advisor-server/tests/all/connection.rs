//! Requests over real connections.

use std::net::SocketAddr;

use advisor_server::{ChatServer, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::setting::LIMIT;

/// Serves until the task is aborted. Returns the address, too.
pub(crate) async fn served(server: ChatServer) -> (SocketAddr, JoinHandle<std::io::Result<()>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (address, tokio::spawn(serve(listener, server, std::future::pending(), LIMIT)))
}

pub(crate) async fn connect(address: SocketAddr, path: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    stream
}

/// Reads until the text comes, and returns everything.
pub(crate) async fn read_until(stream: &mut TcpStream, wanted: &str) -> String {
    let (mut read, mut piece) = (Vec::new(), vec![0; 16 << 10]);
    loop {
        let length = timeout(LIMIT, stream.read(&mut piece)).await.unwrap().unwrap();
        assert!(length > 0, "the connection ended: {}", String::from_utf8_lossy(&read));
        let before = read.len().saturating_sub(wanted.len());
        read.extend_from_slice(&piece[..length]);
        if String::from_utf8_lossy(&read[before..]).contains(wanted) {
            return String::from_utf8_lossy(&read).into_owned();
        }
    }
}
