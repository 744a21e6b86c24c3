//! `Text`: a short immutable string, stored inline up to 23 bytes and shared beyond.

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

/// A short immutable text: inline up to 23 bytes, shared beyond, cheap to clone either way.
///
/// Streamed texts are mostly a few bytes long, so a chunk carries one without an allocation.
/// It dereferences to [`str`].
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Text(SmolStr);

impl Text {
    /// Returns the text as a string slice.
    #[must_use]
    #[inline]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl Deref for Text {
    type Target = str;

    #[inline]
    fn deref(&self) -> &str {
        self.0.as_str()
    }
}

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        self.0.as_str()
    }
}

impl Borrow<str> for Text {
    fn borrow(&self) -> &str {
        self.0.as_str()
    }
}

macro_rules! from {
    ($($type:ty: $text:ident => $made:expr),* $(,)?) => {$(
        impl From<$type> for Text {
            #[inline]
            fn from($text: $type) -> Self {
                $made
            }
        }
    )*};
}

from! {
    &str: text => Self(SmolStr::new(text)),
    String: text => Self(text.into()),
    &String: text => text.as_str().into(),
    &Self: text => text.clone(),
    Cow<'_, str>: text => Self(text.into()),
    char: character => Self::from(&*character.encode_utf8(&mut [0; 4])),
}

impl From<Text> for String {
    fn from(text: Text) -> Self {
        text.0.into()
    }
}

/// A short text is made without an allocation.
impl FromIterator<char> for Text {
    fn from_iter<I: IntoIterator<Item = char>>(letters: I) -> Self {
        Self(letters.into_iter().collect())
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.as_str(), f)
    }
}
