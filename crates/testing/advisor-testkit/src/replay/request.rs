//! Reads requests.

use std::borrow::Cow;
use std::io;

use bytes::{Bytes, BytesMut};
use http::header::{AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt};

/// The largest request line with headers, in bytes. Larger ones are refused.
const LARGEST_HEAD: usize = 64 << 10;
/// The largest body, in bytes. Larger ones are refused.
const LARGEST_BODY: usize = 256 << 20;
/// Header names whose values `Debug` output hides.
const SECRET: [HeaderName; 6] = [
    AUTHORIZATION,
    PROXY_AUTHORIZATION,
    COOKIE,
    HeaderName::from_static("api-key"),
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("x-goog-api-key"),
];

/// A request as the server received it.
///
/// Its `Debug` output does not show the values of headers that carry keys.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReceivedRequest {
    /// The number of this request among all that the server received, from 0.
    pub number: usize,
    /// The number of its connection among all that the server accepted, from 0.
    pub connection: usize,
    /// The method, such as `POST`.
    pub method: Method,
    /// Path and query as sent: `/v1/chat/completions`.
    pub path: String,
    /// The headers, names in lower case.
    pub headers: HeaderMap,
    /// The body, chunks joined.
    pub body: Bytes,
}

impl ReceivedRequest {
    /// Parses the body as JSON.
    ///
    /// # Errors
    ///
    /// If the body is no JSON.
    pub fn json(&self) -> serde_json::Result<Value> {
        serde_json::from_slice(&self.body)
    }

    /// Returns the body as text. Bytes that are no UTF-8 become `U+FFFD`.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.body)
    }

    /// Returns the value of a header as text; `None` if it is absent or no text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// A request, and whether its client wants the connection closed after the answer.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) request: ReceivedRequest,
    pub(super) close: bool,
}

/// Reads the next request. Later bytes stay in `buffer`. The caller sets `number` and `connection`.
///
/// The error is `InvalidData` if the bytes are no request that this server can read, and `UnexpectedEof` if the client
/// closed the connection.
pub(super) async fn read_request(
    input: &mut (impl AsyncRead + Unpin),
    buffer: &mut BytesMut,
) -> io::Result<Incoming> {
    let head = read_until(input, buffer, b"\r\n\r\n", LARGEST_HEAD).await?;
    let (method, path, version, headers) = parse_head(&head)?;
    let body = if has_token(&headers, "transfer-encoding", "chunked") {
        read_chunks(input, buffer).await?
    } else {
        let length = match headers.get("content-length") {
            Some(value) => parse_length(value.as_bytes(), 10)?,
            None => 0,
        };
        read_exactly(input, buffer, length).await?
    };
    let close = has_token(&headers, "connection", "close")
        || (version == "HTTP/1.0" && !has_token(&headers, "connection", "keep-alive"));
    let request = ReceivedRequest { number: 0, connection: 0, method, path, headers, body };
    Ok(Incoming { request, close })
}

fn parse_head(head: &[u8]) -> io::Result<(Method, String, String, HeaderMap)> {
    let head = std::str::from_utf8(head).map_err(|_| bad("the head is not UTF-8"))?;
    let mut lines = head.split("\r\n");
    let line = lines.next().unwrap_or_default();
    let mut words = line.split(' ');
    let (Some(method), Some(path), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(bad(format!("`{line}` is no request line")));
    };
    if !version.starts_with("HTTP/1.") {
        return Err(bad(format!("`{version}` is not HTTP/1")));
    }
    let method =
        Method::from_bytes(method.as_bytes()).map_err(|_| bad(format!("`{method}` is no method")))?;
    let mut headers = HeaderMap::new();
    for line in lines {
        let (name, value) = parse_header(line).ok_or_else(|| bad("a header line has no name"))?;
        headers.append(name, value);
    }
    Ok((method, path.to_owned(), version.to_owned(), headers))
}

fn parse_header(line: &str) -> Option<(HeaderName, HeaderValue)> {
    let (name, value) = line.split_once(':')?;
    let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
    let mut value = HeaderValue::from_str(value.trim()).ok()?;
    value.set_sensitive(SECRET.contains(&name));
    Some((name, value))
}

/// Reads a chunked body. Sizes are hexadecimal; extensions and trailers are dropped.
async fn read_chunks(input: &mut (impl AsyncRead + Unpin), buffer: &mut BytesMut) -> io::Result<Bytes> {
    let mut body = BytesMut::new();
    loop {
        let line = read_until(input, buffer, b"\r\n", LARGEST_HEAD).await?;
        let size = line.as_ref().split(|&byte| byte == b';').next().unwrap_or_default();
        let size = parse_length(size.trim_ascii(), 16)?;
        if size == 0 {
            break;
        }
        if body.len() + size > LARGEST_BODY {
            return Err(bad("the body is too large"));
        }
        body.extend_from_slice(&read_exactly(input, buffer, size).await?);
        if !read_exactly(input, buffer, 2).await?.eq(&b"\r\n"[..]) {
            return Err(bad("a chunk is longer than its size"));
        }
    }
    while !read_until(input, buffer, b"\r\n", LARGEST_HEAD).await?.is_empty() {}
    Ok(body.freeze())
}

fn parse_length(digits: &[u8], radix: u32) -> io::Result<usize> {
    let text = std::str::from_utf8(digits).unwrap_or("?");
    match usize::from_str_radix(text, radix) {
        Ok(length) if length <= LARGEST_BODY => Ok(length),
        Ok(_) => Err(bad("the body is too large")),
        Err(_) => Err(bad(format!("`{text}` is no length"))),
    }
}

fn has_token(headers: &HeaderMap, name: &str, token: &str) -> bool {
    let values = headers.get_all(name).iter();
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|other| other.trim().eq_ignore_ascii_case(token))
}

/// Takes the bytes before `end`, and drops `end` itself.
async fn read_until(
    input: &mut (impl AsyncRead + Unpin),
    buffer: &mut BytesMut,
    end: &[u8],
    largest: usize,
) -> io::Result<BytesMut> {
    loop {
        let found = buffer.windows(end.len()).position(|bytes| bytes == end);
        if let Some(length) = found {
            let taken = buffer.split_to(length);
            let _ = buffer.split_to(end.len());
            return Ok(taken);
        }
        if buffer.len() > largest {
            return Err(bad("a line or the head is too large"));
        }
        read_more(input, buffer).await?;
    }
}

async fn read_exactly(
    input: &mut (impl AsyncRead + Unpin),
    buffer: &mut BytesMut,
    length: usize,
) -> io::Result<Bytes> {
    while buffer.len() < length {
        read_more(input, buffer).await?;
    }
    Ok(buffer.split_to(length).freeze())
}

async fn read_more(input: &mut (impl AsyncRead + Unpin), buffer: &mut BytesMut) -> io::Result<()> {
    match input.read_buf(buffer).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}

fn bad(why: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.into())
}

#[cfg(test)]
mod tests;
