//! Scanners for JSON strings and numbers at the beginning of bytes.
//!
//! They process eight bytes at a time, as one word. Byte by byte, an event with padding beside its text would cost
//! 141 instructions more, and an event with two token counts 154.

use memchr::memchr;

/// The most digits of a token count.
const MOST_DIGITS: usize = 15;

/// A string as written, without its quotes.
pub(super) struct Scanned<'a> {
    pub(super) bytes: &'a [u8],
    /// Whether it contains escapes.
    pub(super) escaped: bool,
    /// Whether it is known to be ASCII, and therefore UTF-8.
    pub(super) ascii: bool,
}

/// Returns the string up to its closing quote. Returns `None` if the quote is missing, or if the string contains a
/// lone surrogate or bytes that JSON forbids.
#[inline]
pub(super) fn string(bytes: &[u8]) -> Option<Scanned<'_>> {
    let plain = plain(bytes);
    if bytes.get(plain) == Some(&b'"') {
        return Some(Scanned { bytes: bytes.get(..plain)?, escaped: false, ascii: true });
    }
    other_string(bytes, plain)
}

/// Returns a string that begins with this number of plain bytes.
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

/// Returns the number of bytes at the beginning that are ASCII and not special, eight at a time. The last seven
/// bytes do not count.
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

/// Returns the index of the first of eight bytes that is special or not ASCII; eight if none is.
#[inline]
fn first_special(bytes: u64) -> usize {
    // The highest bit of a byte is set where the byte is below the limit. After the first such byte, it may be set
    // elsewhere too, because a subtraction borrows.
    let below = |bytes: u64, limit: u8| bytes.wrapping_sub(each(limit)) & !bytes;
    // Of all bytes that are no control characters, this maps only the quote to a space.
    let quote_or_control = below(bytes ^ each(b'"' ^ b' '), b' ' + 1);
    let backslash = below(bytes ^ each(b'\\'), 1);
    first_highest(quote_or_control | backslash | bytes)
}

#[inline]
fn is_special(byte: u8) -> bool {
    byte == b'"' || byte == b'\\' || byte < b' '
}

/// Returns the character of an escape after its `\`, and the number of its bytes; `None` if it is invalid or a
/// lone surrogate.
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

/// Returns the number in four hexadecimal digits.
fn char_of(digits: &[u8]) -> Option<char> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    char::from_u32(digits.iter().try_fold(0, |number, byte| Some(number * 16 + digit(byte)?))?)
}

/// Writes the text of a string with escapes.
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

/// Returns the digits of a whole number that is not negative.
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

/// Returns the digits of a [number] that fits every reader of JSON.
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

/// Returns the number of leading digits of eight bytes, from the lowest one on.
#[inline]
fn leading_digits(eight: u64) -> usize {
    let above_nine = (eight ^ each(b'0')).wrapping_add(each(0x7f - 9)) | eight;
    first_highest(above_nine)
}

/// Returns the byte, repeated eight times.
const fn each(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// Returns the index of the first of eight bytes whose highest bit is set; eight if there is none.
#[inline]
fn first_highest(bytes: u64) -> usize {
    (bytes & each(0x80)).trailing_zeros() as usize / 8
}

#[cfg(test)]
mod tests;
