use serde::de::IgnoredAny;
use serde_json::Deserializer;

/// Returns the JSON in an answer: all of it, what stands in its first fence, or what the first brackets hold that look
/// like JSON.
///
/// Models that are asked for JSON in words like to say something around it.
pub(crate) fn json_text(answer: &str) -> &str {
    let answer = answer.trim();
    if begins_as_json(answer) {
        return first_value(answer);
    }
    fenced(answer).or_else(|| bracketed(answer)).unwrap_or(answer)
}

fn fenced(answer: &str) -> Option<&str> {
    let (_, rest) = answer.split_once("```")?;
    let (_, rest) = rest.split_once('\n')?;
    // An answer that is still being written has no second fence yet.
    Some(rest.split_once("```").map_or(rest, |(inside, _)| inside).trim())
}

fn bracketed(answer: &str) -> Option<&str> {
    let mut from_brackets = answer.match_indices(['{', '[']).filter_map(|(from, _)| answer.get(from..));
    from_brackets.find(|text| begins_as_json(text)).map(first_value)
}

/// Whether a text begins with an object or a list, and not with brackets around prose.
fn begins_as_json(text: &str) -> bool {
    let (first, rest) = text.split_at_checked(1).unwrap_or_default();
    let rest = rest.trim_start();
    // Nothing follows yet while the answer is being written.
    match first {
        "{" => rest.is_empty() || rest.starts_with(['"', '}']),
        "[" => {
            rest.is_empty()
                || rest.starts_with(['{', '[', '"', ']', '-'])
                || rest.starts_with(|first: char| first.is_ascii_digit())
                || ["true", "false", "null"].iter().any(|word| rest.starts_with(word))
        }
        _ => false,
    }
}

/// Returns the value that a text begins with: to its end where it is valid, all of the text where it is still being written,
/// and otherwise up to the last closing bracket.
fn first_value(text: &str) -> &str {
    let mut values = Deserializer::from_str(text).into_iter::<IgnoredAny>();
    let until = match values.next() {
        Some(Ok(_)) => values.byte_offset(),
        Some(Err(error)) if error.is_eof() => text.len(),
        _ => text.rfind(['}', ']']).map_or(text.len(), |at| at + 1),
    };
    text.get(..until).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_found_in_what_is_said_around_it() {
        for (answer, expected) in [
            (" {\"a\": 1}\n", "{\"a\": 1}"),
            ("```json\n{\"a\": 1}\n```", "{\"a\": 1}"),
            ("Here it is:\n```\n[1]\n```\nAnything else?", "[1]"),
            ("Here it is: {\"a\": {\"b\": 1}}. Anything else?", "{\"a\": {\"b\": 1}}"),
            ("[Note] {\"a\": [1]} [end]", "{\"a\": [1]}"),
            ("{x} is [1, {}].", "[1, {}]"),
            ("{\"a\": 1} Anything else?", "{\"a\": 1}"),
            ("Well: {\"a\": {\"b\": 1}, \"c\": \"d", "{\"a\": {\"b\": 1}, \"c\": \"d"),
            ("Well: {\"a\": {\"b\": 1}, c} or so", "{\"a\": {\"b\": 1}, c}"),
            ("Well: {", "{"),
            ("[none] [null]", "[null]"),
            ("```json\n{\"a\": ", "{\"a\":"),
            ("Well: {\"a\": ", "{\"a\":"),
            ("Oslo", "Oslo"),
            ("", ""),
        ] {
            assert_eq!(json_text(answer), expected, "{answer}");
        }
    }
}
