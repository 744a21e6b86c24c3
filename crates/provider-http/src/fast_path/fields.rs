//! The table of the fields that a wire format reads.

/// The use of a value of an event by a converter.
///
/// The table of a wire format determines which differences between two events change their meaning. A test of the
/// format should compare the table with the structs that the format parses.
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
    /// A value that is read. Another value may have another meaning.
    Read,
    /// A string that is the next piece of text, reasoning, a refusal or arguments, unchanged.
    Text,
    /// A string whose spelling between its quotes is the next piece of arguments, unchanged.
    Spelled,
    /// A [`Text`](Self::Text), or another value in its place.
    TextOr(&'static Self),
    /// A [`Text`](Self::Text) inside data attached to reasoning. Pieces of data that differ only in it are joined.
    /// The value of such data is an object with the event's field.
    Joined,
    /// A string that is read once, such as the id of the answer.
    Once,
    /// A string or a number that is not read and differs from event to event, such as random padding. Listing it
    /// here saves the parsing of one event of each form.
    Padding,
    /// Token counts: a number, or an object or list of numbers. Several fields can be counts. They
    /// grow, so the last event with counts is used.
    Counts,
    /// An object. Fields that are not listed are not read.
    Object(&'static [(&'static str, Self)]),
    /// An object of which every field is read. Fields that are not listed are [`Read`](Self::Read).
    Whole(&'static [(&'static str, Self)]),
    /// A list of values of this kind.
    List(&'static Self),
}

impl Field {
    /// Returns the kind of a key's value in an object; `None` if it is not read.
    pub(crate) fn of_key(&self, key: &str) -> Option<&'static Self> {
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

    /// Returns the kind of the entries of a list.
    pub(crate) fn of_entry(&self) -> &'static Self {
        match self {
            Self::List(entry) => entry,
            Self::TextOr(other) => other.of_entry(),
            Self::Counts => &Self::Counts,
            _ => &Self::Read,
        }
    }
}
