//! Guards on output: split anywhere, the answer ends at the first match, and only possible matches are held.

use advisor_core::FinishReason;
use common_advisors::policy::{Guard, LetterCase, OutputGuard};
use proptest::prelude::*;
use regex::Regex;

use crate::policy::pieces::{Shown, edited};

/// A character that no text of these tests has.
const REPLY: &str = "█";

fn guarded(guard: &OutputGuard, pieces: &[&str]) -> Shown {
    edited(guard.clone(), pieces)
}

fn words(words: &[&str]) -> OutputGuard {
    Guard::for_words(words.iter().copied(), LetterCase::Exact).with_reply(REPLY).on_output()
}

fn pattern(pattern: &str) -> OutputGuard {
    Guard::for_pattern(pattern).unwrap().with_reply(REPLY).on_output()
}

/// Returns the text that is shown of a whole text whose first match begins here.
fn shown(text: &str, start: Option<usize>) -> String {
    start.map_or_else(|| text.to_owned(), |start| text[..start].to_owned() + REPLY)
}

fn first_word(text: &str, words: &[&str]) -> Option<usize> {
    let words = words.iter().filter(|word| !word.is_empty());
    words.filter_map(|word| text.find(word)).min()
}

/// Returns the text that must be shown of the beginning of a text: all up to a place where a word is, or may begin.
fn decided(text: &str, words: &[&str]) -> String {
    let undecided = |rest: &str| words.iter().any(|word| !word.is_empty() && word.starts_with(rest));
    let ended = first_word(text, words);
    let first = text.char_indices().map(|(at, _)| at).find(|at| undecided(&text[*at..]));
    match (ended, first) {
        (Some(ended), Some(first)) if first < ended => text[..first].to_owned(),
        (None, Some(first)) => text[..first].to_owned(),
        (ended, _) => shown(text, ended),
    }
}

/// Checks that the pieces show the expected whole text, and after each piece all that is decided.
fn check(pieces: &[&str], guard: &OutputGuard, whole: &str, decided: impl Fn(&str) -> String) {
    let out = guarded(guard, pieces);
    assert_eq!(out.whole, whole, "{pieces:?}");
    assert_eq!(out.reason == FinishReason::ContentFilter, whole.contains(REPLY), "{pieces:?}");
    let (mut received, mut emitted) = (String::new(), String::new());
    for (piece, shown) in pieces.iter().zip(&out.pieces) {
        received.push_str(piece);
        emitted.push_str(shown);
        assert_eq!(emitted, decided(&received), "after {received:?} of {pieces:?}");
    }
}

/// Nothing is held back but the possible beginning of a match, and a certain match ends the answer at once.
#[test]
fn law_s2_guard_holds_back_only_possible_matches() {
    let long = words(&["Mallory"]);
    let out = guarded(&long, &["It was Mall", "et, then Mal", "lory", " again."]);
    assert_eq!(out.pieces, ["It was ", "Mallet, then ", REPLY, ""]);
    // It does not wait for a longer word or a longer match.
    let both = words(&["Mallory", "Mal"]);
    assert_eq!(guarded(&both, &["a Ma", "l", "lory"]).pieces, ["a ", REPLY, ""]);
    let digits = pattern(r"\d{2,9}");
    assert_eq!(guarded(&digits, &["a 1", "2", "3"]).pieces, ["a ", REPLY, ""]);
    // This match depends on the next character.
    let whole = pattern(r"\bcat\b");
    assert_eq!(guarded(&whole, &["a cat", "s, a cat", "."]).pieces, ["a ", "cats, a ", REPLY]);
    assert_eq!(guarded(&whole, &["a cat"]).whole, format!("a {REPLY}"), "the end of the block decides");
    // A closure needs the whole text.
    let closure = Guard::for_texts(|text| text.ends_with("cat")).with_reply(REPLY).on_output();
    let out = guarded(&closure, &["a ", "cat"]);
    assert_eq!((out.pieces, out.whole), (vec![String::new(), String::new()], REPLY.to_owned()));
    assert_eq!(guarded(&closure, &["a ", "cat", "s"]).whole, "a cats");
}

const PATTERNS: [&str; 11] = [
    r"\bab?\b", "a{1,3}b?", "(?:ab|a)c", "b{2}", r"\Ba", "[ab]{1,4}c", r"é\b", "(?m)^a|b$", "a|ab", "abc|b",
    "b|abc",
];

/// Returns the text that all continuations share. The patterns are decided after two more characters at most.
fn decided_by_pattern(text: &str, regex: &Regex) -> String {
    let letters = ["", "a", "b", "c", "é", " ", "\n"];
    let more = letters.iter().flat_map(|one| letters.iter().map(move |two| [*one, *two].concat()));
    let shown = more.map(|more| {
        let text = text.to_owned() + &more;
        shown(&text, regex.find(&text).map(|found| found.start()))
    });
    let same = |one: String, other: String| {
        one.chars().zip(other.chars()).take_while(|(one, other)| one == other).map(|(one, _)| one).collect()
    };
    shown.reduce(same).unwrap()
}

proptest! {
    #[test]
    fn law_s2_s5_any_words_at_any_split(
        list in prop::collection::vec("[abé]{1,4}", 1..4),
        pieces in prop::collection::vec("[abéc]{0,5}", 0..8),
    ) {
        let list: Vec<_> = list.iter().map(String::as_str).collect();
        let pieces: Vec<_> = pieces.iter().map(String::as_str).filter(|piece| !piece.is_empty()).collect();
        let text = pieces.concat();
        let whole = shown(&text, first_word(&text, &list));
        check(&pieces, &words(&list), &whole, |text| decided(text, &list));
    }

    #[test]
    fn law_s2_s5_any_text_of_a_pattern(
        source in prop::sample::select(&PATTERNS[..]),
        pieces in prop::collection::vec("[abcé \n]{0,4}", 0..6),
    ) {
        let pieces: Vec<_> = pieces.iter().map(String::as_str).filter(|piece| !piece.is_empty()).collect();
        let (text, regex) = (pieces.concat(), Regex::new(source).unwrap());
        let whole = shown(&text, regex.find(&text).map(|found| found.start()));
        check(&pieces, &pattern(source), &whole, |text| decided_by_pattern(text, &regex));
    }
}
