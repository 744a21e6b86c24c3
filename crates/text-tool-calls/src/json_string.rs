//! `JsonStringDecoder`: decodes a JSON string character by character.

/// Decodes the characters of a JSON string that arrive one by one, without its quotes.
///
/// Half of a surrogate pair becomes U+FFFD. An escape that JSON does not know stays as it is.
#[derive(Debug, Default)]
pub(crate) struct JsonStringDecoder {
    escape: Escape,
    /// The first half of a surrogate pair.
    high: Option<u32>,
}

#[derive(Debug, Default)]
enum Escape {
    #[default]
    None,
    Begun,
    Code {
        digits: u32,
        code: u32,
    },
}

impl JsonStringDecoder {
    pub(crate) fn push(&mut self, letter: char, out: &mut String) {
        match (&mut self.escape, letter) {
            (Escape::None, '\\') => self.escape = Escape::Begun,
            (Escape::None, letter) => self.write(letter, out),
            (Escape::Begun, 'u') => self.escape = Escape::Code { digits: 0, code: 0 },
            (Escape::Begun, letter) => {
                self.escape = Escape::None;
                self.write_escaped(letter, out);
            }
            (Escape::Code { digits, code }, letter) => match letter.to_digit(16) {
                Some(digit) => {
                    (*digits, *code) = (*digits + 1, *code * 16 + digit);
                    if *digits == 4 {
                        let code = *code;
                        self.escape = Escape::None;
                        self.write_code(code, out);
                    }
                }
                None => {
                    self.escape = Escape::None;
                    self.write(char::REPLACEMENT_CHARACTER, out);
                    self.push(letter, out);
                }
            },
        }
    }

    /// Ends the string.
    pub(crate) fn end(&mut self, out: &mut String) {
        if self.high.take().is_some() || !matches!(self.escape, Escape::None) {
            out.push(char::REPLACEMENT_CHARACTER);
        }
        self.escape = Escape::None;
    }

    fn write_escaped(&mut self, letter: char, out: &mut String) {
        let decoded = match letter {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            'f' => '\u{c}',
            '"' | '\\' | '/' => letter,
            _ => {
                self.write('\\', out);
                letter
            }
        };
        self.write(decoded, out);
    }

    fn write_code(&mut self, code: u32, out: &mut String) {
        match (self.high.take(), code) {
            (Some(high), 0xDC00..=0xDFFF) => {
                let code = 0x10000 + ((high - 0xD800) << 10) + (code - 0xDC00);
                out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            (high, code) => {
                out.extend(high.map(|_| char::REPLACEMENT_CHARACTER));
                match code {
                    0xD800..=0xDBFF => self.high = Some(code),
                    code => out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)),
                }
            }
        }
    }

    fn write(&mut self, letter: char, out: &mut String) {
        out.extend(self.high.take().map(|_| char::REPLACEMENT_CHARACTER));
        out.push(letter);
    }
}

/// Returns the decoded text of a JSON string, which is given without its quotes.
pub(crate) fn decoded(text: &str) -> String {
    let (mut decoder, mut out) = (JsonStringDecoder::default(), String::new());
    text.chars().for_each(|letter| decoder.push(letter, &mut out));
    decoder.end(&mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn escapes_are_decoded_and_broken_ones_replaced() {
        for (text, expected) in [
            (r#"a\"b\\c\/\n\t\r\b\f"#, "a\"b\\c/\n\t\r\u{8}\u{c}"),
            (r"\u00e9\ud83d\ude00", "é😀"),
            (r"\ud83d!", "\u{fffd}!"),
            (r"\ud83d\ud83d\ude00", "\u{fffd}😀"),
            (r"\ude00", "\u{fffd}"),
            (r"\u12x", "\u{fffd}x"),
            (r"\d", "\\d"),
            (r"\ud83d", "\u{fffd}"),
            ("\\", "\u{fffd}"),
        ] {
            assert_eq!(decoded(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn it_decodes_what_serde_json_writes(text in any::<String>()) {
            let written = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(decoded(&written[1..written.len() - 1]), text);
        }
    }
}
