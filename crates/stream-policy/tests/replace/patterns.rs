use proptest::prelude::*;
use regex::Regex;
use stream_policy::{PatternError, ReplaceText};

use crate::common::{replaced, splits};

/// Checks that a text in any of these pieces is the same as with a replacement in the whole text.
fn check<'t>(text: &'t str, pattern: &str, with: &str, splits: impl Iterator<Item = Vec<&'t str>>) {
    let policy = ReplaceText::for_pattern(pattern, with).unwrap();
    let expected = Regex::new(pattern).unwrap().replace_all(text, with).into_owned();
    for pieces in splits {
        assert_eq!(replaced(&policy, &pieces).whole, expected, "{pattern} {pieces:?}");
    }
}

#[test]
fn law_s5_patterns_are_replaced_at_every_split() {
    for (text, pattern, with) in [
        ("call 55-0199", r"\b[0-9]{2}-[0-9]{4}\b", "[phone]"),
        ("x55-01999 55", r"\b\d{2}-\d{4}\b", "[phone]"),
        ("a1b22c333d", r"\d{1,2}", "<$0>"),
        ("aXbXcX", r"(?P<l>[a-c])X", "${l}."),
        ("aaaaaaa", "a{2,3}", "b"),
        ("abab ab", "(?:ab)?ab", "-"),
        ("é1é22é", r"é\d{1,2}", "e"),
        ("ab\nab\nab", "(?m)^ab$", "-"),
        ("ab ab", r"^ab", "-"),
        ("ab ab", r"ab\z", "-"),
        ("ab ab", r"ab$", "-"),
        ("foo fo foo", "foo|fo", "-"),
        ("aBc abC", "(?i)abc", "-"),
    ] {
        check(text, pattern, with, splits(text));
    }
}

/// As much as the longest match is held back, and little more.
#[test]
fn law_s2_hold_back_of_a_pattern_is_bounded() {
    let policy = ReplaceText::for_pattern("[0-9]{2,5}", "#").unwrap();
    let text: Vec<String> = "abcdefghijklmnopqrstuvwxyz".chars().map(String::from).collect();
    let pieces: Vec<&str> = text.iter().map(String::as_str).collect();
    let shown = replaced(&policy, &pieces);
    let mut emitted = 0;
    for (at, piece) in shown.pieces.iter().enumerate() {
        emitted += piece.len();
        assert!(emitted + 5 + 8 > at, "{emitted} of {at}");
    }
    assert_eq!(shown.whole, text.concat());
}

#[test]
fn unbounded_patterns_are_refused() {
    let error = |pattern: &str| ReplaceText::for_pattern(pattern, "").unwrap_err();
    for pattern in [r"\d+", "a.*b", "(a|b*c)", "a{2,}"] {
        assert_eq!(error(pattern), PatternError::Unbounded, "{pattern}");
    }
    for pattern in ["", "a?", r"\b", "a{0,3}", "^"] {
        assert_eq!(error(pattern), PatternError::MatchesEmpty, "{pattern}");
    }
    assert!(matches!(error("("), PatternError::Syntax(_)));
    assert_eq!(error("(?:a{100}){1,700}"), PatternError::TooLong { length: 70_000, limit: 65_536 });
    assert!(error("a+").to_string().contains("{1,64}"));
}

proptest! {
    /// Any text, at any split.
    #[test]
    fn law_s5_any_text_of_a_pattern(
        pattern in prop::sample::select(vec![
            r"\bab?\b", "a{1,3}b?", "(?:ab|a)c", "b{2}", r"\Ba", "[ab]{1,4}c", r"é\b", "(?m)^a|b$",
        ]),
        pieces in prop::collection::vec("[abcé \n]{0,6}", 0..8),
    ) {
        let pieces: Vec<_> = pieces.iter().map(String::as_str).filter(|piece| !piece.is_empty()).collect();
        let text = pieces.concat();
        check(&text, pattern, "<$0>", std::iter::once(pieces));
    }
}
