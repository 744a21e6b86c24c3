//! Finds JSON in an answer: the whole text, code fences, objects and lists.

use std::cmp::Reverse;

/// Returns the texts that may be the JSON of an answer, likeliest first: the whole answer, its fenced texts, its
/// bracketed texts.
///
/// Models that are prompted for JSON often add text around it. The longest bracketed text comes first: a citation
/// such as `[1]` is a list as well, but a short one. Of equally long ones, the last comes first.
pub(crate) fn candidates(answer: &str) -> impl Iterator<Item = &str> {
    let answer = answer.trim();
    let mut values: Vec<_> = bracketed(answer).collect();
    values.reverse();
    values.sort_by_key(|value| Reverse(value.len()));
    std::iter::once(answer).chain(fenced(answer)).chain(values)
}

/// Checks whether a cut-off answer may have been cut within its value.
///
/// A value with a closing character is complete, but `12` may be the beginning of `123`.
pub(crate) fn may_go_on(answer: &str) -> bool {
    let in_brackets = bracketed(answer).last().is_some_and(|value| closed(value).is_none());
    in_brackets || answer.trim_end().ends_with(|last: char| last.is_ascii_digit())
}

/// Returns the first object of an answer, which may be incomplete.
pub(crate) fn first_object(answer: &str) -> Option<&str> {
    bracketed(answer).find(|value| value.starts_with('{'))
}

/// Returns the texts between lines that begin with a fence. Such a line is never within a value, since strings
/// have no line breaks.
fn fenced(answer: &str) -> impl Iterator<Item = &str> {
    let mut rest = answer;
    std::iter::from_fn(move || {
        let (_, after) = split_at_fence(rest)?;
        let (inside, after) = split_at_fence(after).unwrap_or((after, ""));
        rest = after;
        Some(inside)
    })
}

/// Returns the text before and after the next line that begins with a fence.
fn split_at_fence(text: &str) -> Option<(&str, &str)> {
    let mut from = 0;
    for line in text.split_inclusive('\n') {
        let after = from + line.len();
        if line.trim_start().starts_with("```") {
            return Some((text.get(..from)?, text.get(after..)?));
        }
        from = after;
    }
    None
}

/// Returns the outermost objects and lists of an answer. The last one may be incomplete.
///
/// If one is no valid JSON, the values in it are not returned: a part must not be taken for the whole.
fn bracketed(answer: &str) -> impl Iterator<Item = &str> {
    let mut rest = answer;
    std::iter::from_fn(move || {
        let mut from_brackets = rest.match_indices(['{', '[']).filter_map(|(from, _)| rest.get(from..));
        let text = from_brackets.find(|text| begins_as_json(text))?;
        let (value, after) = text.split_at(closed(text).unwrap_or(text.len()));
        rest = after;
        Some(value)
    })
}

/// Checks whether a text begins with an object or a list, and not with brackets around prose.
fn begins_as_json(text: &str) -> bool {
    let (first, rest) = text.split_at_checked(1).unwrap_or_default();
    let rest = rest.trim_start();
    match first {
        "{" => rest.starts_with(['"', '}']),
        "[" => {
            rest.starts_with(['{', '[', '"', ']', '-'])
                || rest.starts_with(|first: char| first.is_ascii_digit())
                || ["true", "false", "null"].iter().any(|word| rest.starts_with(word))
        }
        _ => false,
    }
}

/// Returns the length of the object or list at the start of a text, if it is complete. Brackets in strings do not
/// count.
fn closed(text: &str) -> Option<usize> {
    let (mut open, mut in_string, mut escaped) = (0_usize, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_string,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => open += 1,
            b'}' | b']' if !in_string && open == 1 => return Some(at + 1),
            b'}' | b']' if !in_string => open = open.saturating_sub(1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_found_within_surrounding_text() {
        for (answer, expected) in [
            (" {\"a\": 1}\n", &["{\"a\": 1}", "{\"a\": 1}"][..]),
            ("Oslo", &["Oslo"]),
            ("", &[""]),
            (
                "Well: {\"a\": {\"b\": 1}}. More?",
                &["Well: {\"a\": {\"b\": 1}}. More?", "{\"a\": {\"b\": 1}}"],
            ),
            ("[Note] {x}: [1, {}]", &["[Note] {x}: [1, {}]", "[1, {}]"]),
            ("[1] [22] [3]", &["[1] [22] [3]", "[22]", "[3]", "[1]"]),
            (
                "So\n```json\n7\n```\nor\n ```\n8\n ```",
                &["So\n```json\n7\n```\nor\n ```\n8\n ```", "7\n", "8\n"],
            ),
            ("```\n\"a ``` b\"", &["```\n\"a ``` b\"", "\"a ``` b\""]),
            ("{\"a\": \"}\\\"]\"} b", &["{\"a\": \"}\\\"]\"} b", "{\"a\": \"}\\\"]\"}"]),
            ("Well: {\"a\": [1], c} or", &["Well: {\"a\": [1], c} or", "{\"a\": [1], c}"]),
            ("Well: {\"a\": [1], ", &["Well: {\"a\": [1],", "{\"a\": [1],"]),
        ] {
            assert_eq!(candidates(answer).collect::<Vec<_>>(), expected, "{answer}");
        }
    }

    #[test]
    fn value_possibly_cut_may_continue() {
        for (answer, expected) in [
            ("12 ", true),
            ("{\"a\": 12", true),
            ("{\"a\": 12} or {\"a\": ", true),
            ("```\n12", true),
            ("{\"a\": 12}", false),
            ("{\"a\": 12} as I sa", false),
            ("\"Oslo\"", false),
            ("true", false),
        ] {
            assert_eq!(may_go_on(answer), expected, "{answer}");
        }
    }

    #[test]
    fn first_object_is_reported_as_far_as_received() {
        for (answer, expected) in [
            ("[{}] so {", None),
            ("[{}] so {\"", Some("{\"")),
            ("{x} {\"a\": {}", Some("{\"a\": {}")),
            ("{\"a\": {}} {}", Some("{\"a\": {}}")),
        ] {
            assert_eq!(first_object(answer), expected, "{answer}");
        }
    }
}
