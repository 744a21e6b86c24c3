//! Replaced patterns of a stream: split anywhere, held back within a bound, refused if unbounded.

use advisor_core::ErrorKind;
use common_advisors::policy::ReplaceText;
use proptest::prelude::*;
use regex::{NoExpand, Regex};

use crate::policy::pieces::splits;
use crate::policy::replace::common::replaced;

/// Checks that a text in any of these pieces is the same as with a replacement in the whole text.
fn check<'t>(text: &'t str, pattern: &str, with: &str, splits: impl Iterator<Item = Vec<&'t str>>) {
    let policy = ReplaceText::for_pattern(pattern, with).unwrap();
    let expected = Regex::new(pattern).unwrap().replace_all(text, NoExpand(with)).into_owned();
    for pieces in splits {
        assert_eq!(replaced(&policy, &pieces).whole, expected, "{pattern} {pieces:?}");
    }
}

#[test]
fn law_s5_patterns_are_replaced_at_every_split() {
    for (text, pattern, with) in [
        ("call 55-0199", r"\b[0-9]{2}-[0-9]{4}\b", "[phone]"),
        ("x55-01999 55", r"\b\d{2}-\d{4}\b", "[phone]"),
        ("a1b22c333d", r"\d{1,2}", "$0"),
        ("aXbXcX", r"[a-c]X", "."),
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

/// Returns the text that must be emitted of this beginning: all up to a place where a match depends on what follows.
///
/// The alternatives for what follows are short texts, so a match must be one or two characters away at each place.
fn decided(text: &str, regex: &Regex) -> String {
    let letters = ["", "a", "b", "c", "é", " ", "\n"];
    let continuations =
        letters.iter().flat_map(|first| letters.iter().map(move |second| [*first, *second].concat()));
    let outputs =
        continuations.map(|more| regex.replace_all(&(text.to_owned() + &more), "<$0>").into_owned());
    let same = |one: String, other: String| {
        let same = one.chars().zip(other.chars()).take_while(|(one, other)| one == other);
        same.map(|(letter, _)| letter).collect()
    };
    let all: String = outputs.reduce(same).unwrap();
    // A match without its end is that of matches with different lengths.
    let end = all.rfind('<').filter(|open| !all[*open..].contains('>')).unwrap_or(all.len());
    Regex::new("<[^>]*>").unwrap().replace_all(&all[..end], "<>").into_owned()
}

/// Checks that each piece emits all that is decided.
fn check_hold_back(pieces: &[&str], pattern: &str) {
    let (regex, policy) = (Regex::new(pattern).unwrap(), ReplaceText::for_pattern(pattern, "<>").unwrap());
    let (mut received, mut emitted) = (String::new(), String::new());
    for (piece, shown) in pieces.iter().zip(replaced(&policy, pieces).pieces) {
        received.push_str(piece);
        emitted.push_str(&shown);
        assert_eq!(emitted, decided(&received, &regex), "{pattern} after {received:?} of {pieces:?}");
    }
}

const PATTERNS: [&str; 9] =
    [r"\bab?\b", "a{1,3}b?", "(?:ab|a)c", "b{2}", r"\Ba", "[ab]{1,4}c", r"é\b", "(?m)^a|b$", "a|ab"];

#[test]
fn law_s2_only_beginnings_of_matches_are_held_back() {
    let phone = ReplaceText::for_pattern(r"\b[0-9]{3}-[0-9]{4}\b", "[phone]").unwrap();
    let shown = replaced(&phone, &["It was 555", "-01", "99", ", not 55", ". Or 5"]);
    assert_eq!(shown.pieces, ["It was ", "", "", "[phone], not ", "55. Or "]);
    assert_eq!(shown.whole, "It was [phone], not 55. Or 5");
    for pattern in PATTERNS {
        for pieces in splits("ab baé") {
            check_hold_back(&pieces, pattern);
        }
    }
}

/// However long a text is that may begin a match, no more than the longest match is held back.
#[test]
fn law_s2_hold_back_of_a_pattern_is_bounded() {
    for pattern in ["[a-z]{1,16}@[a-z]{1,16}", "x?[a-z]{32}!"] {
        let policy = ReplaceText::for_pattern(pattern, "#").unwrap();
        let text: Vec<String> = ('a'..='z').cycle().take(400).map(String::from).collect();
        let pieces: Vec<&str> = text.iter().map(String::as_str).collect();
        let shown = replaced(&policy, &pieces);
        let mut emitted = 0;
        for (at, piece) in shown.pieces.iter().enumerate() {
            emitted += piece.len();
            assert!(at + 1 - emitted <= 33, "{emitted} of {at}");
        }
        assert_eq!(shown.whole, text.concat());
    }
}

#[test]
fn unbounded_patterns_are_refused() {
    for (patterns, reason) in [
        (&[r"\d+", "a.*b", "(a|b*c)", "a{2,}"][..], "write `{1,64}` in place of `+`"),
        (&["", "a?", r"\b", "a{0,3}", "^"], "matches an empty text"),
        (&["("], "not a regular expression"),
        (&["(?:a{100}){1,700}"], "can have 70000 bytes; at most 65536"),
    ] {
        for pattern in patterns {
            let error = ReplaceText::for_pattern(pattern, "").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Configuration);
            assert!(error.to_string().contains(reason), "{pattern}: {error}");
        }
    }
}

/// Any regular expression of a few letters, with assertions, alternatives and repetitions.
fn any_pattern() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "a", "b", "é", " ", "[ab]", r"\w", "(?s:.)", r"\b", r"\B", "^", "$", "(?m:^)", "(?m:$)", r"(?-u:\b)",
    ]);
    leaf.prop_map(str::to_owned).prop_recursive(4, 12, 3, |inner| {
        let repetitions = prop::sample::select(vec!["?", "??", "{0,2}", "{1,3}", "{1,3}?", "{2}"]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 2..4).prop_map(|parts| parts.concat()),
            prop::collection::vec(inner.clone(), 2..4).prop_map(|parts| format!("(?:{})", parts.join("|"))),
            (inner, repetitions).prop_map(|(part, times)| format!("(?:{part}){times}")),
        ]
    })
}

proptest! {
    /// Any pattern. One that matches an empty text gets another character.
    #[test]
    fn law_s5_any_pattern_is_that_of_the_whole_text(
        pattern in any_pattern(),
        pieces in prop::collection::vec("[abé \n]{0,6}", 0..8),
    ) {
        let is_possible = ReplaceText::for_pattern(&pattern, "").is_ok();
        let pattern = if is_possible { pattern } else { format!("(?:{pattern})[ab]") };
        let pieces: Vec<_> = pieces.iter().map(String::as_str).filter(|piece| !piece.is_empty()).collect();
        let text = pieces.concat();
        check(&text, &pattern, "#", std::iter::once(pieces.clone()));
    }
}
