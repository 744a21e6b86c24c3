//! `Json`: the reader of events. It passes over an event once, and checks all of it.
//!
//! A provider gives the value of each key that it knows a place. Texts keep their spelling until they are used.
//!
//! ```
//! use provider_http::json::{Str, count, read};
//!
//! let mut id = Str::default();
//! let mut total = None;
//! read(r#"{"id":"a\tb","usage":{"total":"12"},"other":[1,{}]}"#, |event| {
//!     event.object(|key| {
//!         if let Some(value) = key.is("id") {
//!             value.text(&mut id)
//!         } else if let Some(value) = key.is("usage") {
//!             value.object(|key| match key.is("total") {
//!                 Some(value) => value.number(&mut total),
//!                 None => key.skip(),
//!             })
//!         } else {
//!             key.skip()
//!         }
//!     })
//! })?;
//! assert_eq!((id.text().as_deref(), count(total)), (Some("a\tb"), Some(12)));
//! # Ok::<(), serde_json::Error>(())
//! ```
//!
//! One odd value must not fail an answer:
//!
//! - A value of another form counts as absent; so does a number out of range.
//! - Of equal keys the last counts, if its value replaces what the first one gave. A place is always replaced; a list that
//!   the caller fills must be cleared.
//! - A lone surrogate becomes U+FFFD, because no character is better than one that the server did not send.
//! - A known key has no escapes. Of an event that spells one with them, the decoder has [rewritten](super::with_plain_keys) it.
//! - In a value, what is nested more than 128 levels deep becomes `null`. Elsewhere any nesting can be passed.

use std::borrow::Cow;
use std::fmt;
use std::io::Read;
use std::iter;

use serde::de::{Error, IgnoredAny};
use serde_json::{Deserializer, Map, Value};

/// The deepest nesting of a value, as for `serde_json`, and of what is passed by recursion.
const DEEPEST: u8 = 128;
/// The largest integer below which floating point represents every integer (RFC 8259, 6).
const LARGEST_COUNT: i64 = (1 << 53) - 1;

/// Reads a JSON text with `reader`, which returns what is behind its value.
///
/// # Errors
/// If the text is malformed. Places may then be filled.
#[inline]
pub fn read<'a>(
    text: &'a str,
    reader: impl FnOnce(Json<'a>) -> Option<Json<'a>>,
) -> Result<(), serde_json::Error> {
    match reader(Json(text.as_bytes())) {
        Some(rest) if rest.0.iter().all(|byte| is_white_space(*byte)) => Ok(()),
        _ => Err(malformed(text)),
    }
}

/// Reads a JSON text as a value. A number out of range becomes `null`.
///
/// # Errors
/// If it is malformed.
pub fn value(text: &str) -> Result<Value, serde_json::Error> {
    let mut value = Value::Null;
    read(text, |json| json.value(&mut value))?;
    Ok(value)
}

/// Returns the JSON value at the beginning of these bytes; `None` if there is none.
pub(crate) fn first_value(bytes: &[u8]) -> Option<&[u8]> {
    Json(bytes).spelling().map(|(value, _)| value)
}

/// Reads the string with which a JSON text begins: its spelling, whether that has escapes, and what is behind it.
#[inline]
pub(crate) fn string(json: &str) -> Option<(&str, bool, &str)> {
    let (text, _) = Json(json.as_bytes().strip_prefix(b"\"")?).split_string()?;
    let end = text.spelling.len() + 1;
    Some((json.get(1..end)?, text.is_escaped, json.get(end + 1..)?))
}

/// Passes the value with which a JSON text begins with `reader`. Returns what is behind it.
#[inline]
pub(crate) fn pass<'a>(json: &'a str, reader: impl FnOnce(Json<'a>) -> Option<Json<'a>>) -> Option<&'a str> {
    let rest = reader(Json(json.as_bytes()))?;
    json.get(json.len() - rest.0.len()..)
}

/// Returns a text whose keys have no needless escapes, since [`Key::is`] compares in place. No known server writes such
/// ones, but a proxy that escapes all letters may.
pub(crate) fn with_plain_keys(text: &str) -> Cow<'_, str> {
    if !has_escaped_letter(text.as_bytes()) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('"') {
        plain.push_str(before);
        let Some((string, after)) = Json(behind.as_bytes()).split_string() else {
            plain.push('"');
            rest = behind;
            break;
        };
        // Only a key stands before a colon.
        match string.text() {
            Some(Cow::Owned(key)) if after.colon().is_some() => {
                plain.push_str(&Value::String(key).to_string());
            }
            _ => plain.extend(["\"", string.spelling(), "\""]),
        }
        rest = behind.get(behind.len() - after.0.len()..).unwrap_or_default();
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

/// Checks whether a text has a printable ASCII character in an escape with its number, such as `\u0061`.
pub(crate) fn has_escaped_letter(text: &[u8]) -> bool {
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        let escape = rest.get(at..).unwrap_or_default();
        if matches!(escape, [_, b'u', b'0', b'0', b'2'..=b'7', ..]) {
            return true;
        }
        rest = escape.get(2..).unwrap_or_default();
    }
    false
}

/// Returns a number as a count; `None` if it is negative or too large for some readers of JSON. So the counts of many
/// rounds add up without overflow.
#[must_use]
pub fn count(number: Option<i64>) -> Option<u64> {
    number.filter(|number| *number <= LARGEST_COUNT).and_then(|number| u64::try_from(number).ok())
}

/// Checks whether this JSON carries no information: nothing, `null`, `false`, `0`, `""`, `[]` or `{}`.
#[must_use]
#[inline]
pub fn is_nothing(json: &str) -> bool {
    match json.as_bytes() {
        [b'[' | b'{', inside @ .., b']' | b'}'] => inside.iter().all(|byte| is_white_space(*byte)),
        _ => matches!(json, "" | "null" | "false" | "0" | "\"\""),
    }
}

#[cold]
fn malformed(text: &str) -> serde_json::Error {
    let error = serde_json::from_str::<IgnoredAny>(text).err();
    error.unwrap_or_else(|| Error::custom("JSON of another form"))
}

/// A text in JSON, in its spelling. The empty text counts as absent.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Str<'a> {
    spelling: &'a [u8],
    is_escaped: bool,
}

impl<'a> Str<'a> {
    /// Returns the text, unless it is empty.
    #[must_use]
    #[inline]
    pub fn text(self) -> Option<Cow<'a, str>> {
        if self.spelling.is_empty() {
            return None;
        }
        let spelling = str::from_utf8(self.spelling).ok()?;
        Some(if self.is_escaped {
            Cow::Owned(unescaped(spelling).collect())
        } else {
            Cow::Borrowed(spelling)
        })
    }

    /// Checks whether it is this text, which needs no escapes.
    #[must_use]
    #[inline]
    pub fn is(self, text: &str) -> bool {
        self.spelling == text.as_bytes()
    }

    /// Checks whether it is empty, or was absent.
    #[must_use]
    #[inline]
    pub fn is_empty(self) -> bool {
        self.spelling.is_empty()
    }

    /// Returns the text as it is spelled between its quotes.
    #[must_use]
    pub fn spelling(self) -> &'a str {
        str::from_utf8(self.spelling).unwrap_or_default()
    }
}

/// A key of an object, whose value follows.
#[derive(Clone, Copy)]
pub struct Key<'a>(&'a [u8]);

impl<'a> Key<'a> {
    /// Returns the value, if this is the name of the key. Compares in place, so it is cheap for keys of any length.
    #[must_use]
    #[inline(always)]
    pub fn is(self, name: &str) -> Option<Json<'a>> {
        // The first byte tells most names apart. The compiler knows that of `name`.
        if self.0.first() != name.as_bytes().first() {
            return None;
        }
        match self.0.strip_prefix(name.as_bytes())?.strip_prefix(b"\"")? {
            [b':', value @ ..] => Some(Json(value)),
            behind => Json(behind).colon(),
        }
    }

    /// Returns the value, if one of the names is that of the key. For keys that most events have and nobody needs, this
    /// is cheaper than [`skip`](Self::skip) alone.
    #[must_use]
    #[inline(always)]
    pub fn is_any<const N: usize>(self, names: [&str; N]) -> Option<Json<'a>> {
        names.iter().find_map(|name| self.is(name))
    }

    /// Passes the key and its value.
    #[inline(never)]
    pub fn skip(self) -> Option<Json<'a>> {
        self.split()?.1.skip()
    }

    /// Returns the key and its value; `None` if it is malformed.
    #[must_use]
    pub fn split(self) -> Option<(Str<'a>, Json<'a>)> {
        let mut key = Str::default();
        let behind = Json(self.0).string(&mut key)?;
        Some((key, behind.colon()?))
    }
}

/// The rest of a JSON text, from a value on.
///
/// Every reader returns what is behind the value, or `None` if the JSON is malformed. A value of another form is passed.
#[derive(Clone, Copy)]
pub struct Json<'a>(&'a [u8]);

impl<'a> Json<'a> {
    /// Reads an object, with `field` for each of its keys.
    #[inline(always)]
    pub fn object(self, mut field: impl FnMut(Key<'a>) -> Option<Self>) -> Option<Self> {
        let (byte, behind) = self.next()?;
        if byte != b'{' {
            return behind.pass(byte, DEEPEST);
        }
        behind.entries(b'}', |byte, behind| if byte == b'"' { field(Key(behind.0)) } else { None })
    }

    /// Reads a list, with `item` for each of its entries.
    #[inline(always)]
    pub fn list(self, mut item: impl FnMut(Self) -> Option<Self>) -> Option<Self> {
        let (byte, behind) = self.next()?;
        if byte != b'[' {
            return behind.pass(byte, DEEPEST);
        }
        let (byte, mut rest) = behind.next()?;
        if byte == b']' {
            return Some(rest);
        }
        rest = behind;
        loop {
            let (byte, behind) = item(rest)?.next()?;
            match byte {
                b',' => rest = behind,
                b']' => return Some(behind),
                _ => return None,
            }
        }
    }

    /// Reads an object into a new `T`. A value of another form leaves none.
    #[inline(always)]
    pub fn object_in<T: Default>(
        self,
        place: &mut Option<T>,
        read: impl FnOnce(&mut T, Self) -> Option<Self>,
    ) -> Option<Self> {
        *place = self.is_object().then(T::default);
        match place {
            Some(new) => read(new, self),
            None => self.skip(),
        }
    }

    /// Reads the objects of a list, with `object` for each. Entries of another form are passed.
    #[inline(always)]
    pub fn objects(self, mut object: impl FnMut(Self) -> Option<Self>) -> Option<Self> {
        self.list(|item| if item.is_object() { object(item) } else { item.skip() })
    }

    /// Reads a text, or the spelling of any other value. `null` counts as absent.
    pub fn text_or_json(self, place: &mut Str<'a>) -> Option<Self> {
        let (byte, behind) = self.next()?;
        if byte == b'"' {
            return behind.string(place);
        }
        let (spelling, rest) = self.spelling()?;
        *place = Str { spelling: if spelling == b"null" { b"" } else { spelling }, is_escaped: false };
        Some(rest)
    }

    /// Reads a text. A number counts as its spelling.
    #[inline(always)]
    pub fn text(self, place: &mut Str<'a>) -> Option<Self> {
        match self.next()? {
            (b'"', behind) => behind.string(place),
            (b'n', behind) => {
                *place = Str::default();
                behind.pass(b'n', DEEPEST)
            }
            _ => self.number_as_text(place),
        }
    }

    #[inline(never)]
    fn number_as_text(self, place: &mut Str<'a>) -> Option<Self> {
        let (spelling, rest) = self.spelling()?;
        let is_number = matches!(spelling.first(), Some(b'-' | b'0'..=b'9'));
        *place = Str { spelling: if is_number { spelling } else { b"" }, is_escaped: false };
        Some(rest)
    }

    /// Reads a whole number, also one written as a decimal or as text.
    #[inline(always)]
    pub fn number(self, place: &mut Option<i64>) -> Option<Self> {
        // Nearly all are counts of a few digits.
        let digits = self.0.strip_prefix(b" ").unwrap_or(self.0);
        let (mut number, mut rest) = (0, digits);
        while let [digit @ b'0'..=b'9', behind @ ..] = rest
            && number < 1 << 50
        {
            (number, rest) = (number * 10 + i64::from(digit - b'0'), behind);
        }
        if let ([b'1'..=b'9', ..] | [b'0', b',' | b'}', ..], [b',' | b'}', ..]) = (digits, rest) {
            *place = Some(number);
            return Some(Self(rest));
        }
        self.other_number(place)
    }

    #[inline(never)]
    fn other_number(self, place: &mut Option<i64>) -> Option<Self> {
        let (spelling, rest) = self.spelling()?;
        let inside = spelling.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\""));
        let number = str::from_utf8(inside.unwrap_or(spelling)).unwrap_or_default();
        // Beyond 2^53 a decimal identifies no single integer.
        let is_whole = |number: &f64| number.fract() == 0.0 && number.abs() <= LARGEST_COUNT as f64;
        let whole = || number.parse().ok().filter(is_whole).map(|number| number as i64);
        *place = number.parse().ok().or_else(|| whole().filter(|_| inside.is_none()));
        Some(rest)
    }

    /// Reads the spelling of any value. That of `null` is empty.
    pub fn raw(self, place: &mut &'a str) -> Option<Self> {
        let (spelling, rest) = self.spelling()?;
        *place = if spelling == b"null" { "" } else { str::from_utf8(spelling).ok()? };
        Some(rest)
    }

    /// Reads any value. A number out of range becomes `null`.
    pub fn value(self, place: &mut Value) -> Option<Self> {
        self.value_within(DEEPEST, place)
    }

    fn value_within(self, depth: u8, place: &mut Value) -> Option<Self> {
        match self.next()? {
            (b'"', behind) => {
                let mut text = Str::default();
                let rest = behind.string(&mut text)?;
                *place = Value::String(text.text().unwrap_or_default().into_owned());
                Some(rest)
            }
            (b'{' | b'[', _) if depth == 0 => {
                *place = Value::Null;
                self.skip()
            }
            (b'{', _) => {
                let mut fields = Map::new();
                let rest = self.object(|key| {
                    let (key, value) = key.split()?;
                    let field = fields.entry(key.text().unwrap_or_default()).or_insert(Value::Null);
                    value.value_within(depth - 1, field)
                })?;
                *place = Value::Object(fields);
                Some(rest)
            }
            (b'[', _) => {
                let mut items = Vec::new();
                let rest = self.list(|item| item.value_within(depth - 1, items.push_mut(Value::Null)))?;
                *place = Value::Array(items);
                Some(rest)
            }
            _ => {
                let (spelling, rest) = self.spelling()?;
                *place = serde_json::from_slice(spelling).unwrap_or_default();
                Some(rest)
            }
        }
    }

    /// Passes any value.
    #[inline(always)]
    pub fn skip(self) -> Option<Self> {
        let (byte, behind) = self.next()?;
        behind.pass(byte, DEEPEST)
    }

    /// Checks whether the value is an object.
    #[must_use]
    #[inline(always)]
    pub fn is_object(self) -> bool {
        self.next().is_some_and(|(byte, _)| byte == b'{')
    }

    /// Checks whether the value is a list.
    #[must_use]
    #[inline(always)]
    pub fn is_list(self) -> bool {
        self.next().is_some_and(|(byte, _)| byte == b'[')
    }

    /// Passes white space. Returns the next byte and what is behind it.
    #[inline(always)]
    fn next(self) -> Option<(u8, Self)> {
        let mut rest = self.0;
        loop {
            let (byte, behind) = rest.split_first()?;
            if *byte > b' ' {
                return Some((*byte, Self(behind)));
            }
            if !is_white_space(*byte) {
                return None;
            }
            rest = behind;
        }
    }

    #[inline(never)]
    fn colon(self) -> Option<Self> {
        self.next().filter(|(byte, _)| *byte == b':').map(|(_, value)| value)
    }

    /// Reads entries up to the byte that closes them. `entry` gets the first byte of each, and what is behind it.
    #[inline(always)]
    fn entries(self, close: u8, mut entry: impl FnMut(u8, Self) -> Option<Self>) -> Option<Self> {
        let (mut byte, mut rest) = self.next()?;
        if byte == close {
            return Some(rest);
        }
        loop {
            (byte, rest) = entry(byte, rest)?.next()?;
            match byte {
                b',' => (byte, rest) = rest.next()?,
                _ if byte == close => return Some(rest),
                _ => return None,
            }
        }
    }

    /// Reads a string behind its first quote.
    #[inline(never)]
    fn string(self, place: &mut Str<'a>) -> Option<Self> {
        let (text, rest) = self.split_string()?;
        *place = text;
        Some(rest)
    }

    #[inline(always)]
    fn split_string(self) -> Option<(Str<'a>, Self)> {
        let (mut at, mut is_escaped) = (0, false);
        loop {
            at = stop(self.0, at);
            let (spelling, behind) = self.0.split_at_checked(at)?;
            match behind.split_first()? {
                (b'"', rest) => return Some((Str { spelling, is_escaped }, Self(rest))),
                (b'\\', escape) => at += escape_length(escape)?,
                _ => return None,
            }
            is_escaped = true;
        }
    }

    /// Returns the value as it is spelled.
    #[inline(never)]
    fn spelling(self) -> Option<(&'a [u8], Self)> {
        let (byte, behind) = self.next()?;
        let rest = behind.pass(byte, DEEPEST)?;
        let spelling = self.0.get(self.0.len() - behind.0.len() - 1..self.0.len() - rest.0.len())?;
        Some((spelling, rest))
    }

    /// Passes the rest of a value that begins with this byte.
    #[inline(always)]
    fn pass(self, first: u8, depth: u8) -> Option<Self> {
        match first {
            b'"' => self.pass_string(),
            b'n' => self.0.strip_prefix(b"ull").map(Self),
            _ => self.pass_other(first, depth),
        }
    }

    #[inline(never)]
    fn pass_string(self) -> Option<Self> {
        self.split_string().map(|(_, rest)| rest)
    }

    #[inline(never)]
    fn pass_other(self, first: u8, depth: u8) -> Option<Self> {
        match first {
            b'{' | b'[' if depth == 0 => self.pass_deep(first),
            b'{' => self.entries(b'}', |byte, behind| {
                let key = if byte == b'"' { behind.pass_string()? } else { return None };
                let (byte, value) = key.colon()?.next()?;
                value.pass(byte, depth - 1)
            }),
            b'[' => self.entries(b']', |byte, behind| behind.pass(byte, depth - 1)),
            b't' => self.0.strip_prefix(b"rue").map(Self),
            b'f' => self.0.strip_prefix(b"alse").map(Self),
            b'-' => self.0.split_first().and_then(|(first, behind)| Self(behind).pass_number(*first)),
            _ => self.pass_number(first),
        }
    }

    /// Passes a list or an object without recursion.
    #[cold]
    fn pass_deep(self, first: u8) -> Option<Self> {
        let first = [first];
        let mut values = Deserializer::from_reader(first.as_slice().chain(self.0)).into_iter::<IgnoredAny>();
        values.next()?.ok()?;
        self.0.get(values.byte_offset().checked_sub(1)?..).map(Self)
    }

    fn pass_number(self, first: u8) -> Option<Self> {
        let mut rest = match first {
            b'0' => self.0,
            b'1'..=b'9' => without_digits(self.0),
            _ => return None,
        };
        if let [b'.', b'0'..=b'9', behind @ ..] = rest {
            rest = without_digits(behind);
        }
        if let [b'e' | b'E', b'+' | b'-', b'0'..=b'9', behind @ ..]
        | [b'e' | b'E', b'0'..=b'9', behind @ ..] = rest
        {
            rest = without_digits(behind);
        }
        Some(Self(rest))
    }
}

fn without_digits(bytes: &[u8]) -> &[u8] {
    let length = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    bytes.get(length..).unwrap_or_default()
}

/// Checks whether a byte is white space between the tokens of JSON. ASCII has more.
fn is_white_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// Returns the place of the next quote, backslash or control character, from `at` on.
#[inline(always)]
fn stop(bytes: &[u8], mut at: usize) -> usize {
    const ONES: u64 = u64::MAX / 255;
    // Eight bytes at a time. A subtraction of one from each byte sets the high bit of those that were zero; it may
    // also set that of a byte behind such a one, which does not matter.
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*chunk);
        let (quote, slash) = (word ^ (ONES * b'"' as u64), word ^ (ONES * b'\\' as u64));
        let below = quote.wrapping_sub(ONES) | slash.wrapping_sub(ONES) | word.wrapping_sub(ONES * 0x20);
        let stops = below & !word & (ONES << 7);
        if stops != 0 {
            return at + stops.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while bytes.get(at).is_some_and(|byte| !matches!(byte, b'"' | b'\\' | 0..0x20)) {
        at += 1;
    }
    at
}

/// Returns the length of an escape with its backslash, by what is behind that.
#[inline(never)]
fn escape_length(behind: &[u8]) -> Option<usize> {
    match behind {
        [b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => Some(2),
        [b'u', digits @ ..] if digits.first_chunk::<4>()?.iter().all(u8::is_ascii_hexdigit) => Some(6),
        _ => None,
    }
}

/// Returns the letters of a text that is spelled so.
pub(crate) fn unescaped(spelling: &str) -> impl Iterator<Item = char> {
    let mut letters = spelling.chars();
    iter::from_fn(move || {
        Some(match letters.next()? {
            '\\' => match letters.next()? {
                'b' => '\u{8}',
                'f' => '\u{C}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'u' => {
                    let (letter, length) = letter_of_units(letters.as_str());
                    letters = letters.as_str().get(length..)?.chars();
                    letter
                }
                other => other,
            },
            letter => letter,
        })
    })
}

/// Returns the letter of one or two UTF-16 units behind `\u`, and their length.
fn letter_of_units(digits: &str) -> (char, usize) {
    let unit = |at: usize| u16::from_str_radix(digits.get(at..at + 4)?, 16).ok();
    let first = unit(0).unwrap_or_default();
    let second = if digits.get(4..6) == Some("\\u") { unit(6) } else { None };
    match char::decode_utf16([first].into_iter().chain(second)).next() {
        Some(Ok(letter)) => (letter, if letter.len_utf16() == 2 { 10 } else { 4 }),
        _ => (char::REPLACEMENT_CHARACTER, 4),
    }
}

/// Shows no content.
impl fmt::Debug for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Json({} bytes)", self.0.len())
    }
}

/// Shows no content.
impl fmt::Debug for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({} bytes)", self.0.len())
    }
}

/// Shows no content.
impl fmt::Debug for Str<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Str({} bytes)", self.spelling.len())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;
    use serde_json::value::RawValue;

    use super::*;

    /// Any value. Equal keys and empty ones occur.
    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "[a\"\\\\/\n\t\u{1}é東😀 ]{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec(("[ab\"]{0,2}", inner), 0..5)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    /// JSON texts, most of them damaged in one place.
    fn any_text() -> impl Strategy<Value = String> {
        let damage = prop::sample::select(vec![
            "", "", "\\u0061", " ", "\n", "\"", "\\", ",", ":", "{", "}", "[", "]", "0", "-", ".", "e", "+",
            "\\u00e9", "\\ud83d", "\\ude00", "\u{1}", "é", "null", "tru", "\"a\":1,",
        ]);
        (any_value(), any::<bool>(), any::<prop::sample::Index>(), damage).prop_map(
            |(value, is_pretty, at, damage)| {
                let mut text = if is_pretty { format!("{value:#}") } else { value.to_string() };
                let place = at.index(text.len() + 1);
                if text.is_char_boundary(place) {
                    text.insert_str(place, damage);
                }
                text
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8 * ProptestConfig::default().cases))]

        #[test]
        fn any_text_is_read_as_by_serde_json(text in any_text()) {
            let is_json = serde_json::from_str::<&RawValue>(&text).is_ok();
            prop_assert_eq!(read(&text, Json::skip).is_ok(), is_json, "{}", text);
            let value = value(&text);
            prop_assert_eq!(value.is_ok(), is_json, "{}", text);
            let plain = super::value(&with_plain_keys(&text));
            prop_assert_eq!(value.as_ref().ok(), plain.as_ref().ok(), "{}", text);
            if let (Ok(own), Ok(theirs)) = (value, serde_json::from_str::<Value>(&text)) {
                prop_assert_eq!(own, theirs, "{}", text);
            }
        }
    }

    #[test]
    fn only_keys_lose_escapes_and_malformed_text_stays_so() {
        for (text, expected) in [
            (
                r#"{"\u0061\n":"\u0062:","c":["\u0064",{"\u0022e":{}}]}"#,
                r#"{"a\n":"\u0062:","c":["\u0064",{"\"e":{}}]}"#,
            ),
            (r#"{"a\\u0061":1}"#, r#"{"a\\u0061":1}"#),
            (r#"{"\u0061":1,"\u00"#, r#"{"a":1,"\u00"#),
        ] {
            let plain = with_plain_keys(text);
            assert_eq!(plain, expected);
            assert_eq!(value(&plain).ok(), value(text).ok());
        }
    }

    #[test]
    fn texts_and_numbers_are_read_leniently() {
        let cases = [
            (r#""plain""#, Some("plain"), None),
            (r#""esc\"aped\u0041\/""#, Some("esc\"apedA/"), None),
            (r#""""#, None, None),
            ("null", None, None),
            ("true", None, None),
            ("7", Some("7"), Some(7)),
            ("-1", Some("-1"), Some(-1)),
            ("1.50", Some("1.50"), None),
            ("7.0", Some("7.0"), Some(7)),
            (r#""7""#, Some("7"), Some(7)),
            (r#""7.0""#, Some("7.0"), None),
            ("1e300", Some("1e300"), None),
            ("18446744073709551615", Some("18446744073709551615"), None),
            ("[1,[2]]", None, None),
            (r#"{"a":{"b":1}}"#, None, None),
        ];
        for (json, text, number) in cases {
            let (mut own_text, mut own_number) = (Str::default(), Some(0));
            read(json, |json| json.text(&mut own_text)).expect(json);
            read(json, |json| json.number(&mut own_number)).expect(json);
            assert_eq!((own_text.text().as_deref(), own_number), (text, number), "{json}");
        }
        assert_eq!([Some(7), Some(-1), Some(1 << 53), None].map(count), [Some(7), None, None, None]);
    }

    #[test]
    fn lone_surrogate_becomes_a_replacement_character() {
        for (json, expected) in [
            (r#""a\ud83d""#, "a\u{fffd}"),
            (r#""\ud83d\ude00b""#, "😀b"),
            (r#""\ude00\ud83d""#, "\u{fffd}\u{fffd}"),
            (r#""\ud83d\u0041\\ud83d""#, "\u{fffd}A\\ud83d"),
            (r#""\uD83D é""#, "\u{fffd} é"),
        ] {
            assert_eq!(value(json).expect(json), expected, "{json}");
        }
    }

    #[test]
    fn keys_are_compared_in_place() {
        let known = |json: &str| {
            let (mut a, mut ab) = (None, None);
            read(json, |json| {
                json.object(|key| {
                    if let Some(value) = key.is("a") {
                        value.number(&mut a)
                    } else if let Some(value) = key.is_any(["ab", "abc"]) {
                        value.number(&mut ab)
                    } else {
                        key.skip()
                    }
                })
            })
            .expect(json);
            (a, ab)
        };
        assert_eq!(known(r#"{"a":1,"ab":2}"#), (Some(1), Some(2)));
        assert_eq!(known("{ \"a\" \n: 1 , \"abc\"\t:2 }"), (Some(1), Some(2)));
        assert_eq!(known(r#"{"a":1,"a":null,"b":3}"#), (None, None), "the last one counts");
        assert_eq!(known(r#"{"\u0061":1,"":2,"a\"":3}"#), (None, None), "escapes");
        assert_eq!(known(&with_plain_keys(r#"{"\u0061":1,"\u0061\u0062" : 2}"#)), (Some(1), Some(2)));
        assert_eq!(known(r#"[{"a":1}]"#), (None, None), "another form");
    }

    #[test]
    fn malformed_text_is_an_error_with_its_place() {
        for text in [
            "", "{", "{\"a\"}", "{\"a\":1,}", "[1 2]", "01", "1.", "-", "\"\\x\"", "\"\\u12g4\"", "{} {}",
            "nul",
        ] {
            assert!(read(text, Json::skip).is_err(), "{text}");
            assert!(value(text).is_err(), "{text}");
        }
        let error = read("{\n\"a\":x}", Json::skip).expect_err("malformed");
        assert_eq!((error.line(), error.column()), (2, 5));
    }

    #[test]
    fn law_r1_nesting_costs_no_stack() {
        for depth in [128, 129, 100_000] {
            let lists = "[".repeat(depth) + &"]".repeat(depth);
            let objects = "{\"a\":".repeat(depth) + "1" + &"}".repeat(depth);
            for nested in [lists, objects] {
                for text in [nested.clone(), format!("[{nested} , {nested}]")] {
                    assert!(read(&text, Json::skip).is_ok() && value(&text).is_ok(), "{depth}");
                    assert!(read(&text[..text.len() - 1], Json::skip).is_err(), "{depth}");
                    assert!(value(&text[1..]).is_err(), "{depth}");
                }
            }
        }
    }

    #[test]
    fn odd_numbers_become_null_and_the_last_key_counts() {
        let text = r#"{"n":1e999,"a":1,"a":{"b":[]},"é\n":-0.5}"#;
        assert_eq!(value(text).expect("JSON"), json!({"n": null, "a": {"b": []}, "é\n": -0.5}));
    }

    #[test]
    fn empty_and_false_values_say_nothing() {
        for (json, nothing) in [
            ("", true),
            ("null", true),
            ("false", true),
            (r#""""#, true),
            ("[ ]", true),
            ("{\n}", true),
            ("0", true),
            ("1", false),
            ("true", false),
            (r#""x""#, false),
            ("[0]", false),
            (r#"{"a":1}"#, false),
        ] {
            assert_eq!(is_nothing(json), nothing, "{json}");
        }
    }

    #[test]
    fn law_r3_debug_shows_no_content() {
        let mut text = Str::default();
        let mut shown = String::new();
        read(r#"{"key":"secret"}"#, |json| {
            shown += &format!("{json:?}");
            json.object(|key| {
                shown += &format!("{key:?}");
                key.is("key")?.text(&mut text)
            })
        })
        .expect("JSON");
        shown += &format!("{text:?}");
        assert!(!shown.contains("secret") && !shown.contains("key"), "{shown}");
    }
}
