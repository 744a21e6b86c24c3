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
    /// The body. One that is sent in chunks is refused.
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
    let head = read_head(input, buffer).await?;
    let (method, path, headers) = parse_head(&head)?;
    if headers.contains_key("transfer-encoding") {
        return Err(bad("the body has no `content-length`; send it whole"));
    }
    let length = headers.get("content-length").map_or(Ok(0), |value| parse_length(value.as_bytes()))?;
    while buffer.len() < length {
        read_more(input, buffer).await?;
    }
    let body = buffer.split_to(length).freeze();
    let close =
        headers.get("connection").is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"close"));
    let request = ReceivedRequest { number: 0, connection: 0, method, path, headers, body };
    Ok(Incoming { request, close })
}

fn parse_head(head: &[u8]) -> io::Result<(Method, String, HeaderMap)> {
    let head = std::str::from_utf8(head).map_err(|_| bad("the head is not UTF-8"))?;
    let mut lines = head.split("\r\n");
    let line = lines.next().unwrap_or_default();
    let mut words = line.split(' ');
    let (Some(method), Some(path), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(bad(format!("`{line}` is no request line")));
    };
    if version != "HTTP/1.1" {
        return Err(bad(format!("`{version}` is not HTTP/1.1")));
    }
    let method =
        Method::from_bytes(method.as_bytes()).map_err(|_| bad(format!("`{method}` is no method")))?;
    let mut headers = HeaderMap::new();
    for line in lines {
        let (name, value) = parse_header(line).ok_or_else(|| bad("a header line has no name"))?;
        headers.append(name, value);
    }
    Ok((method, path.to_owned(), headers))
}

fn parse_header(line: &str) -> Option<(HeaderName, HeaderValue)> {
    let (name, value) = line.split_once(':')?;
    let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
    let mut value = HeaderValue::from_str(value.trim()).ok()?;
    value.set_sensitive(SECRET.contains(&name));
    Some((name, value))
}

fn parse_length(digits: &[u8]) -> io::Result<usize> {
    let text = std::str::from_utf8(digits).unwrap_or("?");
    match text.parse() {
        Ok(length) if length <= LARGEST_BODY => Ok(length),
        Ok(_) => Err(bad("the body is too large")),
        Err(_) => Err(bad(format!("`{text}` is no length"))),
    }
}

/// Takes the bytes of the head, and drops its end.
async fn read_head(input: &mut (impl AsyncRead + Unpin), buffer: &mut BytesMut) -> io::Result<BytesMut> {
    const END: &[u8] = b"\r\n\r\n";
    loop {
        if let Some(length) = buffer.windows(END.len()).position(|bytes| bytes == END) {
            let head = buffer.split_to(length);
            let _ = buffer.split_to(END.len());
            return Ok(head);
        }
        if buffer.len() > LARGEST_HEAD {
            return Err(bad("the head is too large"));
        }
        read_more(input, buffer).await?;
    }
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
