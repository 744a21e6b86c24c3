//! `Frame`: a server-sent event as a client reads it.

use serde_json::Value;

/// A server-sent event, as a client reads it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Frame {
    /// The id of the event, if it has one.
    pub id: Option<String>,
    /// The name of the event, if it has one.
    pub name: Option<String>,
    /// The data.
    pub data: String,
}

impl Frame {
    /// Reads all events of a finished stream, for tests and tools. Comments are skipped.
    ///
    /// # Example
    /// ```
    /// use advisor_sse::Frame;
    ///
    /// let frames = Frame::read_all(": keep-alive\n\nid: 0.0\nevent: ping\ndata: {}\n\ndata: [DONE]\n\n");
    /// assert_eq!(frames[0].name.as_deref(), Some("ping"));
    /// assert_eq!(frames[1].data, "[DONE]");
    /// ```
    #[must_use]
    pub fn read_all(stream: &str) -> Vec<Self> {
        stream.split("\n\n").filter_map(Self::read).collect()
    }

    /// Returns the data as JSON, if it is JSON.
    #[must_use]
    pub fn json(&self) -> Option<Value> {
        serde_json::from_str(&self.data).ok()
    }

    /// Checks whether this is the event `[DONE]`.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.data == "[DONE]"
    }

    fn read(event: &str) -> Option<Self> {
        let mut frame = Self::default();
        let mut data = Vec::new();
        for line in event.lines() {
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "id" => frame.id = Some(value.into()),
                "event" => frame.name = Some(value.into()),
                "data" => data.push(value),
                _ => {}
            }
        }
        frame.data = data.join("\n");
        (!data.is_empty()).then_some(frame)
    }
}
