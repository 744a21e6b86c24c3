/// Returns the JSON in an answer: all of it, what stands in its first fence, or what its outermost brackets hold.
///
/// Models that are asked for JSON in words like to say something around it.
pub(crate) fn json_text(answer: &str) -> &str {
    let answer = answer.trim();
    if answer.starts_with(['{', '[']) {
        return answer;
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
    let from = answer.find(['{', '['])?;
    let until =
        answer.rfind(['}', ']']).filter(|until| *until > from).map_or(answer.len(), |until| until + 1);
    answer.get(from..until)
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
            ("```json\n{\"a\": ", "{\"a\":"),
            ("Well: {\"a\": ", "{\"a\":"),
            ("Oslo", "Oslo"),
            ("", ""),
        ] {
            assert_eq!(json_text(answer), expected, "{answer}");
        }
    }
}
