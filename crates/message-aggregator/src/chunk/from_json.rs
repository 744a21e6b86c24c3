//! `Chunk::from_json`: reads a chunk, or finds that its type is of a later version.

use serde::Deserialize;

use crate::Chunk;

/// The types of chunks that this version reads.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ChunkType {
    Opened,
    Delta,
    Closed,
    Tool {
        event: EventType,
    },
    RoundCompleted,
    Usage,
    AttemptRestarted,
    Completed,
    #[serde(other)]
    Unknown,
}

/// The types of tool events that this version reads.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum EventType {
    Started,
    Progress,
    Finished,
    NotStarted,
    #[serde(other)]
    Unknown,
}

impl Chunk {
    /// Reads a chunk from its JSON form. `None` is a chunk, or a tool event, of a type that a later version added:
    /// skip it.
    ///
    /// # Errors
    /// That of the parser if the text is not JSON, or is not the form of its type. Its text may contain values of the
    /// JSON.
    ///
    /// # Example
    /// ```
    /// use message_aggregator::Chunk;
    ///
    /// let chunk = Chunk::from_json(r#"{"type":"delta","block":"1.0","delta":{"type":"text","value":"Hello"}}"#)?;
    /// assert_eq!(chunk.and_then(|chunk| chunk.text().map(String::from)), Some("Hello".into()));
    /// assert_eq!(Chunk::from_json(r#"{"type":"of_a_later_version"}"#)?, None);
    /// assert!(Chunk::from_json(r#"{"type":"usage"}"#).is_err());
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn from_json(json: &str) -> Result<Option<Self>, serde_json::Error> {
        let error = match serde_json::from_str(json) {
            Ok(chunk) => return Ok(Some(chunk)),
            Err(error) => error,
        };
        match serde_json::from_str(json) {
            Ok(ChunkType::Unknown | ChunkType::Tool { event: EventType::Unknown }) => Ok(None),
            _ => Err(error),
        }
    }
}
