//! Detection of text that looks like a key. A server may quote a key that is not configured here.

use std::ops::Range;

/// Lowercase prefixes of keys, each with the minimum number of bytes after it.
const BEGINNINGS: [(&str, usize); 18] = [
    ("sk-", 8),
    ("sk_", 16),
    ("pk_", 16),
    ("gsk_", 16),
    ("csk-", 16),
    ("xai-", 32),
    ("hf_", 16),
    ("aiza", 24),
    ("akia", 12),
    ("ghp_", 24),
    ("github_pat_", 24),
    ("glpat-", 16),
    ("xoxb-", 16),
    ("nvapi-", 24),
    ("pplx-", 24),
    ("r8_", 24),
    ("fw_", 20),
    ("eyj", 32),
];
/// Lowercase text that precedes a key.
const INTRODUCTIONS: [&str; 13] = [
    "bearer", "basic", "authorization", "api-key", "api_key", "apikey", "api key", "access_token",
    "auth_token", "secret", "password", "key", "key provided",
];
/// Minimum length of a key that is recognised only by the text before it.
const SHORTEST: usize = 8;
/// Minimum length of a key in a name, since names of tools and models can begin like keys.
const SHORTEST_IN_NAME: usize = 16;

/// Returns the ranges that look like keys in lowercase text, which may be cut off.
pub(super) fn find_in_text(bytes: &[u8]) -> Vec<Range<usize>> {
    let is_key = |place: &Range<usize>, word: &[u8]| {
        // A word at the cut may have been longer.
        let is_cut = place.end == bytes.len();
        rests(word).any(|(rest, more)| rest.len() >= more || is_cut)
            || (word.len() >= SHORTEST && is_no_plain_word(word) && is_introduced(bytes, place))
    };
    words_of(bytes).filter(|place| bytes.get(place.clone()).is_some_and(|word| is_key(place, word))).collect()
}

/// Returns the ranges of a complete lowercase name that are almost certainly keys.
pub(super) fn find_in_name(bytes: &[u8]) -> Vec<Range<usize>> {
    let is_long = |key: &[u8], more: usize| key.len() >= more.max(SHORTEST_IN_NAME) && is_no_plain_word(key);
    let is_key = |place: &Range<usize>, word: &[u8]| {
        rests(word).any(|(rest, more)| is_long(rest, more))
            || (is_long(word, SHORTEST) && is_introduced(bytes, place))
    };
    let long = words_of(bytes).filter(|place| place.len() >= SHORTEST_IN_NAME);
    long.filter(|place| bytes.get(place.clone()).is_some_and(|word| is_key(place, word))).collect()
}

/// Returns the part of a word after each key prefix it has, and the minimum length of that part in a key.
fn rests(word: &[u8]) -> impl Iterator<Item = (&[u8], usize)> {
    BEGINNINGS.iter().filter_map(|(beginning, more)| Some((word.strip_prefix(beginning.as_bytes())?, *more)))
}

/// Checks for a digit or a mask character (`*`). Without one it may be any word.
fn is_no_plain_word(word: &[u8]) -> bool {
    word.iter().any(|byte| byte.is_ascii_digit() || *byte == b'*')
}

/// Checks whether the text before a range introduces a key: `Bearer `, `api_key=`, `"key": "`.
fn is_introduced(bytes: &[u8], place: &Range<usize>) -> bool {
    let before = bytes.get(..place.start).unwrap_or_default();
    let between = |byte: &u8| b"\"' :=".contains(byte);
    let length = before.iter().rposition(|byte| !between(byte)).map_or(0, |last| last + 1);
    let name = before.get(..length).unwrap_or_default();
    name.len() < before.len() && INTRODUCTIONS.iter().any(|word| name.ends_with(word.as_bytes()))
}

/// Returns the ranges of the words that could be keys.
fn words_of(bytes: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let in_key = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.~+/*".contains(byte);
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + bytes.get(at..)?.iter().position(in_key)?;
        let rest = bytes.get(start..)?;
        at = start + rest.iter().position(|byte| !in_key(byte)).unwrap_or(rest.len());
        Some(start..at)
    })
}
