//! Words wrapped to a width as they arrive.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::look::Look;

/// The length of a word that always fits in front of the edge. A word is held back only nearer to the edge than this.
/// The terminal breaks a longer one, which keeps an address in one piece.
const SURE: usize = 24;

/// The text in front of a line, such as the bar of a quote.
#[derive(Debug, Clone, Default)]
pub(super) struct Prefix {
    text: String,
    width: usize,
}

impl Prefix {
    #[must_use]
    pub(super) fn with(mut self, look: &Look, text: &str) -> Self {
        self.width += text.width();
        self.text += &look.paint(text);
        self
    }

    /// Returns as many spaces as this prefix has columns more than `other`, behind `other`.
    #[must_use]
    pub(super) fn blank_after(&self, other: &Self) -> Self {
        let spaces = " ".repeat(self.width.saturating_sub(other.width));
        other.clone().with(&Look::default(), &spaces)
    }
}

/// The state of the word at the end of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    /// Held back, or not begun.
    Whole,
    /// Its beginning is far from the edge and is written at once. No line break comes before the rest.
    Begun,
}

/// One line of text, broken between words.
#[derive(Debug)]
pub(super) struct Wrap {
    width: usize,
    column: usize,
    /// The front of the lines after the first.
    hanging: Prefix,
    spaces: usize,
    held: Vec<(Look, String)>,
    held_width: usize,
    word: Word,
}

impl Wrap {
    pub(super) fn new(width: usize) -> Self {
        Self {
            width,
            column: 0,
            hanging: Prefix::default(),
            spaces: 0,
            held: Vec::new(),
            held_width: 0,
            word: Word::Whole,
        }
    }

    /// Sets the width of the lines from here on.
    pub(super) fn set_width(&mut self, width: usize) {
        self.width = width;
    }

    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Begins a line with `first` in front, and `hanging` in front of the lines into which it is broken.
    pub(super) fn begin_line(&mut self, first: &Prefix, hanging: Prefix, out: &mut String) {
        out.push_str(&first.text);
        self.column = first.width;
        self.hanging = hanging;
    }

    pub(super) fn push(&mut self, look: &Look, text: &str, out: &mut String) {
        for char in text.chars() {
            if matches!(char, ' ' | '\t') {
                self.end_word(out);
                self.spaces += if char == '\t' { 4 } else { 1 };
                continue;
            }
            if breaks_anywhere(char) {
                self.end_word(out);
            }
            self.hold(look, char);
            if breaks_anywhere(char) {
                self.end_word(out);
            } else if self.column + self.spaces + self.held_width + SURE <= self.width {
                self.word = Word::Begun;
            }
        }
        if self.word == Word::Begun {
            self.write(out);
        }
    }

    /// Writes the word that is held back.
    pub(super) fn end_word(&mut self, out: &mut String) {
        self.write(out);
        self.word = Word::Whole;
    }

    pub(super) fn end_line(&mut self, out: &mut String) {
        self.interrupt(out);
        out.push('\n');
    }

    /// Writes the text that is held back. Other output may follow: the line is at its beginning again.
    pub(super) fn interrupt(&mut self, out: &mut String) {
        self.end_word(out);
        (self.column, self.spaces) = (0, 0);
    }

    fn hold(&mut self, look: &Look, char: char) {
        self.held_width += char.width().unwrap_or(0);
        match self.held.last_mut() {
            Some((last, text)) if last == look => text.push(char),
            _ => self.held.push((look.clone(), char.into())),
        }
    }

    fn write(&mut self, out: &mut String) {
        if self.held.is_empty() {
            return;
        }
        let end = self.column + self.spaces + self.held_width;
        if end > self.width && self.column > self.hanging.width && self.word == Word::Whole {
            out.push('\n');
            out.push_str(&self.hanging.text);
            self.column = self.hanging.width;
        } else {
            out.extend(std::iter::repeat_n(' ', self.spaces));
            self.column += self.spaces;
        }
        self.spaces = 0;
        for (look, text) in self.held.drain(..) {
            out.push_str(&look.paint(&text));
        }
        self.column += self.held_width;
        self.held_width = 0;
    }
}

/// Returns a plain text with its lines wrapped. The further lines of each have the same spaces in front.
pub(crate) fn wrapped(text: &str, width: usize) -> String {
    let (mut out, mut wrap, plain) = (String::new(), Wrap::new(width), Look::default());
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            wrap.end_line(&mut out);
        }
        let content = line.trim_start_matches(' ');
        let indent = Prefix::default().with(&plain, line.strip_suffix(content).unwrap_or_default());
        wrap.begin_line(&indent, indent.clone(), &mut out);
        wrap.push(&plain, content, &mut out);
    }
    wrap.interrupt(&mut out);
    out
}

/// Checks whether a line may be broken on both sides of this character, as between those of Chinese and Japanese.
fn breaks_anywhere(char: char) -> bool {
    matches!(char, '\u{3040}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3fffd}')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what is written for each piece, at this width, after `- `.
    fn wrapped(width: usize, pieces: &[&str]) -> Vec<String> {
        let plain = Look::default();
        let mut wrap = Wrap::new(width);
        let mut begun = String::new();
        let first = Prefix::default().with(&plain, "- ");
        wrap.begin_line(&first, first.blank_after(&Prefix::default()), &mut begun);
        let push = |piece: &&str| {
            let mut out = std::mem::take(&mut begun);
            wrap.push(&plain, piece, &mut out);
            out
        };
        let mut written: Vec<String> = pieces.iter().map(push).collect();
        let mut end = String::new();
        wrap.end_line(&mut end);
        written.push(end);
        written
    }

    #[test]
    fn lines_break_between_words_and_hang() {
        let text = wrapped(12, &["one two three fourteen-letters 1234567890 x"]).concat();
        assert_eq!(text, "- one two\n  three\n  fourteen-letters\n  1234567890\n  x\n");
        assert_eq!(
            wrapped(10, &["漢字は何処でも", "切れる。"]).concat(),
            "- 漢字は何\n  処でも切\n  れる。\n"
        );
    }

    #[test]
    fn text_is_held_back_only_near_the_edge() {
        assert_eq!(wrapped(80, &["Hel", "lo wor", "ld"]), ["- Hel", "lo wor", "ld", "\n"]);
        assert_eq!(wrapped(20, &["Hel", "lo wor", "ld"]), ["- ", "Hello", "", " world\n"]);
    }

    #[test]
    fn a_word_that_was_begun_is_not_broken() {
        let address = format!("https://example.org/{}", "a".repeat(60));
        let text = wrapped(40, &["see ", &address, " and more"]).concat();
        assert_eq!(text, format!("- see {address}\n  and more\n"));
    }

    #[test]
    fn any_split_of_the_text_gives_the_same_lines() {
        let text =
            "Every good boy deserves fudge, and 漢字 too: https://example.org/a/long/path/to/something";
        let whole = wrapped(50, &[text]).concat();
        let pieces: Vec<String> = text.chars().map(String::from).collect();
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        assert_eq!(wrapped(50, &pieces).concat(), whole);
    }
}
