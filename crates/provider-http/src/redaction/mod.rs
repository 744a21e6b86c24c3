//! Redaction of a server's text for errors and logs.
//!
//! Text from a server is [`ServerWords`], which cannot be printed. [`Redaction::show`] converts it into
//! [`ServerText`], without secrets and control characters, and with limited length. Only that can appear in an
//! error, a `Debug` or a log. So a key that a server repeats is never shown.
//!
//! The types enforce it. Redaction in `Display` is not enough: sources, spans and logs bypass it.

mod decoded;
mod forms;
mod lookalikes;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use secrecy::{ExposeSecret, SecretString};

use decoded::Decoded;
use forms::Forms;

/// Maximum bytes of a name that is checked without an allocation.
const LONGEST_AT_A_GLANCE: usize = 128;
/// Minimum bytes of a secret that is searched for. A shorter one occurs by chance.
const SHORTEST_SECRET: usize = 6;
/// Bytes read beyond the shown length, so that a secret at the cut is recognised.
const READ_AHEAD: usize = 1 << 10;
/// Maximum number of decoding passes in the search for secrets. A URL in JSON is encoded twice.
const MOST_ENCODED: usize = 2;

/// The text of a server as it arrived. Neither `Debug` nor anything else shows it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ServerWords(String);

impl ServerWords {
    /// Returns whether the text is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether the text is this word, ignoring ASCII case.
    pub fn are(&self, word: &str) -> bool {
        self.0.eq_ignore_ascii_case(word)
    }

    /// Returns whether the text contains one of the lowercase phrases, ignoring ASCII case.
    pub fn contains_any(&self, phrases: &[&str]) -> bool {
        let words = self.0.to_ascii_lowercase();
        phrases.iter().any(|phrase| words.contains(phrase))
    }

    /// Appends the separator and more text.
    pub fn followed_by(self, separator: &str, more: &Self) -> Self {
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

/// Text that came from a server and may be shown: without secrets and control characters, and with limited length.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ServerText(String);

impl ServerText {
    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether the text is a word for programs, such as `rate_limit_exceeded` or `messages[3].content`.
    /// Such a word is no content of a conversation.
    pub fn is_word(&self) -> bool {
        let in_word = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:/[]".contains(&byte);
        !self.0.is_empty() && self.0.bytes().all(in_word)
    }
}

impl fmt::Display for ServerText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ServerText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// The secrets that no text of a server may show.
#[derive(Clone, Default)]
pub struct Redaction(Arc<Secrets>);

#[derive(Default)]
struct Secrets {
    secrets: Box<[SecretString]>,
    /// The forms of the secrets, computed at first use.
    forms: OnceLock<Forms>,
}

impl Redaction {
    /// The replacement for a secret.
    pub const BLANK: &str = "[secret]";

    /// Creates a redaction of these secrets. Secrets shorter than six bytes are ignored, since they occur by
    /// chance.
    pub fn new(secrets: impl Iterator<Item = SecretString>) -> Self {
        let secrets = secrets.filter(|secret| secret.expose_secret().len() >= SHORTEST_SECRET).collect();
        Self(Arc::new(Secrets { secrets, forms: OnceLock::new() }))
    }

    /// Returns at most `longest` bytes of the text, without
    /// - the secrets, also in pieces of twelve bytes, cut off at the end, in another case, or encoded (percent,
    ///   JSON, HTML, base64, hex);
    /// - text that looks like a key, also one that is not configured.
    pub fn show(&self, words: &ServerWords, longest: usize) -> ServerText {
        let read = words.0.floor_char_boundary(longest.saturating_add(READ_AHEAD));
        let words = words.0.get(..read).unwrap_or_default();
        ServerText(without(&self.blanks_in_text(words), words, longest))
    }

    /// Returns whether the text contains anything that is not shown.
    pub fn would_redact(&self, words: &ServerWords) -> bool {
        !self.blanks_in_text(&words.0).is_empty()
    }

    /// Returns a name or an id, in which anything that is a secret or looks like one is replaced.
    ///
    /// A name is complete. So its end is not taken for the beginning of a secret, and a key in it must have its
    /// full length. The result may be shown by code that knows no secrets.
    pub fn identifier<'a>(&self, word: &'a str) -> Cow<'a, str> {
        if !self.may_hide_some_of(word) {
            return Cow::Borrowed(word);
        }
        match self.blanks_in_name(word).as_slice() {
            [] => Cow::Borrowed(word),
            blanks => Cow::Owned(without(blanks, word, usize::MAX)),
        }
    }

    /// Checks a name without an allocation. Most names hide nothing, and each answer has some.
    fn may_hide_some_of(&self, name: &str) -> bool {
        let mut small = [0; LONGEST_AT_A_GLANCE];
        let Some(small) = small.get_mut(..name.len()) else { return true };
        small.copy_from_slice(name.as_bytes());
        small.make_ascii_lowercase();
        let may_be_encoded = small.iter().any(|byte| b"%\\&".contains(byte));
        may_be_encoded
            || !self.forms().find_in(small).is_empty()
            || !lookalikes::find_in_name(small).is_empty()
    }

    fn forms(&self) -> &Forms {
        let secrets = self.0.secrets.iter().map(ExposeSecret::expose_secret);
        self.0.forms.get_or_init(|| Forms::from_secrets(secrets))
    }

    /// Returns the ranges to hide in a text, which may be cut off.
    fn blanks_in_text(&self, words: &str) -> Vec<Range<usize>> {
        self.blanks(words, |forms, bytes| {
            let mut found = forms.find_in(bytes);
            found.extend(forms.find_cut(bytes).chain(lookalikes::find_in_text(bytes)));
            found
        })
    }

    /// Returns the ranges to hide in a name, which is complete.
    fn blanks_in_name(&self, name: &str) -> Vec<Range<usize>> {
        self.blanks(name, |forms, bytes| {
            let mut found = forms.find_in(bytes);
            found.extend(lookalikes::find_in_name(bytes));
            found
        })
    }

    /// Returns the ranges found in the text or a decoded form of it, sorted and disjoint.
    fn blanks(&self, words: &str, find: impl Fn(&Forms, &[u8]) -> Vec<Range<usize>>) -> Vec<Range<usize>> {
        let forms = self.forms();
        let mut blanks = Vec::new();
        let mut text = Decoded::plain(words);
        for _ in 0..=MOST_ENCODED {
            blanks.extend(find(forms, text.bytes()).iter().map(|found| text.source_of(found)));
            match text.decode() {
                Some(decoded) => text = decoded,
                None => break,
            }
        }
        joined(blanks, words)
    }
}

impl fmt::Debug for Redaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redaction").finish_non_exhaustive()
    }
}

/// Sorts the ranges, merges those that touch, and widens them to whole characters.
fn joined(mut ranges: Vec<Range<usize>>, words: &str) -> Vec<Range<usize>> {
    ranges.sort_by_key(|range| range.start);
    let mut joined: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        let range = words.floor_char_boundary(range.start)..words.ceil_char_boundary(range.end);
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

/// Returns the text with these ranges replaced, cut to `longest` bytes.
fn without(blanks: &[Range<usize>], words: &str, longest: usize) -> String {
    let mut shown = String::new();
    let mut at = 0;
    for blank in blanks {
        push_bounded(&mut shown, words.get(at..blank.start).unwrap_or_default(), longest);
        if shown.len().saturating_add(Redaction::BLANK.len()) <= longest {
            shown.push_str(Redaction::BLANK);
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
