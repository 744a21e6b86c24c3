//! The version of the JSON forms of this workspace, the values that JSON from outside may have, and checks that `serde_json`
//! reads a value back unchanged.

use std::io;

use serde::Serialize;
use serde_json::Value;

/// The version of the JSON forms of chunks, responses and errors.
///
/// It is stated once, where a stream or a journal begins. A later version with the same number may add fields, types
/// of chunks and of tool events, and kinds of errors. Every other change has another number.
pub const JSON_VERSION: u32 = 1;

/// Prefix of names with a special meaning to `serde_json`. It refuses such an object or reads it as another value.
const RESERVED: &str = "$serde_json::private::";

/// The values of JSON from outside that is parsed as a whole, such as the arguments of a call: the items of lists and the
/// fields of objects, at any depth.
///
/// A parsed value takes up to a hundred times its text, as an object of one short field does. So a bound of bytes does not
/// bound the memory. A long text is one value.
pub const MOST_VALUES: usize = 1 << 17;

/// Returns at least the number of values inside a JSON text: the marks in front of them. Marks inside strings do not count.
#[must_use]
pub fn values(json: &[u8]) -> usize {
    let (mut marks, mut is_text, mut is_escaped) = (0, false, false);
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_text,
            b'"' => is_text = !is_text,
            b',' | b'[' | b'{' if !is_text => marks += 1,
            _ => {}
        }
    }
    marks
}

/// Returns the length in bytes of a value as JSON, without storing the JSON.
#[must_use]
pub fn length(value: &impl Serialize) -> usize {
    let mut written = Length(0);
    // The writer cannot fail. A value that cannot be written has no length, and fits nowhere.
    serde_json::to_writer(&mut written, value).map_or(usize::MAX, |()| written.0)
}

/// Writer that only counts bytes.
struct Length(usize);

impl io::Write for Length {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.saturating_add(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Checks whether a value is nested at most `levels` deep. It never recurses deeper.
#[must_use]
pub fn nests_within(value: &Value, levels: usize) -> bool {
    match (value, levels.checked_sub(1)) {
        (Value::Array(_) | Value::Object(_), None) => false,
        (Value::Array(items), Some(levels)) => items.iter().all(|item| nests_within(item, levels)),
        (Value::Object(members), Some(levels)) => members.values().all(|member| nests_within(member, levels)),
        _ => true,
    }
}

/// Checks whether a value has a member with a reserved name. It recurses as deep as the value is nested.
///
/// With its feature `raw_value`, `serde_json` reads an object that begins with such a name as something else.
#[must_use]
pub fn has_reserved_name(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_reserved_name),
        Value::Object(members) => {
            members.iter().any(|(name, member)| name.starts_with(RESERVED) || has_reserved_name(member))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_outside_of_texts() {
        for (json, expected) in [
            ("5", 0),
            ("[]", 1),
            (r#"[1,2,{"a":3}]"#, 4),
            (r#"{"a":[],"b":{"c":null}}"#, 4),
            (r#"["a,b","[{","\",{","\\",1]"#, 5),
            (r#"["\\\\",",","\\\"",{}]"#, 5),
        ] {
            assert_eq!(values(json.as_bytes()), expected, "{json}");
        }
    }
}
