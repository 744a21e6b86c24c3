//! What looks like a key, whoever's it is: a server may quote one that is not configured here.

use std::ops::Range;

/// What keys begin with, in small letters, and how many more bytes such a word has at least.
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
/// What a key follows.
const INTRODUCTIONS: [&str; 13] = [
    "bearer",
    "basic",
    "authorization",
    "api-key",
    "api_key",
    "apikey",
    "api key",
    "access_token",
    "auth_token",
    "secret",
    "password",
    "key",
    "key provided",
];
/// How long a key is at least that is known only by what it follows.
const SHORTEST: usize = 8;
/// How much of a key there is at least in a name: names of tools and models begin like keys, too.
const SHORTEST_IN_NAME: usize = 16;

/// Where a text in small letters, which may be cut off, holds what looks like a key.
pub(super) fn find_in_text(bytes: &[u8]) -> Vec<Range<usize>> {
    let is_key = |place: &Range<usize>, word: &[u8]| {
        // What is cut off here may have been longer.
        let is_cut = place.end == bytes.len();
        rests(word).any(|(rest, more)| rest.len() >= more || is_cut)
            || (word.len() >= SHORTEST && is_no_plain_word(word) && is_introduced(bytes, place))
    };
    words_of(bytes).filter(|place| bytes.get(place.clone()).is_some_and(|word| is_key(place, word))).collect()
}

/// Where a name in small letters, which is whole, holds what is certain enough to be a key.
pub(super) fn find_in_name(bytes: &[u8]) -> Vec<Range<usize>> {
    let is_long = |key: &[u8], more: usize| key.len() >= more.max(SHORTEST_IN_NAME) && is_no_plain_word(key);
    let is_key = |place: &Range<usize>, word: &[u8]| {
        rests(word).any(|(rest, more)| is_long(rest, more))
            || (is_long(word, SHORTEST) && is_introduced(bytes, place))
    };
    let long = words_of(bytes).filter(|place| place.len() >= SHORTEST_IN_NAME);
    long.filter(|place| bytes.get(place.clone()).is_some_and(|word| is_key(place, word))).collect()
}

/// What follows in a word that begins like a key, and how much of it there is in a key.
fn rests(word: &[u8]) -> impl Iterator<Item = (&[u8], usize)> {
    BEGINNINGS.iter().filter_map(|(beginning, more)| Some((word.strip_prefix(beginning.as_bytes())?, *more)))
}

/// Whether some digit, or what stands for hidden letters, is in it: otherwise it may be any word.
fn is_no_plain_word(word: &[u8]) -> bool {
    word.iter().any(|byte| byte.is_ascii_digit() || *byte == b'*')
}

/// Whether a place is behind what a key follows: `Bearer `, `api_key=`, `"key": "`.
fn is_introduced(bytes: &[u8], place: &Range<usize>) -> bool {
    let before = bytes.get(..place.start).unwrap_or_default();
    let between = |byte: &u8| b"\"' :=".contains(byte);
    let length = before.iter().rposition(|byte| !between(byte)).map_or(0, |last| last + 1);
    let name = before.get(..length).unwrap_or_default();
    name.len() < before.len() && INTRODUCTIONS.iter().any(|word| name.ends_with(word.as_bytes()))
}

/// The words that could be keys.
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
