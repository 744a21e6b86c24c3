//! `Connection`: sends requests over one socket and reads their answers, one after the other.

use bytes::Buf;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::body::Body;

const READ: usize = 64 * 1024;

/// A connection that asks and reads, one answer after the other.
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    body: Body,
}

impl Connection {
    pub(crate) async fn open(host: &str) -> Self {
        let stream = TcpStream::connect(host).await.expect("the server listens");
        stream.set_nodelay(true).expect("a socket option");
        Self { stream, buffer: Vec::with_capacity(READ), body: Body::new() }
    }

    /// Sends a request without putting its parts together.
    pub(crate) async fn send(&mut self, mut parts: impl Buf) {
        self.stream.write_all_buf(&mut parts).await.expect("the server reads");
        self.body = Body::new();
    }

    /// Reads once, and passes the data of the body to `on_data`. Returns false when the answer has ended.
    pub(crate) async fn read(&mut self, on_data: impl FnMut(&[u8])) -> bool {
        // Memory that was never written takes no space, even if the capacity is large.
        self.buffer.clear();
        let count = self.stream.read_buf(&mut self.buffer).await.expect("the server writes");
        assert!(count > 0, "the server closed the connection");
        self.body.feed(&self.buffer, on_data);
        !self.body.is_done()
    }
}
