//! Numbers that identify versions, entries and leases.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Declares a type of numbers.
macro_rules! number {
    ($(#[$meta:meta])* $name:ident, $(#[$new:meta])* new, $(#[$get:meta])* as_u64) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(u64);

        impl $name {
            $(#[$new])*
            #[must_use]
            pub fn new(number: u64) -> Self {
                Self(number)
            }

            $(#[$get])*
            #[must_use]
            pub fn as_u64(self) -> u64 {
                self.0
            }
        }
    };
}

number! {
    /// The version of a conversation: the sequence number of its last entry, 0 if it has none.
    #[derive(Default)]
    Version,
    /// Creates the version whose last entry has this sequence number.
    new,
    /// Returns the sequence number of the last entry.
    as_u64
}

number! {
    /// The sequence number of an entry in its conversation.
    EntryId,
    /// Creates the id of the entry with this sequence number.
    new,
    /// Returns the sequence number.
    as_u64
}

number! {
    /// The number of a lease. It grows with every holder of a conversation, so that a previous holder can be
    /// distinguished from its successor.
    FencingToken,
    /// Creates the token with this number.
    new,
    /// Returns the number.
    as_u64
}

impl Version {
    /// The version of a conversation without entries.
    pub const EMPTY: Self = Self(0);

    /// Returns the version after `entries` more entries.
    #[must_use]
    pub fn after(self, entries: usize) -> Self {
        Self(self.0.saturating_add(u64::try_from(entries).unwrap_or(u64::MAX)))
    }
}

impl EntryId {
    /// The position before the first entry.
    pub const BEGINNING: Self = Self(0);
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
