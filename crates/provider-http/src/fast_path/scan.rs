//! Strings and numbers as JSON writes them, at the beginning of some bytes.
//!
//! Strings and numbers are looked at eight bytes at a time, in one word. Byte by byte an event with a padding beside its
//! text would cost 141 instructions more, and one with two token counts 154.

use memchr::memchr;

/// The most digits of a token count.
const MOST_DIGITS: usize = 15;

/// A string as it stands there, without its quotes.
pub(super) struct Scanned<'a> {
    pub(super) bytes: &'a [u8],
    /// It holds escapes.
    pub(super) escaped: bool,
    /// It is known to hold nothing else than ASCII, so it is UTF-8.
    pub(super) ascii: bool,
}

/// The string up to its closing quote. `None` if it has no end here, what JSON forbids in strings, or half of a character.
#[inline]
pub(super) fn string(bytes: &[u8]) -> Option<Scanned<'_>> {
    let plain = plain(bytes);
    if bytes.get(plain) == Some(&b'"') {
        return Some(Scanned { bytes: bytes.get(..plain)?, escaped: false, ascii: true });
    }
    other_string(bytes, plain)
}

/// A string that begins with so many plain bytes.
#[inline(never)]
fn other_string(bytes: &[u8], plain: usize) -> Option<Scanned<'_>> {
    let next = |at: usize| Some(at + bytes.get(at..)?.iter().position(|byte| is_special(*byte))?);
    let mut at = next(plain)?;
    let mut escaped = false;
    while bytes.get(at) == Some(&b'\\') {
        escaped = true;
        let (_, length) = unescaped(bytes.get(at + 1..)?)?;
        at = next(at + 1 + length)?;
    }
    let bytes = bytes.split_at_checked(at).filter(|(_, end)| end.starts_with(b"\""))?.0;
    Some(Scanned { bytes, escaped, ascii: false })
}

/// How many bytes at the beginning are ASCII, and neither special nor among the last seven. They are looked at eight at a
/// time.
#[inline]
fn plain(bytes: &[u8]) -> usize {
    let mut length = 0;
    while let Some(eight) = bytes.get(length..).and_then(<[u8]>::first_chunk) {
        let special = first_special(u64::from_le_bytes(*eight));
        if special < 8 {
            return length + special;
        }
        length += 8;
    }
    length
}

/// Which of eight bytes is the first that is special or no ASCII; eight if none is.
#[inline]
fn first_special(bytes: u64) -> usize {
    // The highest bit of a byte is set where it is below the limit. Behind the first one it may be set elsewhere, too, because
    // a subtraction borrows.
    let below = |bytes: u64, limit: u8| bytes.wrapping_sub(each(limit)) & !bytes;
    // This turns the quote, and nothing else that is no control character, into a space.
    let quote_or_control = below(bytes ^ each(b'"' ^ b' '), b' ' + 1);
    let backslash = below(bytes ^ each(b'\\'), 1);
    first_highest(quote_or_control | backslash | bytes)
}

#[inline]
fn is_special(byte: u8) -> bool {
    byte == b'"' || byte == b'\\' || byte < b' '
}

/// What `\` before these bytes stands for, and how many of them say it; `None` if nothing, or half of a character.
fn unescaped(bytes: &[u8]) -> Option<(char, usize)> {
    let letter = match bytes.first()? {
        byte @ (b'"' | b'\\' | b'/') => char::from(*byte),
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return Some((char_of(bytes.get(1..5)?)?, 5)),
        _ => return None,
    };
    Some((letter, 1))
}

/// The character with this number, in four digits.
fn char_of(digits: &[u8]) -> Option<char> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    char::from_u32(digits.iter().try_fold(0, |number, byte| Some(number * 16 + digit(byte)?))?)
}

/// Writes what a string with escapes says.
pub(super) fn unescape(text: &str, into: &mut String) {
    into.clear();
    let mut rest = text;
    while let Some((plain, escape)) = memchr(b'\\', rest.as_bytes()).and_then(|at| rest.split_at_checked(at))
    {
        into.push_str(plain);
        let escape = escape.get(1..).unwrap_or_default();
        let Some((letter, length)) = unescaped(escape.as_bytes()) else { return };
        into.push(letter);
        rest = escape.get(length..).unwrap_or_default();
    }
    into.push_str(rest);
}

/// The digits of a whole number that is not negative.
#[inline]
pub(super) fn number(bytes: &[u8]) -> Option<&[u8]> {
    if let Some(eight) = bytes.first_chunk() {
        let length = leading_digits(u64::from_le_bytes(*eight));
        if length < 8 {
            return no_leading_zero(bytes.get(..length)?);
        }
    }
    let digits = bytes.iter().position(|byte| !byte.is_ascii_digit())?;
    no_leading_zero(bytes.get(..digits)?)
}

/// A [number] that any reader can hold.
#[inline]
pub(super) fn count(bytes: &[u8]) -> Option<&[u8]> {
    number(bytes).filter(|digits| digits.len() <= MOST_DIGITS)
}

#[inline]
fn no_leading_zero(digits: &[u8]) -> Option<&[u8]> {
    match digits {
        [] | [b'0', _, ..] => None,
        digits => Some(digits),
    }
}

/// How many of eight bytes are digits, from the lowest one on.
#[inline]
fn leading_digits(eight: u64) -> usize {
    let above_nine = (eight ^ each(b'0')).wrapping_add(each(0x7f - 9)) | eight;
    first_highest(above_nine)
}

/// This byte eight times.
const fn each(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// The first of eight bytes whose highest bit is set; eight if there is none.
#[inline]
fn first_highest(bytes: u64) -> usize {
    (bytes & each(0x80)).trailing_zeros() as usize / 8
}

#[cfg(test)]
mod tests;
