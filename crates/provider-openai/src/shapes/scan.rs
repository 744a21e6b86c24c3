//! Strings and numbers as JSON writes them, at the beginning of some bytes.

/// The string up to its closing quote, and whether it holds escapes. `None` if it has no end here, what JSON forbids in
/// strings, or half of a character.
#[inline]
pub(super) fn string(bytes: &[u8]) -> Option<(&[u8], bool)> {
    let mut at = bytes.iter().position(|byte| is_special(*byte))?;
    let mut escaped = false;
    while bytes.get(at) == Some(&b'\\') {
        escaped = true;
        let (_, length) = unescaped(bytes.get(at + 1..)?)?;
        at += 1 + length;
        at += bytes.get(at..)?.iter().position(|byte| is_special(*byte))?;
    }
    (bytes.get(at) == Some(&b'"')).then(|| (bytes.get(..at).unwrap_or_default(), escaped))
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
    while let Some((plain, escape)) = rest.split_once('\\') {
        into.push_str(plain);
        let Some((letter, length)) = unescaped(escape.as_bytes()) else { return };
        into.push(letter);
        rest = escape.get(length..).unwrap_or_default();
    }
    into.push_str(rest);
}

/// The digits of a whole number that is not negative.
#[inline]
pub(super) fn number(bytes: &[u8]) -> Option<&[u8]> {
    let digits = bytes.iter().position(|byte| !byte.is_ascii_digit())?;
    let number = bytes.get(..digits)?;
    match number {
        [] | [b'0', _, ..] => None,
        number => Some(number),
    }
}

/// Digits as a number; `None` if there are too many for a count.
#[inline]
pub(super) fn value(digits: &[u8]) -> Option<i64> {
    digits
        .iter()
        .try_fold(0_i64, |number, digit| number.checked_mul(10)?.checked_add(i64::from(digit - b'0')))
}
