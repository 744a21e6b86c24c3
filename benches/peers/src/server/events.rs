//! The events of an answer, as OpenAI and its like send them: about 280 bytes each.

use peer_measure::weather;
use serde_json::json;

/// Tokens of text in JSON form: some with escapes, some beyond ASCII.
const TOKENS: [&str; 32] = [
    " The", " ferry", " leaves", " at", " 7", ":", "30", " from", " Ærø", ",", " they", "'re", " told", ".",
    "\\n\\n", " \\\"On", " time", "\\\"", " \\u2013", " naïve", " 東京", " advisor", " chains", " stream",
    " of", " light", " winds", " and", " some", " rain", " later", ";",
];
/// Tokens of a text that comes after tools or reasoning.
const LAST_WORDS: usize = 50;
/// Deltas of the arguments of a short call.
const SHORT_ARGUMENTS: usize = 13;

/// One token a chunk.
pub(super) fn text(count: usize) -> Vec<String> {
    answer((0..count).map(|index| of_text(token(index))), "stop", count)
}

/// The text after tools.
pub(super) fn last_words() -> Vec<String> {
    text(LAST_WORDS)
}

/// Text whose chunks are all of one length, by a field of random characters.
pub(super) fn obfuscated(count: usize) -> Vec<String> {
    let mut random = Random(1);
    let event = |index| {
        let padding = random.letters(16 - token(index).len().min(15));
        event(&delta(&content(token(index))), &format!(r#""usage":null,"obfuscation":"{padding}""#))
    };
    answer((0..count).map(event), "stop", count)
}

/// Text with the usage so far in each chunk.
pub(super) fn usage_on_each(count: usize) -> Vec<String> {
    let event = |index| event(&delta(&content(token(index))), &usage(index + 1));
    answer((0..count).map(event), "stop", count)
}

/// Reasoning, then a short text.
pub(super) fn reasoning(count: usize) -> Vec<String> {
    let thought = |index| {
        let delta = delta(&format!(r#""content":null,"reasoning_content":"{}""#, token(index)));
        event(&delta, r#""usage":null"#)
    };
    let words = (0..LAST_WORDS).map(|index| of_text(token(index)));
    answer((0..count).map(thought).chain(words), "stop", count + LAST_WORDS)
}

/// Returns a call with `count` deltas of arguments.
pub(super) fn long_arguments(count: usize) -> Vec<String> {
    let first = format!(r#"{{\"city\":\"{}\",\"unit\":\"celsius\",\"note\":\""#, weather::CITY);
    // Within JSON within JSON, so that an escape is two.
    let notes = (1..count.saturating_sub(1)).map(|index| escaped(token(index)));
    let pieces: Vec<String> = std::iter::once(first).chain(notes).chain([r#"\"}"#.to_owned()]).collect();
    answer(call(0, "call_long", &pieces).into_iter(), "tool_calls", count)
}

/// Parallel calls of one round.
pub(super) fn calls(round: usize, parallel: usize) -> Vec<String> {
    let arguments = json!({"city": weather::CITY, "unit": "celsius"}).to_string();
    let letters: Vec<char> = arguments.chars().collect();
    let pieces: Vec<String> = letters
        .chunks(letters.len().div_ceil(SHORT_ARGUMENTS))
        .map(|piece| escaped(&piece.iter().collect::<String>()))
        .collect();
    let calls = (0..parallel).flat_map(|index| call(index, &format!("call_{round:05}_{index:02}"), &pieces));
    answer(calls, "tool_calls", parallel * pieces.len())
}

/// Returns an event with this text in JSON form.
pub(super) fn of_text(text: &str) -> String {
    event(&delta(&content(text)), r#""usage":null"#)
}

/// The events that end an answer.
pub(super) fn end(reason: &str, tokens: usize) -> String {
    let finish = format!(r#"{{"index":0,"delta":{{}},"logprobs":null,"finish_reason":"{reason}"}}"#);
    event(&finish, r#""usage":null"#) + &event("", &usage(tokens)) + "data: [DONE]\n\n"
}

fn answer(events: impl Iterator<Item = String>, reason: &str, tokens: usize) -> Vec<String> {
    let role = event(&delta(r#""role":"assistant","content":"","refusal":null"#), r#""usage":null"#);
    std::iter::once(role).chain(events).chain([end(reason, tokens)]).collect()
}

fn call(index: usize, id: &str, pieces: &[String]) -> Vec<String> {
    let function = format!(r#""type":"function","function":{{"name":"{}","arguments":""}}"#, weather::NAME);
    let head = format!(r#""tool_calls":[{{"index":{index},"id":"{id}",{function}}}]"#);
    let piece = |piece: &String| {
        format!(r#""tool_calls":[{{"index":{index},"function":{{"arguments":"{piece}"}}}}]"#)
    };
    let deltas = std::iter::once(head).chain(pieces.iter().map(piece));
    deltas.map(|inner| event(&delta(&inner), r#""usage":null"#)).collect()
}

/// Escapes a text for a JSON string.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

fn event(choices: &str, rest: &str) -> String {
    format!(
        r#"data: {{"id":"chatcmpl-9fJqkT0uYbXwN3vRzLc5aHs7DeGmP","object":"chat.completion.chunk","created":1760000000,"model":"gpt-4o-mini-2024-07-18","system_fingerprint":"fp_4f1d9a0c37","choices":[{choices}],{rest}}}"#
    ) + "\n\n"
}

fn delta(inner: &str) -> String {
    format!(r#"{{"index":0,"delta":{{{inner}}},"logprobs":null,"finish_reason":null}}"#)
}

fn content(text: &str) -> String {
    format!(r#""content":"{text}""#)
}

fn usage(tokens: usize) -> String {
    format!(r#""usage":{{"prompt_tokens":19,"completion_tokens":{tokens},"total_tokens":{}}}"#, tokens + 19)
}

fn token(index: usize) -> &'static str {
    TOKENS[(index * 7 + index / 11) % TOKENS.len()]
}

/// Letters that are the same in every run: xorshift.
struct Random(u64);

impl Random {
    fn letters(&mut self, count: usize) -> String {
        (0..count).map(|_| self.letter()).collect()
    }

    fn letter(&mut self) -> char {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let letters = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
        char::from(letters[(self.0 % letters.len() as u64) as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<String> {
        let text = [text(200), obfuscated(200), usage_on_each(200), reasoning(200)];
        [text.concat(), long_arguments(200), calls(3, 4)].concat()
    }

    #[test]
    fn every_event_is_json() {
        for event in all().concat().split("\n\n").filter(|event| !event.is_empty()) {
            let data = event.strip_prefix("data: ").expect("data");
            assert!(data == "[DONE]" || serde_json::from_str::<serde_json::Value>(data).is_ok(), "{data}");
        }
    }

    #[test]
    fn an_event_of_text_has_about_280_bytes() {
        let events = text(1000);
        let bytes: usize = events.iter().map(String::len).sum();
        assert!((275..290).contains(&(bytes / events.len())), "{}", bytes / events.len());
    }

    #[test]
    fn arguments_are_the_json_that_the_tool_takes() {
        for (events, calls) in [(long_arguments(200), 1), (calls(0, 4), 4)] {
            let mut arguments = vec![String::new(); calls];
            for event in events.concat().split("\n\n") {
                let data = event.strip_prefix("data: ").unwrap_or_default();
                let chunk: serde_json::Value = serde_json::from_str(data).unwrap_or_default();
                let call = &chunk["choices"][0]["delta"]["tool_calls"][0];
                let Some(piece) = call["function"]["arguments"].as_str() else { continue };
                arguments[call["index"].as_u64().expect("an index") as usize] += piece;
            }
            for arguments in arguments {
                let arguments: serde_json::Value = serde_json::from_str(&arguments).expect("JSON");
                assert_eq!(arguments["city"], weather::CITY);
            }
        }
    }
}
