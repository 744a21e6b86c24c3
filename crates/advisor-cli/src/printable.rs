//! Text of models, tools and files, made harmless for a terminal.

use std::fmt::Write as _;

/// Replaces the characters that could steer a terminal or change the order of its text. Line breaks and tabs stay.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|char| if is_harmless(char) { char } else { char::REPLACEMENT_CHARACTER }).collect()
}

/// Makes a text one line of at most `length` characters.
pub(crate) fn brief(text: &str, length: usize) -> String {
    let mut chars = text.trim().chars().map(|char| if char.is_whitespace() { ' ' } else { char });
    let mut line: String = chars.by_ref().take(length).collect();
    if chars.next().is_some() {
        line.push('…');
    }
    printable(&line)
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
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{e0000}'..='\u{e0fff}'
    )
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
        assert_eq!(brief(" a\nb\x1b\n", 9), "a b\u{fffd}");
        assert_eq!(brief("äöü", 2), "äö…");
    }

    #[test]
    fn escaped_json_has_the_same_value() {
        let value = serde_json::json!({"text": "a\u{9b}\u{202e}\x1b\x7fä\u{200b}\u{e0041}"});
        let escaped = escaped_json(&value.to_string());
        assert!(escaped.chars().all(|char| is_harmless(char) && !is_unseen(char)), "{escaped}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), value);
    }
}
