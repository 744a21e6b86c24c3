//! `StreamItem`: the begin, a chunk or the error of a stream in JSON.

use std::borrow::Cow;

use message_aggregator::{Chunk, JSON_VERSION};
use serde::{Deserialize, Serialize};

use crate::{Error, ErrorKind, Result};

/// One item of a stream in JSON, for programs in any language. `docs/json.md` of the repository documents the form.
///
/// A stream begins with the version of the form. Its chunks follow, then at most one error.
///
/// # Example
/// ```
/// use advisor_core::{Error, ErrorKind, JSON_VERSION, StreamItem};
///
/// let failure = Error::new(ErrorKind::Timeout, "no answer within 5 s");
/// let items = [StreamItem::Begin { version: JSON_VERSION }, StreamItem::from(Err(failure))];
/// let lines = items.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
/// assert_eq!(lines[0], r#"{"type":"begin","version":1}"#);
/// assert_eq!(lines[1], r#"{"type":"error","kind":"timeout","message":"no answer within 5 s"}"#);
///
/// let read = StreamItem::from_json(&lines[1])?;
/// assert!(matches!(read, StreamItem::Error(error) if error.kind() == ErrorKind::Timeout));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum StreamItem {
    /// The first item.
    Begin {
        /// The version of the form, [`JSON_VERSION`] if this version writes it.
        version: u32,
    },
    /// The error that ends the stream.
    Error(Error),
    /// An item, or a tool event, of a type that a later version added. A reader skips it.
    Unknown,
    /// A chunk.
    #[serde(untagged)]
    Chunk(Chunk),
}

/// The fields that select the form of an item.
#[derive(Deserialize)]
struct Head<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    version: Option<u32>,
}

impl StreamItem {
    /// Reads an item.
    ///
    /// # Errors
    /// Of kind [`Protocol`](ErrorKind::Protocol) if the text is not JSON, is not the form of its type, or begins a
    /// stream of a later version. The error has no content of the text.
    pub fn from_json(json: &str) -> Result<Self> {
        let Head { kind, version } = read(json)?;
        match (&*kind, version) {
            ("begin", Some(version @ ..=JSON_VERSION)) => Ok(Self::Begin { version }),
            ("begin", Some(version)) => Err(protocol(format!(
                "the stream has version {version} of the JSON form, and this version reads up to {JSON_VERSION}"
            ))),
            ("begin", None) => Err(protocol("the begin of the stream has no version")),
            ("error", _) => read(json).map(Self::Error),
            _ => Ok(Chunk::from_json(json)
                .map_err(|error| unreadable(&error))?
                .map_or(Self::Unknown, Self::Chunk)),
        }
    }
}

impl From<Result<Chunk>> for StreamItem {
    fn from(item: Result<Chunk>) -> Self {
        item.map_or_else(Self::Error, Self::Chunk)
    }
}

fn read<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T> {
    serde_json::from_str(json).map_err(|error| unreadable(&error))
}

/// Returns an error without the text of the parser, which may contain values of the JSON.
fn unreadable(error: &serde_json::Error) -> Error {
    let (line, column) = (error.line(), error.column());
    protocol(format!("an item of a stream is not the documented JSON, see its line {line}, column {column}"))
}

fn protocol(message: impl Into<Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::Protocol { position: None }, message)
}

#[cfg(test)]
mod tests {
    use message_aggregator::ChatResponse;

    use super::*;

    fn kind(json: &str) -> Option<ErrorKind> {
        StreamItem::from_json(json).err().map(|error| error.kind())
    }

    #[test]
    fn items_come_back() {
        let chunk = Chunk::Completed(ChatResponse::from("Hello."));
        let json = serde_json::to_string(&StreamItem::from(Ok(chunk.clone()))).unwrap();
        let read = StreamItem::from_json(&json).unwrap();
        assert!(matches!(read, StreamItem::Chunk(read) if read == chunk));
        let json = serde_json::to_string(&StreamItem::Begin { version: JSON_VERSION }).unwrap();
        assert!(matches!(StreamItem::from_json(&json), Ok(StreamItem::Begin { version: JSON_VERSION })));
    }

    #[test]
    fn later_types_are_unknown_and_later_versions_are_refused() {
        let event = r#"{"type":"tool","block":"1.0","call_id":"c","name":"f","event":{"type":"paused"}}"#;
        for json in [r#"{"type":"heartbeat","at":[1]}"#, event, r#"{"type":"unknown"}"#] {
            let item = StreamItem::from_json(json).unwrap();
            assert!(matches!(item, StreamItem::Unknown), "{json}");
        }
        let protocol = Some(ErrorKind::Protocol { position: None });
        for json in [
            r#"{"type":"begin","version":2}"#,
            r#"{"type":"begin"}"#,
            r#"{"type":"error"}"#,
            r#"{"type":"delta","block":"1.0"}"#,
            r#"{"version":1}"#,
            "[]",
            "",
        ] {
            assert_eq!(kind(json), protocol, "{json}");
        }
    }

    #[test]
    fn law_r3_error_of_reader_has_no_content() {
        for json in [r#"{"type":"delta","block":"canary"}"#, r#"{"type":["canary"]}"#, r#""canary""#] {
            let error = StreamItem::from_json(json).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
        }
    }
}
