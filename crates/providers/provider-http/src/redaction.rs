//! Redaction of a server's text for errors and logs.
//!
//! Text from a server is [`ServerWords`], which cannot be printed. Only [`Redaction::show`] makes a text of it that can
//! appear in an error, a `Debug` or a log. So a key that a server repeats is never shown.
//!
//! The type enforces it. Redaction in `Display` is not enough: sources, spans and logs bypass it.

use std::borrow::Cow;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use secrecy::{ExposeSecret, SecretString};

use crate::path_segment::path_segment;

#[cfg(test)]
mod tests;

/// Minimum bytes of a secret that is searched for. A shorter one occurs by chance.
const SHORTEST_SECRET: usize = 6;
/// Bytes read beyond the shown length, so that a secret at the cut is recognised.
const READ_AHEAD: usize = 1 << 10;
/// Minimum bytes of a word that looks like a key.
const SHORTEST_KEY: usize = 16;
/// The beginnings of keys. Names of tools and models may begin so, too, but such names are short, or have no digit.
const BEGINNINGS: [&str; 18] = [
    "sk-", "sk_", "pk_", "gsk_", "csk-", "xai-", "hf_", "aiza", "akia", "ghp_", "github_pat_", "glpat-",
    "xoxb-", "nvapi-", "pplx-", "r8_", "fw_", "eyj",
];
/// The replacement for a secret.
const BLANK: &str = "[secret]";
/// The words before a key: `Bearer KEY`, `api_key=KEY`, `"key": "KEY"`.
const INTRODUCTIONS: [&str; 8] =
    ["bearer", "basic", "key", "token", "secret", "password", "authorization", "provided"];

/// The text of a server as it arrived. Neither `Debug` nor anything else shows it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ServerWords(String);

impl ServerWords {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether the text is this word, ignoring ASCII case.
    pub(crate) fn are(&self, word: &str) -> bool {
        self.0.eq_ignore_ascii_case(word)
    }

    /// Returns whether the text contains one of the lowercase phrases, ignoring ASCII case.
    pub(crate) fn contains_any(&self, phrases: &[&str]) -> bool {
        let words = self.0.to_ascii_lowercase();
        phrases.iter().any(|phrase| words.contains(phrase))
    }

    /// Appends the separator and more text.
    pub(crate) fn followed_by(self, separator: &str, more: &Self) -> Self {
        Self(self.0 + separator + &more.0)
    }
}

impl<T: Into<String>> From<T> for ServerWords {
    fn from(words: T) -> Self {
        Self(words.into())
    }
}

impl fmt::Debug for ServerWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerWords({} bytes)", self.0.len())
    }
}

/// The secrets that no text of a server may show.
#[derive(Clone, Default)]
pub struct Redaction {
    /// Each secret as it is, as it stands in a URL, and as it stands in JSON.
    forms: Arc<[SecretString]>,
}

impl Redaction {
    /// Creates a redaction of these secrets. Secrets shorter than six bytes are ignored, since they occur by
    /// chance.
    pub fn new(secrets: impl Iterator<Item = SecretString>) -> Self {
        let mut forms: Vec<SecretString> = Vec::new();
        for secret in secrets {
            let secret = secret.expose_secret();
            let in_url = path_segment(secret);
            let in_json = serde_json::Value::from(secret).to_string();
            let in_json = in_json.trim_matches('"').to_owned();
            for form in
                [secret.to_owned(), in_url.to_lowercase(), in_url, in_json.replace('/', "\\/"), in_json]
            {
                let is_new = forms.iter().all(|known| known.expose_secret() != form);
                if form.len() >= SHORTEST_SECRET && is_new {
                    forms.push(form.into());
                }
            }
        }
        Self { forms: forms.into() }
    }

    /// Returns at most `longest` bytes of the text, without
    /// - the secrets, also as they stand in a URL or in JSON;
    /// - text that looks like a key, also one that is not configured;
    /// - control characters.
    #[must_use]
    pub fn show(&self, words: &ServerWords, longest: usize) -> String {
        let read = words.0.floor_char_boundary(longest.saturating_add(READ_AHEAD));
        let words = words.0.get(..read).unwrap_or_default();
        let words = self.without_cut_secret(words);
        without(&self.blanks(words), words, longest)
    }

    /// Returns the text without the beginning of a secret at its end: a server or a limit may have cut it there.
    fn without_cut_secret<'a>(&self, words: &'a str) -> &'a str {
        let begun = |form: &str| {
            let ends = |length: &usize| form.get(..*length).is_some_and(|start| words.ends_with(start));
            (SHORTEST_SECRET..form.len()).rev().find(ends)
        };
        let begun = self.forms.iter().filter_map(|form| begun(form.expose_secret())).max();
        words.get(..words.len() - begun.unwrap_or(0)).unwrap_or_default()
    }

    /// Returns whether the text contains anything that is not shown.
    pub(crate) fn would_redact(&self, words: &str) -> bool {
        !self.blanks(words).is_empty()
    }

    /// Returns a name or an id, in which anything that is a secret or looks like one is replaced. The result may be shown
    /// by code that knows no secrets.
    pub(crate) fn identifier<'a>(&self, word: &'a str) -> Cow<'a, str> {
        match self.blanks(word).as_slice() {
            [] => Cow::Borrowed(word),
            blanks => Cow::Owned(without(blanks, word, usize::MAX)),
        }
    }

    /// Does the same for the id of a call. Different ids stay different.
    pub(crate) fn call_id<'a>(&self, id: &'a str) -> Cow<'a, str> {
        match self.identifier(id) {
            // An id that looks like a redacted one must differ from those.
            shown @ Cow::Borrowed(_) if !id.contains(BLANK) => shown,
            shown => {
                let mut hasher = DefaultHasher::new();
                id.hash(&mut hasher);
                Cow::Owned(format!("{shown}-{:016x}", hasher.finish()))
            }
        }
    }

    /// Returns the ranges to hide, sorted and disjoint.
    fn blanks(&self, words: &str) -> Vec<Range<usize>> {
        let mut blanks: Vec<Range<usize>> = Vec::new();
        for form in self.forms.iter().map(ExposeSecret::expose_secret) {
            blanks.extend(words.match_indices(form).map(|(at, _)| at..at + form.len()));
        }
        blanks.extend(apparent_keys(words));
        blanks.sort_by_key(|range| range.start);
        blanks.dedup_by(|range, last| {
            let touches = range.start <= last.end;
            last.end = if touches { last.end.max(range.end) } else { last.end };
            touches
        });
        blanks
    }
}

impl fmt::Debug for Redaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redaction").finish_non_exhaustive()
    }
}

/// Returns the places of words that look like keys. A server may quote a key that is not configured here, with letters of it
/// masked by `*`.
fn apparent_keys(words: &str) -> impl Iterator<Item = Range<usize>> {
    let in_key = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~+/*".contains(&byte);
    let mut at = 0;
    let places = std::iter::from_fn(move || {
        let rest = words.as_bytes().get(at..)?;
        let start = at + rest.iter().position(|byte| in_key(*byte))?;
        let word = words.as_bytes().get(start..)?;
        at = start + word.iter().position(|byte| !in_key(*byte)).unwrap_or(word.len());
        Some(start..at)
    });
    places.filter(|place| {
        let is_long = place.len() >= SHORTEST_KEY;
        let word = words.get(place.clone()).filter(|_| is_long).unwrap_or_default();
        let begins =
            |start: &&str| word.get(..start.len()).is_some_and(|found| found.eq_ignore_ascii_case(start));
        word.contains(|letter: char| letter.is_ascii_digit() || letter == '*')
            && (BEGINNINGS.iter().any(begins) || is_introduced(words.get(..place.start).unwrap_or_default()))
    })
}

/// Checks whether this text introduces a key.
fn is_introduced(before: &str) -> bool {
    let name = before.trim_end_matches(['"', '\'', ' ', ':', '=']);
    let ends = |word: &&str| {
        let start = name.len().checked_sub(word.len());
        start.and_then(|start| name.get(start..)).is_some_and(|end| end.eq_ignore_ascii_case(word))
    };
    name.len() < before.len() && INTRODUCTIONS.iter().any(ends)
}

/// Returns the text with these ranges replaced, cut to `longest` bytes.
fn without(blanks: &[Range<usize>], words: &str, longest: usize) -> String {
    let mut shown = String::new();
    let mut at = 0;
    for blank in blanks {
        push_bounded(&mut shown, words.get(at..blank.start).unwrap_or_default(), longest);
        if shown.len().saturating_add(BLANK.len()) <= longest {
            shown.push_str(BLANK);
        }
        at = blank.end;
    }
    push_bounded(&mut shown, words.get(at..).unwrap_or_default(), longest);
    shown
}

/// Appends text up to a total of `longest` bytes, with spaces in place of control characters.
fn push_bounded(shown: &mut String, words: &str, longest: usize) {
    let room = longest.saturating_sub(shown.len());
    let words = words.get(..words.floor_char_boundary(room)).unwrap_or_default();
    shown.extend(words.chars().map(|c| if c.is_control() { ' ' } else { c }));
}
