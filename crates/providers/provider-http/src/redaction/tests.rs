//! Tests of `redaction`.

use super::*;

const KEY: &str = "sk-Canary/0123+456-789_abcdefXYZ";
/// A key that does not look like one.
const PLAIN: &str = "Canary~\"Of\"/No Vendor";

fn redaction() -> Redaction {
    Redaction::new([KEY, PLAIN, "x"].map(SecretString::from).into_iter())
}

fn shown(words: &str) -> String {
    redaction().show(&words.into(), 2048)
}

/// Returns the forms of a key in the answer of a server that repeats it.
fn forms(key: &str) -> Vec<String> {
    let in_json = serde_json::to_string(key).expect("JSON").trim_matches('"').to_owned();
    let in_url = path_segment(key);
    vec![key.to_owned(), in_json.replace('/', "\\/"), in_json, in_url.to_lowercase(), in_url]
}

#[test]
fn law_r3_key_is_redacted_as_it_is_and_in_url_and_json() {
    for form in [KEY, PLAIN].into_iter().flat_map(forms) {
        for (before, behind) in
            [("", ""), ("refused: ", " is wrong"), ("{\"a\":\"", "\"}"), ("é", "é"), ("/v1/x?q=", "&b=1")]
        {
            let words = format!("{before}{form}{behind}");
            assert_eq!(shown(&words), format!("{before}{BLANK}{behind}"), "{form}");
            assert_eq!(redaction().identifier(&words), format!("{before}{BLANK}{behind}"), "{form}");
        }
    }
}

#[test]
fn law_r3_no_cut_leaves_half_a_key() {
    for key in [KEY, PLAIN] {
        for longest in 0..key.len() + 20 {
            let text = redaction().show(&format!("refused: {key} is wrong").into(), longest);
            assert!(text.len() <= longest);
            assert!(!text.contains(&key[..4]), "{longest}: {text}");
        }
    }
}

#[test]
fn law_r3_apparent_keys_are_redacted() {
    for (words, expected) in [
        (
            "Incorrect API key provided: sk-proj-abcd****wxyz. See below.",
            "Incorrect API key provided: [secret] See below.",
        ),
        ("got Bearer abc123def456ghi7", "got Bearer [secret]"),
        ("Authorization: Basic dXNlcjpwYXNzd29yZDEyMw==", "Authorization: Basic [secret]=="),
        ("GET /v1?api_key=zyx9876543210abc&n=1", "GET /v1?api_key=[secret]&n=1"),
        ("{\"api_key\":\"zyx9876543210abc\"}", "{\"api_key\":\"[secret]\"}"),
        ("token gsk_0123456789abcdefGHIJ was revoked", "token [secret] was revoked"),
        ("is AIzaSyA0123456789abcdefghijklmnopqrstu", "is [secret]"),
        ("jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc", "jwt [secret]"),
    ] {
        assert_eq!(Redaction::default().show(&words.into(), 2048), expected, "{words}");
        assert_eq!(Redaction::default().identifier(words), expected, "{words}");
    }
}

#[test]
fn other_text_is_not_redacted() {
    for words in [
        "This model's maximum context length is 8192 tokens, however you requested 9000",
        "Bearer authentication is required; check the API key and its permissions",
        "The model `gpt-4o-mini-2024-07-18` does not exist (task-management, risk-assessment)",
        "messages[3].content: Input should be a valid string; tool_call_id call_0123456789abcdef",
        "request id req_0123456789abcdef0123456789abcdef at 2026-01-01T00:00:00Z",
        "100% of 5 % \\ & &# &#; %zz \\u12 \\ud83d 😀 é",
        "text/html; charset=utf-8",
        "keyboard: shortcuts, keys: none",
        "",
        "hf_search",
        "pk_lookup",
        "sk_learn_fit",
        "sk-learn-something-new",
        "pplx-7b-online",
        "xai-grok-2",
        "eyjafjallajokull",
        "key: gpt-4o-mini",
        "chatcmpl-0123456789abcdefABCDEF",
    ] {
        assert_eq!(shown(words), words);
        assert_eq!(redaction().identifier(words), words);
    }
}

#[test]
fn control_characters_become_blanks_and_cuts_respect_characters() {
    assert_eq!(shown("bad\u{1b}[31m\nthing\u{9b}\u{7f}"), "bad [31m thing  ");
    let text = Redaction::default().show(&"é".repeat(5000).into(), 2047);
    assert_eq!(text.len(), 2046);
}

#[test]
fn law_t6_different_hidden_ids_stay_different() {
    let redaction = redaction();
    assert_eq!(redaction.call_id("call_1"), "call_1");
    let ids = [format!("a-{KEY}"), format!("a-{PLAIN}"), "a-[secret]".to_owned()];
    let shown: Vec<String> = ids.iter().map(|id| redaction.call_id(id).into_owned()).collect();
    assert!(shown.iter().all(|id| id.starts_with("a-[secret]-")), "{shown:?}");
    assert!(shown[0] != shown[1] && shown[1] != shown[2] && shown[0] != shown[2], "{shown:?}");
    assert_eq!(redaction.call_id(&ids[0]), shown[0], "equal ones stay equal");
    assert_ne!(redaction.call_id(&shown[0]), shown[0]);
}

#[test]
fn law_r3_words_of_a_server_have_no_debug() {
    let words = ServerWords::from(KEY);
    assert_eq!(format!("{words:?}"), format!("ServerWords({} bytes)", KEY.len()));
    assert!(!format!("{:?}", redaction()).contains("anary"));
}

/// Long text is read in linear time.
#[test]
fn long_words_take_linear_time() {
    for words in ["a".repeat(1 << 20), "sk-".repeat(1 << 18), KEY.repeat(1 << 14), "key=".repeat(1 << 18)] {
        let text = redaction().show(&words.into(), 64 << 10);
        assert!(text.len() <= 64 << 10);
    }
}
