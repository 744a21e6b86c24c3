//! `Requests`: reads requests off a connection, as far as the server needs them.

use std::io;

use memchr::memmem;
use peer_measure::Scenario;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

const READ: usize = 256 * 1024;

/// The parts of a request that the server needs.
pub(super) struct Request {
    /// The requested scenario; `None` if the path names none.
    pub(super) scenario: Option<Scenario>,
    /// The number of tool results in its messages.
    pub(super) tool_results: usize,
}

/// Reads requests off a connection.
#[derive(Default)]
pub(super) struct Requests {
    /// The bytes already read that belong to the next request.
    buffer: Vec<u8>,
}

impl Requests {
    /// The next request, or `None` if the client has closed the connection.
    pub(super) async fn next(&mut self, stream: &mut TcpStream) -> io::Result<Option<Request>> {
        let head_end = loop {
            if let Some(end) = memmem::find(&self.buffer, b"\r\n\r\n") {
                break end + 4;
            }
            if !self.read(stream).await? {
                return Ok(None);
            }
        };
        let head = String::from_utf8_lossy(&self.buffer[..head_end]).to_ascii_lowercase();
        self.buffer.drain(..head_end);
        let body = if head.contains("transfer-encoding: chunked") {
            self.chunked(stream).await?
        } else {
            let length = header(&head, "content-length").and_then(|length| length.parse().ok());
            self.take(stream, length.unwrap_or(0)).await?
        };
        let scenario = head.split([' ', '/']).find_map(|part| part.parse().ok());
        Ok(Some(Request { scenario, tool_results: tool_results(&body) }))
    }

    async fn chunked(&mut self, stream: &mut TcpStream) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line_end = loop {
                if let Some(end) = memmem::find(&self.buffer, b"\r\n") {
                    break end;
                }
                self.must_read(stream).await?;
            };
            let size = String::from_utf8_lossy(&self.buffer[..line_end]).into_owned();
            let size = usize::from_str_radix(size.trim(), 16).map_err(io::Error::other)?;
            self.buffer.drain(..line_end + 2);
            let mut chunk = self.take(stream, size + 2).await?;
            if size == 0 {
                return Ok(body);
            }
            chunk.truncate(size);
            body.append(&mut chunk);
        }
    }

    async fn take(&mut self, stream: &mut TcpStream, length: usize) -> io::Result<Vec<u8>> {
        while self.buffer.len() < length {
            self.must_read(stream).await?;
        }
        let rest = self.buffer.split_off(length);
        Ok(std::mem::replace(&mut self.buffer, rest))
    }

    async fn must_read(&mut self, stream: &mut TcpStream) -> io::Result<()> {
        if self.read(stream).await? { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    /// Reads more; returns false at the end. The buffer grows only when data is ready, so an idle connection
    /// has none.
    async fn read(&mut self, stream: &mut TcpStream) -> io::Result<bool> {
        stream.readable().await?;
        self.buffer.reserve(if self.buffer.is_empty() { 1024 } else { READ });
        Ok(stream.read_buf(&mut self.buffer).await? > 0)
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let lines = head.lines().filter_map(|line| line.split_once(':'));
    lines.filter(|(other, _)| *other == name).map(|(_, value)| value.trim()).next()
}

fn tool_results(body: &[u8]) -> usize {
    let count = |needle: &[u8]| memmem::find_iter(body, needle).count();
    count(br#""role":"tool""#) + count(br#""role": "tool""#)
}
