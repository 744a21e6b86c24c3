//! Valid JSON beyond the limits of a reader: numbers out of range, and unlimited nesting.

/// The deepest nesting of an event. The parser refuses a depth of 128.
const MOST_NESTED: usize = 100;

/// Replaces numbers beyond the range of 64-bit floating point, and values nested too deep, with `null`.
///
/// Such a value is absent rather than approximate: a count must not be wrong. The JSON must be valid.
#[must_use]
pub fn without_unrepresentable(json: &str) -> String {
    let mut kept = String::with_capacity(json.len());
    let mut depth = 0_usize;
    for token in Tokens(json) {
        let first = token.as_bytes().first();
        if matches!(first, Some(b'{' | b'[')) {
            depth += 1;
            if depth == MOST_NESTED + 1 {
                kept.push_str("null");
            }
        }
        if depth <= MOST_NESTED {
            let is_number = matches!(first, Some(b'-' | b'0'..=b'9'));
            let can_be_held = !is_number || serde_json::from_str::<f64>(token).is_ok();
            kept.push_str(if can_be_held { token } else { "null" });
        }
        if matches!(first, Some(b'}' | b']')) {
            depth = depth.saturating_sub(1);
        }
    }
    kept
}

/// The tokens of valid JSON: a bracket, a string, a number, or the text between those.
struct Tokens<'a>(&'a str);

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let length = match self.0.as_bytes().first()? {
            b'{' | b'}' | b'[' | b']' => 1,
            b'"' => string_length(self.0),
            b'-' | b'0'..=b'9' => self.0.find(|c| !is_in_number(c)).unwrap_or(self.0.len()),
            _ => self.0.find(begins_token).unwrap_or(self.0.len()),
        };
        let (token, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(token)
    }
}

fn begins_token(c: char) -> bool {
    matches!(c, '{' | '}' | '[' | ']' | '"' | '-' | '0'..='9')
}

fn is_in_number(c: char) -> bool {
    matches!(c, '0'..='9' | '-' | '+' | '.' | 'e' | 'E')
}

/// Returns the length of the string that begins here, with its quotes.
fn string_length(json: &str) -> usize {
    let mut escaped = true;
    let end = json.bytes().position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    });
    end.map_or(json.len(), |end| end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unrepresentable_numbers_become_null_and_others_stay() {
        let cases = [
            (r#"{"a":1e400,"b":[-1e999,7,-0.5e-3]}"#, r#"{"a":null,"b":[null,7,-0.5e-3]}"#),
            (r#"{"1e400":"1e400 \" [[","c":true}"#, r#"{"1e400":"1e400 \" [[","c":true}"#),
            (r#" [ 1e400 , "\\" , 1e-400 ] "#, r#" [ null , "\\" , 1e-400 ] "#),
            ("1e400", "null"),
            ("18446744073709551616", "18446744073709551616"),
            (r#""é😀""#, r#""é😀""#),
        ];
        for (json, expected) in cases {
            assert_eq!(without_unrepresentable(json), expected, "{json}");
        }
        let nested = |depth: usize, inner: &str| format!("{}{inner}{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(without_unrepresentable(&nested(MOST_NESTED, "1")), nested(MOST_NESTED, "1"));
        assert_eq!(without_unrepresentable(&nested(MOST_NESTED + 1, "1")), nested(MOST_NESTED, "null"));
        let wide = format!("[{},{}]", nested(5000, "{\"a\":\"]\"}"), nested(2, "1"));
        assert_eq!(
            without_unrepresentable(&wide),
            format!("[{},{}]", nested(MOST_NESTED - 1, "null"), nested(2, "1"))
        );
    }
}
