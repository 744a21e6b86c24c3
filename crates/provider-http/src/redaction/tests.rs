//! Tests of `redaction`.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

use super::*;

const BLANK: &str = Redaction::BLANK;
const KEY: &str = "sk-Canary/0123+456-789_abcdefXYZ";
/// A key that does not look like one.
const PLAIN: &str = "Canary~Of.No-Vendor";

fn redaction() -> Redaction {
    Redaction::new([KEY, PLAIN, "x"].map(SecretString::from).into_iter())
}

fn shown(words: &str) -> String {
    redaction().show(&words.into(), 2048).to_string()
}

fn percent(key: &str, keep: fn(u8) -> bool) -> String {
    key.bytes()
        .map(|byte| if keep(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// Returns the forms of a key in the answer of a server that repeats it.
fn disguises(key: &str) -> Vec<String> {
    let html: String = key.bytes().map(|byte| format!("&#{byte};")).collect();
    let html_hex: String = key.bytes().map(|byte| format!("&#x{byte:x};")).collect();
    let unicode: String = key.bytes().map(|byte| format!("\\u{byte:04x}")).collect();
    let half = key.len() / 2 + 4;
    let mut disguises = vec![
        key.to_owned(),
        key.to_ascii_lowercase(),
        key.to_ascii_uppercase(),
        percent(key, |byte| byte.is_ascii_alphanumeric()),
        percent(key, |_| false),
        percent(&percent(key, |byte| byte.is_ascii_alphanumeric()), |byte| byte.is_ascii_alphanumeric()),
        key.replace('/', "\\/"),
        unicode,
        html,
        html_hex,
        key.bytes().map(|byte| format!("{byte:02x}")).collect(),
        // Cut off.
        key[..half].to_owned(),
        key[key.len() - half..].to_owned(),
        key[2..key.len() - 2].to_owned(),
        format!("{}...{}", &key[..half], &key[key.len() - 4..]),
    ];
    for around in ["", "a", "ab", "abc", "user:", "Bearer "] {
        let whole = format!("{around}{key}!");
        disguises.extend([STANDARD.encode(&whole), URL_SAFE.encode(&whole)]);
    }
    disguises
}

/// Checks for a long piece of the key in any encoding, which no text may contain.
fn gives_away(text: &str, disguise: &str) -> bool {
    disguise.as_bytes().windows(20).any(|piece| text.as_bytes().windows(20).any(|shown| shown == piece))
}

#[test]
fn d17_key_is_redacted_in_every_encoding() {
    for key in [KEY, PLAIN] {
        for disguise in disguises(key) {
            for (before, behind) in [
                ("", ""),
                ("refused: ", " is wrong"),
                ("{\"a\":\"", "\"}"),
                ("é", "é"),
                ("/v1/x?key=", "&b=1"),
                ("application/", ""),
            ] {
                let text = shown(&format!("{before}{disguise}{behind}"));
                assert!(!gives_away(&text, &disguise), "{disguise}: {text}");
                assert!(text.contains(BLANK), "{disguise}: {text}");
                assert!(text.len() < before.len() + behind.len() + 30, "{disguise}: {text}");
            }
        }
    }
}

#[test]
fn d17_no_cut_leaves_half_a_key() {
    // For every position of the cut, and of the end of the text.
    for key in [KEY, PLAIN] {
        for longest in 0..key.len() + 20 {
            let text = redaction().show(&format!("refused: {key} is wrong").into(), longest).to_string();
            assert!(text.len() <= longest);
            assert!(!text.contains(&key[..4]), "{longest}: {text}");
        }
        for length in 4..key.len() {
            let text = shown(&format!("refused: {}", &key[..length]));
            assert_eq!(text, "refused: [secret]", "{length}");
        }
        for before in 0..key.len() + 9 {
            let words = format!("{}{key}", "é".repeat((2048 + READ_AHEAD - before) / 2));
            let text = shown(&words);
            assert!(!text.contains(&key[..4]) && text.len() <= 2048, "{before}");
        }
    }
}

#[test]
fn d17_apparent_keys_are_redacted() {
    for (words, expected) in [
        (
            "Incorrect API key provided: sk-proj-abcd****wxyz. See below.",
            "Incorrect API key provided: [secret] See below.",
        ),
        ("got Bearer abc123def456ghi", "got Bearer [secret]"),
        ("Authorization: Basic dXNlcjpwYXNzd29yZDEyMw==", "Authorization: Basic [secret]=="),
        ("GET /v1?api_key=zyx9876543210&n=1", "GET /v1?api_key=[secret]&n=1"),
        ("{\"api_key\":\"zyx9876543210\"}", "{\"api_key\":\"[secret]\"}"),
        ("%7B%22api_key%22%3A%22zyx9876543210%22", "%7B%22api_key%22%3A%22[secret]%22"),
        ("token gsk_0123456789abcdefGHIJ was revoked", "token [secret] was revoked"),
        ("key AIzaSyA0123456789abcdefghijklmnopqrstu", "key [secret]"),
        ("jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc", "jwt [secret]"),
        ("sk-live-0123456789", "[secret]"),
        ("cut off: sk-ab", "cut off: [secret]"),
    ] {
        assert_eq!(Redaction::default().show(&words.into(), 2048).to_string(), expected, "{words}");
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
    ] {
        assert_eq!(shown(words), words);
    }
}

#[test]
fn sentence_or_address_header_is_redacted_only_whole() {
    let redaction = Redaction::new(
        ["https://app.example/chat/completions", "My own application"].map(SecretString::from).into_iter(),
    );
    for words in ["no route /chat/completions", "application/json of my own"] {
        assert_eq!(redaction.show(&words.into(), 2048).to_string(), words);
    }
    let both = "from https://app.example/chat/completions (My own application)";
    assert_eq!(redaction.show(&both.into(), 2048).to_string(), "from [secret] ([secret])");
}

#[test]
fn control_characters_become_blanks_and_cuts_respect_characters() {
    assert_eq!(shown("bad\u{1b}[31m\nthing\u{9b}\u{7f}"), "bad [31m thing  ");
    let text = Redaction::default().show(&"é".repeat(5000).into(), 2047).to_string();
    assert_eq!(text.len(), 2046);
}

#[test]
fn identifiers_stay_except_real_or_apparent_secrets() {
    let redaction = redaction();
    for identifier in
        ["gpt-4o", "call_abc", "chatcmpl-0123456789abcdefABCDEF", "tool_calls", "line\nbreak", ""]
    {
        assert_eq!(redaction.identifier(identifier), identifier);
    }
    assert_eq!(redaction.identifier(&format!("model-{KEY}:{PLAIN}")), "model-[secret]:[secret]");
    for disguise in disguises(KEY).iter().chain(&disguises(PLAIN)) {
        let shown = redaction.identifier(disguise);
        assert!(!gives_away(&shown, disguise) && shown.contains(BLANK), "{disguise}: {shown}");
    }
    assert_eq!(redaction.identifier("sk-proj-0123456789abcdef"), "[secret]");
}

/// A name is a complete word: its end is not the beginning of something longer.
#[test]
fn name_that_only_resembles_key_stays() {
    for name in [
        "hf_search", "pk_lookup", "fw_update", "sk_learn_fit", "sk-learn-something-new", "pplx-7b-online",
        "xai-grok-2", "r8_x", "eyjafjallajokull", "sk-proj-0123456", "key: gpt-4o-mini",
    ] {
        assert_eq!(Redaction::default().identifier(name), name);
    }
    for (secret, name) in
        [("filter-strict", "content_filter"), ("stop-on-error", "full-stop"), ("search-4096", "web_search")]
    {
        let redaction = Redaction::new([SecretString::from(secret)].into_iter());
        assert_eq!(redaction.identifier(name), name);
        assert_eq!(redaction.identifier(&format!("{name}:{secret}")), format!("{name}:[secret]"));
    }
    for key in ["sk-0123456789abcdef", "hf_abcdefghijklmnop1", "Bearer 0123456789abcdef"] {
        assert!(Redaction::default().identifier(key).ends_with("[secret]"), "{key}");
    }
}

#[test]
fn law_r3_words_of_a_server_have_no_debug() {
    let words = ServerWords::from(KEY);
    assert_eq!(format!("{words:?}"), format!("ServerWords({} bytes)", KEY.len()));
    assert!(!format!("{:?}", redaction()).contains("anary"));
}

#[test]
fn machine_words_are_distinguished_from_prose() {
    let is_word = |words: &str| Redaction::default().show(&words.into(), 64).is_word();
    for word in ["rate_limit_exceeded", "messages[3].content", "invalid-request", "a/b:c"] {
        assert!(is_word(word), "{word}");
    }
    for words in ["", "two words", "naïve", "\"quoted\"", "line\nbreak"] {
        assert!(!is_word(words), "{words}");
    }
}

/// Long text is read in linear time.
#[test]
fn long_words_take_linear_time() {
    for words in [
        "a".repeat(1 << 20),
        "%41".repeat(1 << 18),
        "sk-".repeat(1 << 18),
        KEY.repeat(1 << 14),
        "key=".repeat(1 << 18),
    ] {
        let text = redaction().show(&words.into(), 64 << 10);
        assert!(text.as_str().len() <= 64 << 10);
    }
}
