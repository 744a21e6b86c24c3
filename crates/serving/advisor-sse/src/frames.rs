//! `Frames`: the bytes of a stream and their numbers. `EventId`, `Frame`: what a client reads of them.

use std::fmt;

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;

/// The bytes that an [`Encoder`](crate::Encoder) writes.
///
/// It numbers the frames, and leaves out those that a reconnecting client has received: encode the chunks again, from the
/// first, with [`after`](Self::after).
///
/// # Example
/// ```
/// use advisor_core::{Block, BlockId, ChatResponse, Chunk};
/// use advisor_sse::{ChatEvents, Encoding, EventId, Frames};
///
/// let mut chunks: Vec<_> = Chunk::from_block(BlockId::new(1, 0), &Block::text("Hello")).collect();
/// chunks.push(Chunk::Completed(ChatResponse::from("Hello")));
/// let play = |frames: Frames| {
///     let mut encoding = Encoding::new(ChatEvents::default()).with_frames(frames);
///     chunks.iter().map(|chunk| encoding.push(&Ok(chunk.clone()))).collect::<Vec<_>>().concat()
/// };
///
/// let whole = String::from_utf8(play(Frames::new().with_ids("t1")))?;
/// assert!(whole.starts_with("id: t1:2.0\ndata: {\"type\":\"content\""));
/// let rest = String::from_utf8(play(Frames::new().with_ids("t1").after(EventId { item: 2, frame: 0 })))?;
/// assert_eq!(rest, "id: t1:4.0\ndata: [DONE]\n\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
    next: EventId,
    /// What stands before the id of each event; `None` without ids.
    ids: Option<String>,
    received: Option<EventId>,
}

impl Frames {
    /// Creates an empty buffer.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes the id of each server-sent event, for clients that reconnect, behind the name of its stream, such as `t1:12.0`.
    /// So the id that a client sends tells which stream it has read.
    #[must_use]
    pub fn with_ids(self, stream: &str) -> Self {
        Self { ids: Some(format!("{stream}:")), ..self }
    }

    /// Leaves out the frames up to this one, which the client has received.
    #[must_use]
    pub fn after(self, received: EventId) -> Self {
        Self { received: Some(received), ..self }
    }

    /// Appends a server-sent event without a name.
    pub fn data(&mut self, data: &impl Serialize) {
        self.event(None, |bytes| write_json(bytes, data));
    }

    /// Appends a server-sent event with a name.
    pub fn named(&mut self, name: &str, data: &impl Serialize) {
        self.event(Some(name), |bytes| write_json(bytes, data));
    }

    /// Appends the event `[DONE]`, which ends the stream of several protocols.
    pub fn done(&mut self) {
        self.event(None, |bytes| bytes.extend_from_slice(b"[DONE]"));
    }

    /// Appends a value as a line of JSON.
    pub fn line(&mut self, value: &impl Serialize) {
        if self.is_new() {
            write_json(&mut self.bytes, value);
            self.bytes.push(b'\n');
        }
    }

    /// Removes and returns the bytes written so far.
    pub fn take(&mut self) -> Bytes {
        std::mem::take(&mut self.bytes).into()
    }

    /// Begins the frames of the next item.
    pub(crate) fn next_item(&mut self) {
        self.next = EventId { item: self.next.item + 1, frame: 0 };
    }

    fn event(&mut self, name: Option<&str>, write: impl FnOnce(&mut Vec<u8>)) {
        let id = self.next;
        if !self.is_new() {
            return;
        }
        if let Some(prefix) = &self.ids {
            self.bytes.extend_from_slice(format!("id: {prefix}{id}\n").as_bytes());
        }
        if let Some(name) = name {
            self.bytes.extend_from_slice(b"event: ");
            self.bytes.extend_from_slice(name.as_bytes());
            self.bytes.push(b'\n');
        }
        self.bytes.extend_from_slice(b"data: ");
        write(&mut self.bytes);
        self.bytes.extend_from_slice(b"\n\n");
    }

    /// Counts the next frame. Returns whether the client has not received it.
    fn is_new(&mut self) -> bool {
        let id = self.next;
        self.next.frame += 1;
        self.received.is_none_or(|received| id > received)
    }
}

/// Writes a value as JSON on one line. JSON escapes line breaks, so that a value is one line of data.
fn write_json(bytes: &mut Vec<u8>, value: &impl Serialize) {
    let start = bytes.len();
    if serde_json::to_writer(&mut *bytes, value).is_err() {
        // Only a map with keys that are no strings cannot be written; no protocol here has one.
        bytes.truncate(start);
        bytes.extend_from_slice(b"null");
    }
}

/// The id of a frame: the number of the item that it was made of, and its number among that item's frames.
///
/// Both begin at 0. A client sends the id of the last frame that it received as `Last-Event-ID`.
///
/// # Example
/// ```
/// use advisor_sse::EventId;
///
/// let id = EventId { item: 12, frame: 1 };
/// assert_eq!((id.to_string(), EventId::parse("12.1"), EventId::parse("12")), ("12.1".into(), Some(id), None));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(clippy::exhaustive_structs, reason = "an id has two numbers")]
pub struct EventId {
    /// The number of the item: 0 is the beginning of the stream, 1 the first chunk.
    pub item: u64,
    /// The number of the frame among those of the item.
    pub frame: u32,
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.item, self.frame)
    }
}

impl EventId {
    /// Reads an id as it is written. Returns `None` for another text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (item, frame) = text.split_once('.')?;
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if !(is_number(item) && is_number(frame)) {
            return None;
        }
        Some(Self { item: item.parse().ok()?, frame: frame.parse().ok()? })
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_names_and_ids() {
        let mut frames = Frames::new().with_ids("t");
        frames.data(&"a\nb");
        frames.next_item();
        frames.named("stop", &1);
        frames.done();
        let text =
            "id: t:0.0\ndata: \"a\\nb\"\n\nid: t:1.0\nevent: stop\ndata: 1\n\nid: t:1.1\ndata: [DONE]\n\n";
        assert_eq!(frames.take(), text);
        assert_eq!(frames.take(), "");
    }

    #[test]
    fn received_frames_are_left_out() {
        let mut frames = Frames::new().after(EventId { item: 1, frame: 0 });
        frames.data(&0);
        frames.next_item();
        frames.data(&1);
        frames.data(&2);
        assert_eq!(frames.take(), "data: 2\n\n");
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", ".", "1", "1.", ".1", "1.2.3", "-1.0", "+1.0", "1.x", "99999999999999999999.0"] {
            assert_eq!(EventId::parse(text), None, "{text}");
        }
    }

    #[test]
    fn ids_are_ordered_by_item_then_frame() {
        let ids: Vec<EventId> = ["2.9", "10.0", "10.1"].map(|text| EventId::parse(text).unwrap()).to_vec();
        assert!(ids.is_sorted());
    }
}
