//! What a wire format reads of an event, as a table.

/// What a converter does with a value of an event.
///
/// The table of a wire format tells which differences between two events change their meaning. A test of the format compares it
/// with the structs that the format parses.
///
/// ```
/// use provider_http::fast_path::Field;
///
/// /// `{"id":"r1","out":{"text":"Hi"},"n":7}`, where `n` is not read.
/// const EVENT: Field = Field::Object(&[
///     ("id", Field::Once),
///     ("out", Field::Object(&[("text", Field::Text)])),
/// ]);
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Field {
    /// Another value may mean something else.
    Read,
    /// A string that goes into the answer as it is, as its next piece.
    Text,
    /// A [`Text`](Self::Text), or what is in the place of one where it is no string.
    TextOr(&'static Self),
    /// As [`Text`](Self::Text), inside data that rides on reasoning. Pieces of data that differ only in it are joined. The
    /// value of such data is an object with the field of the event that it comes from.
    Joined,
    /// A string that is read until it is known, such as the id of the answer.
    Once,
    /// Token counts: of all events the last one counts.
    Counts,
    /// An object. Fields that are not listed are not read.
    Object(&'static [(&'static str, Self)]),
    /// An object of which every field is read. Those that are not listed are [`Read`](Self::Read).
    Whole(&'static [(&'static str, Self)]),
    /// A list of such values.
    List(&'static Self),
}

impl Field {
    /// What the value of this key is in an object; `None` if nobody reads it.
    pub(super) fn of_key(&self, key: &str) -> Option<&'static Self> {
        let named = |fields: &'static [(&'static str, Self)]| {
            fields.iter().find(|(name, _)| *name == key).map(|(_, field)| field)
        };
        match self {
            Self::Object(fields) => named(fields),
            Self::Whole(fields) => Some(named(fields).unwrap_or(&Self::Read)),
            Self::TextOr(other) => other.of_key(key),
            Self::Counts => Some(&Self::Counts),
            _ => Some(&Self::Read),
        }
    }

    /// What an entry of a list is.
    pub(super) fn of_entry(&self) -> &'static Self {
        match self {
            Self::List(entry) => entry,
            Self::TextOr(other) => other.of_entry(),
            Self::Counts => &Self::Counts,
            _ => &Self::Read,
        }
    }
}
