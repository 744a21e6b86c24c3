//! Words of a server on their way into errors and logs.
//!
//! What comes from a server is [`ServerWords`], which nothing can print. [`Redaction::show`] makes [`ServerText`] of them, without
//! secrets, control characters and more length than is wanted; only that can stand in an error, a `Debug` or a log. So a server that
//! repeats a key, wherever it does, cannot have it shown.

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

/// The longest name that is looked through without a copy, in bytes.
const LONGEST_AT_A_GLANCE: usize = 128;
/// The shortest secret that is looked for, in bytes: a shorter one occurs by chance.
const SHORTEST_SECRET: usize = 6;
/// How much more than is shown is read, so that a secret at the cut is known as one.
const READ_AHEAD: usize = 1 << 10;
/// How many times words may be encoded for a secret in them to be found: a URL in JSON is encoded twice.
const MOST_ENCODED: usize = 2;

/// Words of a server as they came. Neither `Debug` nor anything else shows them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ServerWords(String);

impl ServerWords {
    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether they are this word, in whatever case.
    pub fn are(&self, word: &str) -> bool {
        self.0.eq_ignore_ascii_case(word)
    }

    /// Whether one of the phrases, written in small letters, is among them in whatever case.
    pub fn mention(&self, phrases: &[&str]) -> bool {
        let words = self.0.to_ascii_lowercase();
        phrases.iter().any(|phrase| words.contains(phrase))
    }

    /// These words, then those.
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

/// Text that came from a server and may be shown: without secrets and control characters, and bounded.
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

    /// Whether it is a word as programs know it, such as `rate_limit_exceeded` or `messages[3].content`: nothing that was said in
    /// a conversation.
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
    /// What they look like in other people's words, once somebody asks.
    forms: OnceLock<Forms>,
}

impl Redaction {
    /// What stands in place of a secret.
    pub const BLANK: &str = "[secret]";

    /// Creates a redaction of these secrets, of which those shorter than six bytes are left out: they occur by chance.
    pub fn new(secrets: impl Iterator<Item = SecretString>) -> Self {
        let secrets = secrets.filter(|secret| secret.expose_secret().len() >= SHORTEST_SECRET).collect();
        Self(Arc::new(Secrets { secrets, forms: OnceLock::new() }))
    }

    /// The words, at most `longest` bytes of them, without
    /// - the secrets, also in pieces of twelve bytes, cut off at the end, in other case, or encoded (percent, JSON, HTML, base64, hex);
    /// - what looks like a key, whoever's it is.
    pub fn show(&self, words: &ServerWords, longest: usize) -> ServerText {
        let read = words.0.floor_char_boundary(longest.saturating_add(READ_AHEAD));
        let words = words.0.get(..read).unwrap_or_default();
        ServerText(without(&self.blanks_in_text(words), words, longest))
    }

    /// Whether there is something in the words that is not shown.
    pub fn hides_some_of(&self, words: &ServerWords) -> bool {
        !self.blanks_in_text(&words.0).is_empty()
    }

    /// A name or an id: as it came if nothing in it is a secret or looks like one, else with that blanked out. It is whole, so
    /// its end is no beginning of a secret, and what looks like a key must be as long as one. It may be shown where nobody knows of
    /// secrets.
    pub fn identifier<'a>(&self, word: &'a str) -> Cow<'a, str> {
        if !self.may_hide_some_of(word) {
            return Cow::Borrowed(word);
        }
        match self.blanks_in_name(word).as_slice() {
            [] => Cow::Borrowed(word),
            blanks => Cow::Owned(without(blanks, word, usize::MAX)),
        }
    }

    /// A look at a name that copies nothing: most names hide nothing, and each answer has some.
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
        self.0.forms.get_or_init(|| Forms::of(secrets))
    }

    /// Where there is something that is not shown in a text, which may be cut off.
    fn blanks_in_text(&self, words: &str) -> Vec<Range<usize>> {
        self.blanks(words, |forms, bytes| {
            let mut found = forms.find_in(bytes);
            found.extend(forms.find_cut(bytes).chain(lookalikes::find_in_text(bytes)));
            found
        })
    }

    /// Where there is something that is not shown in a name, which is whole.
    fn blanks_in_name(&self, name: &str) -> Vec<Range<usize>> {
        self.blanks(name, |forms, bytes| {
            let mut found = forms.find_in(bytes);
            found.extend(lookalikes::find_in_name(bytes));
            found
        })
    }

    /// Where something is found, however it is encoded, in order and apart from one another.
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

/// The ranges in order, as one where they touch, and widened to whole characters.
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

/// The words without these parts of them, and bounded.
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

/// Adds words as far as there is room, with spaces in place of control characters.
fn push_bounded(shown: &mut String, words: &str, longest: usize) {
    let room = longest.saturating_sub(shown.len());
    let words = words.get(..words.floor_char_boundary(room)).unwrap_or_default();
    shown.extend(words.chars().map(|c| if c.is_control() { ' ' } else { c }));
}
