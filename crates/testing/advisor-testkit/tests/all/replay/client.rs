//! A client that shows the bytes on the wire: each HTTP chunk separately, and the end of the connection.

use std::io;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

pub(crate) struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    pub(crate) async fn connect(server: &advisor_testkit::ReplayServer) -> Self {
        let stream = TcpStream::connect(server.address()).await.unwrap();
        Self { stream: BufReader::new(stream) }
    }

    pub(crate) async fn post(&mut self, path: &str, body: &str) {
        let length = body.len();
        let request = format!("POST {path} HTTP/1.1\r\nhost: test\r\ncontent-length: {length}\r\n\r\n{body}");
        self.write(&request).await;
    }

    pub(crate) async fn write(&mut self, bytes: &str) {
        self.stream.write_all(bytes.as_bytes()).await.unwrap();
    }

    /// Status line and headers.
    pub(crate) async fn head(&mut self) -> String {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let read = self.stream.read_line(&mut head).await.unwrap();
            assert!(read > 0, "the connection ended in the head: {head:?}");
        }
        head
    }

    /// The next HTTP chunk; the last one is empty.
    pub(crate) async fn chunk(&mut self) -> io::Result<Vec<u8>> {
        let mut size = String::new();
        if self.stream.read_line(&mut size).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let size = usize::from_str_radix(size.trim_end(), 16).unwrap();
        let mut chunk = vec![0; size + 2];
        self.stream.read_exact(&mut chunk).await?;
        assert_eq!(chunk.split_off(size), b"\r\n");
        Ok(chunk)
    }

    /// All chunks up to the last one.
    pub(crate) async fn chunks(&mut self) -> io::Result<Vec<Vec<u8>>> {
        let mut chunks = Vec::new();
        loop {
            let chunk = self.chunk().await?;
            if chunk.is_empty() {
                return Ok(chunks);
            }
            chunks.push(chunk);
        }
    }

    pub(crate) async fn exactly(&mut self, length: usize) -> String {
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes).await.unwrap();
        String::from_utf8(bytes).unwrap()
    }

    /// Everything until the server closes the connection.
    pub(crate) async fn rest(&mut self) -> io::Result<String> {
        let mut rest = String::new();
        self.stream.read_to_string(&mut rest).await?;
        Ok(rest)
    }
}
