//! Text of models, tools and files, made harmless for a terminal. All of it passes here: control sequences are the program's
//! own.

use std::fmt::Write as _;
use std::io::{self, Write};

use tracing_subscriber::filter::LevelFilter;

/// Replaces the characters that could steer a terminal or change the order of its text. Line breaks and tabs stay.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|char| if is_harmless(char) { char } else { char::REPLACEMENT_CHARACTER }).collect()
}

/// Makes a text one line of at most `length` characters. Escapes the characters that could steer a terminal, and those
/// that are not seen, except joiners and the two that choose how a symbol looks.
pub(crate) fn brief(text: &str, length: usize) -> String {
    let mut chars = text.trim().chars().map(|char| if char.is_whitespace() { ' ' } else { char });
    let mut line = String::new();
    for char in chars.by_ref().take(length) {
        push_escaped(&mut line, char, matches!(char, '\u{200c}' | '\u{200d}' | '\u{fe0e}' | '\u{fe0f}'));
    }
    if chars.next().is_some() {
        line.push('…');
    }
    line
}

/// Escapes in a name the characters that could steer a terminal or break its line, and those that are not seen, as Rust
/// does.
pub(crate) fn escaped(name: &str) -> String {
    let mut line = String::with_capacity(name.len());
    for char in name.chars() {
        push_escaped(&mut line, char, false);
    }
    line
}

fn push_escaped(line: &mut String, char: char, may_be_unseen: bool) {
    match is_harmless(char) && !char.is_control() && (may_be_unseen || !is_unseen(char)) {
        true => line.push(char),
        false => line.extend(char.escape_default()),
    }
}

/// Escapes in JSON the characters that could steer a terminal, and those that are not seen. Its value stays the same.
pub(crate) fn escaped_json(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for char in json.chars() {
        if is_harmless(char) && !is_unseen(char) {
            escaped.push(char);
        } else {
            for unit in char.encode_utf16(&mut [0; 2]) {
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        }
    }
    escaped
}

/// Checks that a character cannot steer a terminal. Line breaks and tabs are harmless.
pub(crate) fn is_harmless(char: char) -> bool {
    // Overrides and isolates of the direction make a text look like another one.
    let turns_text = matches!(char, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let breaks_line = matches!(char, '\u{2028}' | '\u{2029}');
    !turns_text && !breaks_line && (!char.is_control() || matches!(char, '\n' | '\t'))
}

/// Checks whether a character shows nothing, or only changes others: marks, joiners, tags and the like.
fn is_unseen(char: char) -> bool {
    matches!(
        char,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Writes the warnings of the library to standard error, such as those about waits and about keys without encryption.
pub(crate) fn log_warnings() {
    tracing_subscriber::fmt()
        .with_max_level(LevelFilter::WARN)
        .with_ansi(false)
        .with_target(false)
        .without_time()
        .with_writer(|| PrintableLog)
        .init();
}

/// Standard error, for lines of the log. They may have words of a server.
struct PrintableLog;

impl Write for PrintableLog {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        io::stderr().write_all(printable(&String::from_utf8_lossy(line)).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_replaced() {
        assert_eq!(printable("a\x1b[2Jb\r\u{9b}c\td\n"), "a\u{fffd}[2Jb\u{fffd}\u{fffd}c\td\n");
        for (name, text) in [
            ("title", "\x1b]0;mine\x07"),
            ("C1 title", "\u{9d}0;mine\u{9c}"),
            ("override", "a\u{202e}b\u{2066}c\u{2069}"),
            ("line separator", "a\u{2028}b"),
            ("delete and backspace", "a\x7f\x08b"),
        ] {
            assert!(printable(text).chars().all(is_harmless), "{name}");
        }
        assert_eq!(printable("שלום 👩‍🔬 e\u{301}"), "שלום 👩‍🔬 e\u{301}", "other text stays as it is");
    }

    #[test]
    fn brief_text_is_cut_and_has_no_line_break() {
        assert_eq!(brief(" a\nb\x1b\n", 9), "a b\\u{1b}");
        assert_eq!(brief("äöü", 2), "äö…");
    }

    #[test]
    fn what_turns_or_hides_text_is_escaped_in_one_line() {
        for turning in
            "\u{61c}\u{200e}\u{200f}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2069}".chars()
        {
            let expected = format!("a\\u{{{:x}}}b", u32::from(turning));
            assert_eq!(brief(&format!("a{turning}b"), 9), expected);
            assert_eq!(escaped(&format!("a{turning}b")), expected);
        }
        assert_eq!(brief("👩\u{200d}🔬 ❤\u{fe0f}\u{e0041}", 9), "👩\u{200d}🔬 ❤\u{fe0f}\\u{e0041}");
        assert_eq!(escaped("a\u{200d}\n\tb"), "a\\u{200d}\\n\\tb");
    }

    #[test]
    fn escaped_json_has_the_same_value() {
        let value = serde_json::json!({"text": "a\u{9b}\u{202e}\x1b\x7fä\u{200b}\u{e0041}"});
        let escaped = escaped_json(&value.to_string());
        assert!(escaped.chars().all(|char| is_harmless(char) && !is_unseen(char)), "{escaped}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), value);
    }
}
