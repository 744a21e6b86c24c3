//! Lines that match a template give the same deltas as when they are parsed.

use advisor_testkit::decoding::{assert_decoded_as_parsed, fast_events};

use super::*;

fn assert_said_as_parsed(body: &str) {
    assert_decoded_as_parsed(decoder, body.as_bytes(), body);
}

/// Checks whether most lines match a template after the first ones.
fn has_template(body: &str) -> bool {
    2 * fast_events(OllamaChat::default(), body.as_bytes()) > body.lines().count() as u64
}

/// Returns twenty lines with the next text in place of `WORD`, and its number in place of `NUMBER`.
fn lines(form: &str) -> String {
    let words = [" the", "ïve", "😀", "\\n", "\\\"q\\\"", ",", " \\u00e9"];
    let word =
        |at: usize| form.replace("WORD", words[at % words.len()]).replace("NUMBER", &format!("{}", at + 10));
    (0..20).map(|at| word(at) + "\n").collect()
}

#[test]
fn law_s5_lines_give_same_deltas_on_fast_path() {
    let forms = [
        r#"{"model":"m","created_at":"2026-01-02T03:04:NUMBERZ","message":{"role":"assistant","content":"WORD"},"done":false}"#,
        r#"{"model":"m","created_at":"2026-01-02T03:04:NUMBERZ","message":{"role":"assistant","content":"","thinking":"WORD"},"done":false}"#,
        r#"{"model":"m","message":{"content":"WORD"},"done":false,"prompt_eval_count":7,"eval_count":NUMBER}"#,
        r#"{"model":"m","message":{"content":"WORD","logprobs":[NUMBER]},"done":false,"total_duration":NUMBER}"#,
        // Not to be learned from: two texts, calls, an end, an error.
        r#"{"model":"m","message":{"content":"WORD","thinking":"WORD"},"done":false}"#,
        r#"{"model":"m","message":{"content":"WORD","tool_calls":[{"function":{"name":"f","arguments":{"a":"WORD"}}}]},"done":false}"#,
        r#"{"model":"m","message":{"content":"","tool_calls":[{"function":{"name":"WORD","arguments":{}}}]},"done":false}"#,
        r#"{"model":"mNUMBER","message":{"content":"WORD"},"done":false}"#,
        r#"{"model":"m","message":{"content":"WORD"},"done":true,"done_reason":"WORD"}"#,
        r#"{"model":"m","message":{"content":"WORD"},"error":"WORD"}"#,
    ];
    for (at, form) in forms.into_iter().enumerate() {
        let body = lines(form);
        assert_said_as_parsed(&(body.clone() + STOP));
        // Lines of other forms between them.
        let others: String =
            forms.map(lines).iter().map(|lines| lines.lines().next().unwrap().to_owned() + "\n").collect();
        assert_said_as_parsed(&[&body, &others, &body, STOP].concat());
        assert!(at > 3 || has_template(&body), "{form}");
    }
}

#[test]
fn malformed_line_is_found_on_fast_path() {
    let body = lines(r#"{"model":"m","message":{"content":"WORD"},"done":false}"#);
    for bad in [
        r#"{"model":"m","message":{"content":"a" },"done":false}"#,
        r#"{"model":"m","message":{"content":"\ud800"},"done":false}"#,
        r#"{"model":"m","message":{"content":"a"b"},"done":false}"#,
        r#"{"model":"m","message":{"content":"a\x"},"done":false}"#,
        r#"{"model":"m","message":{"content":"a"},"done":false"#,
        r#"{"model":"m","message":{"content":7},"done":false}"#,
        r#"{"model":"m","message":{"content":"a"},"done":FALSE}"#,
    ] {
        assert_said_as_parsed(&[&body, bad, "\n", STOP].concat());
    }
}
