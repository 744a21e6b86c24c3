//! Says what is wrong with a body in the words of its author, in place of those of the deserializer.

/// Returns the problem of a body that is JSON of another form. It names the place, and shows no value.
pub(super) fn plain_words(text: &str) -> String {
    let text = text.split_once("into the target type: ").map_or(text, |(_, problem)| problem);
    let (text, position) = match text.rsplit_once(" at line ") {
        Some((problem, position)) => (problem, format!(" at line {position}")),
        None => (text, String::new()),
    };
    let is_place = |(place, _): &(&str, &str)| !place.contains(' ') && !place.contains('`');
    let (place, problem) = text.split_once(": ").filter(is_place).unwrap_or(("", text));
    let place = if place == "." { "" } else { place };
    let named = if place.is_empty() { "the body".to_owned() } else { format!("`{place}`") };
    if let Some(field) = problem.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`')) {
        let dot = if place.is_empty() { "" } else { "." };
        return format!("`{place}{dot}{field}` is missing");
    }
    let kinds = problem.strip_prefix("invalid type: ").and_then(|rest| rest.split_once(", expected "));
    match kinds {
        Some((found, expected)) => {
            format!("{named} is {}, and not {}", found_word(found), expected_word(expected))
        }
        None if place.is_empty() => format!("{problem}{position}"),
        None => format!("{named}: {problem}{position}"),
    }
}

fn found_word(found: &str) -> &str {
    match found.split(' ').next().unwrap_or_default() {
        "sequence" => "a list",
        "map" => "an object",
        "string" => "a text",
        "integer" | "floating" => "a number",
        "boolean" => "true or false",
        _ => found,
    }
}

fn expected_word(expected: &str) -> &str {
    match expected {
        "a sequence" => "a list",
        "a map" => "an object",
        "a string" => "a text",
        "a boolean" => "true or false",
        _ if expected.starts_with("struct ") => "an object",
        _ => expected,
    }
}

#[cfg(test)]
mod tests {
    use super::plain_words;

    #[test]
    fn problems_have_the_words_of_json() {
        let at = |problem: &str| {
            format!("Failed to deserialize the JSON body into the target type: {problem} at line 1 column 9")
        };
        for (problem, words) in [
            ("missing field `messages`", "`messages` is missing"),
            ("messages[1]: missing field `role`", "`messages[1].role` is missing"),
            (
                "messages: invalid type: string \"secret\", expected a sequence",
                "`messages` is a text, and not a list",
            ),
            (
                "metadata: invalid type: sequence, expected struct Metadata",
                "`metadata` is a list, and not an object",
            ),
            (
                "stream: invalid type: integer `5`, expected a boolean",
                "`stream` is a number, and not true or false",
            ),
            ("invalid type: null, expected a map", "the body is null, and not an object"),
            ("input: it is a text", "`input`: it is a text at line 1 column 9"),
            (
                "unknown field `x`, expected one of `a`, `b`",
                "unknown field `x`, expected one of `a`, `b` at line 1 column 9",
            ),
        ] {
            assert_eq!(plain_words(&at(problem)), words);
        }
    }
}
