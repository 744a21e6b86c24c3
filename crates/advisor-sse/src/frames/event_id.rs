//! `EventId`: the id of a frame.

use std::fmt;
use std::str::FromStr;

/// The id of a frame: the number of the item that it was made of, and its number among that item's frames.
///
/// Both begin at 0. A client sends the id of the last frame that it received as `Last-Event-ID`.
///
/// # Example
/// ```
/// use advisor_sse::EventId;
///
/// let id: EventId = "12.1".parse()?;
/// assert_eq!((id, id.to_string()), (EventId { item: 12, frame: 1 }, "12.1".into()));
/// assert!("12".parse::<EventId>().is_err());
/// # Ok::<(), advisor_sse::EventIdError>(())
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

impl FromStr for EventId {
    type Err = EventIdError;

    fn from_str(text: &str) -> Result<Self, EventIdError> {
        let (item, frame) = text.split_once('.').ok_or(EventIdError)?;
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if !(is_number(item) && is_number(frame)) {
            return Err(EventIdError);
        }
        let item = item.parse().map_err(|_| EventIdError)?;
        let frame = frame.parse().map_err(|_| EventIdError)?;
        Ok(Self { item, frame })
    }
}

/// A text that is no [`EventId`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event id is two numbers with a dot between them, such as `12.0`")]
#[allow(clippy::exhaustive_structs, reason = "the error has no data")]
pub struct EventIdError;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_texts_are_refused() {
        for text in ["", ".", "1", "1.", ".1", "1.2.3", "-1.0", "+1.0", "1.x", "99999999999999999999.0"] {
            assert_eq!(text.parse::<EventId>(), Err(EventIdError), "{text}");
        }
    }

    #[test]
    fn ids_are_ordered_by_item_then_frame() {
        let ids: Vec<EventId> = ["2.9", "10.0", "10.1"].map(|text| text.parse().unwrap()).to_vec();
        assert!(ids.is_sorted());
    }
}
