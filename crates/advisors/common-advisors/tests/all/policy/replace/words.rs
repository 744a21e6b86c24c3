//! Replaced words of a stream: split anywhere, earlier words of the list first, never across two blocks.

use advisor_core::{BlockContent, BlockKind, ChatClient, ChatRequest, DeltaKind, FinishReason, Message};
use advisor_testkit::{Answer, ScriptedModel};
use common_advisors::policy::{LetterCase, ReplaceText};
use proptest::prelude::*;

use crate::policy::pieces::splits;
use crate::policy::replace::common::replaced;

type Words<'a> = &'a [(&'a str, &'a str)];

/// The same in a whole text, letter by letter.
fn reference(text: &str, words: Words<'_>) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(first) = rest.chars().next() {
        match words.iter().find(|(word, _)| !word.is_empty() && rest.starts_with(word)) {
            Some((word, with)) => {
                out.push_str(with);
                rest = &rest[word.len()..];
            }
            None => {
                out.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    out
}

/// Returns how much of the beginning of a text must be emitted: all up to a place where a word may begin that is not
/// whole yet.
fn decided(text: &str, words: Words<'_>) -> String {
    let mut rest = text;
    let mut emitted = String::new();
    'text: while let Some(first) = rest.chars().next() {
        for (word, with) in words.iter().filter(|(word, _)| !word.is_empty()) {
            if rest.starts_with(word) {
                emitted.push_str(with);
                rest = &rest[word.len()..];
                continue 'text;
            }
            if word.starts_with(rest) {
                return emitted;
            }
        }
        emitted.push(first);
        rest = &rest[first.len_utf8()..];
    }
    emitted
}

/// Checks a text in these pieces: the result, and that no piece holds back more than it must.
fn check(text: &str, words: Words<'_>, pieces: &[&str]) {
    let shown = replaced(&ReplaceText::new(words.iter().copied()), pieces);
    assert_eq!(shown.whole, reference(text, words), "{pieces:?} {words:?}");
    let (mut received, mut emitted) = (String::new(), String::new());
    for (piece, out) in pieces.iter().zip(&shown.pieces) {
        received.push_str(piece);
        emitted.push_str(out);
        assert_eq!(emitted, decided(&received, words), "after {received:?} of {pieces:?} {words:?}");
    }
}

const CASES: [(&str, Words<'static>); 12] = [
    ("was Mallory", &[("Mallory", "[name]")]),
    ("Mallo Malo M", &[("Mallo", "[name]"), ("Malo", "[other]")]),
    ("aaaaaaaa", &[("aaa", "b")]),
    ("abcabcabd", &[("abcabd", "1"), ("abc", "2"), ("bca", "3")]),
    ("xabcd abce", &[("abcd", "1"), ("bc", "2")]),
    ("ab abc b", &[("ab", "1"), ("abc", "2")]),
    ("ab abc b", &[("abc", "2"), ("ab", "1")]),
    ("a.c abc a.c", &[("a.c", "$0"), (".*", "no"), ("(", "no")]),
    ("é→ée→é", &[("é→é", "e"), ("→", "-")]),
    ("x1x2x3", &[("x", "")]),
    ("nothing here", &[("else", "no"), ("", "never")]),
    ("secretsecre", &[("secret", "secret secret")]),
];

#[test]
fn law_s5_words_are_replaced_at_every_split() {
    for (text, words) in CASES {
        let mut count = 0;
        for pieces in splits(text) {
            check(text, words, &pieces);
            count += 1;
        }
        assert_eq!(count, 1 << (text.chars().count() - 1));
    }
}

/// A word of one character is never held back; a longer one only as far as the text may be its beginning.
#[test]
fn law_s2_only_beginnings_of_words_are_held_back() {
    let one = ReplaceText::new([("x", "y")]);
    assert_eq!(replaced(&one, &["ax", "x", "b"]).pieces, ["ay", "y", "b"]);
    let long = ReplaceText::new([("Mallory", "[name]")]);
    let shown = replaced(&long, &["It was Mall", "et, then Mal", "lory", " again. Ma"]);
    assert_eq!(shown.pieces, ["It was ", "Mallet, then ", "[name]", " again. "]);
    assert_eq!(shown.whole, "It was Mallet, then [name] again. Ma");
}

#[test]
fn letter_case_may_be_ignored() {
    let words = [("mallory", "someone"), ("straße", "street"), ("x", "why"), ("ΟΔΟΣ", "road")];
    for (text, ignoring) in [
        ("mallory", "someone"),
        ("mALLORY", "someone"),
        ("STRAßE Straße", "street street"),
        ("X x", "why why"),
        // A final sigma has a form of its own.
        ("οδος οδοσ", "road road"),
    ] {
        for pieces in splits(text) {
            let policy = ReplaceText::for_words(words, LetterCase::Ignore);
            assert_eq!(replaced(&policy, &pieces).whole, ignoring, "{pieces:?}");
            let exact = replaced(&ReplaceText::new(words), &pieces).whole;
            assert_eq!(exact == text, !["mallory", "X x"].contains(&text), "{pieces:?}");
        }
    }
}

async fn blocks(policy: ReplaceText) -> Vec<BlockContent> {
    let answer = Answer::new()
        .reasoning("a secret")
        .text("a sec")
        .call("c1", "look", "{\"at\":\"secret\"}")
        .text("ret and a se")
        .delta(DeltaKind::Refusal("secret".into()).into())
        .text("cret")
        .finish(FinishReason::ToolCalls);
    let chain =
        ChatClient::builder(ScriptedModel::new([answer])).advisor(policy).build().unwrap().chain().clone();
    let response = chain.next_call(ChatRequest::new(Message::user("?"))).await.unwrap();
    response.message().blocks().iter().map(|block| block.content().clone()).collect()
}

fn texts(blocks: &[BlockContent], kind: BlockKind) -> Vec<&str> {
    blocks.iter().filter_map(|content| content.text_of(kind)).collect()
}

/// What is held back of a block is emitted at its end, and the next block begins anew.
#[tokio::test]
async fn law_s4_no_word_spans_two_blocks() {
    let blocks = blocks(ReplaceText::new([("secret", "***")])).await;
    assert_eq!(texts(&blocks, BlockKind::Text), ["a sec", "ret and a se", "cret"]);
}

#[tokio::test]
async fn chosen_kinds_are_edited() {
    use BlockKind::{Reasoning, Refusal, Text, ToolCall};
    let policy = || ReplaceText::new([("secret", "***")]);
    for (policy, reasoning, refusal) in [
        (policy(), "a ***", "***"),
        (policy().with_kinds([Text]), "a secret", "secret"),
        (policy().with_kinds([Refusal, ToolCall]), "a secret", "***"),
    ] {
        let blocks = blocks(policy).await;
        assert_eq!(texts(&blocks, Reasoning), [reasoning]);
        assert_eq!(texts(&blocks, Refusal), [refusal]);
        let call = blocks.iter().find_map(|content| match content {
            BlockContent::ToolCall(call) => Some(call.arguments.as_str()),
            _ => None,
        });
        assert_eq!(call, Some("{\"at\":\"secret\"}"), "arguments are never edited");
    }
}

proptest! {
    /// Any words in any text, at any split.
    #[test]
    fn law_s5_any_words_at_any_split(
        words in prop::collection::vec(("[abé]{1,4}", "[abx]{0,2}"), 1..4),
        pieces in prop::collection::vec("[abéc]{0,5}", 0..8),
    ) {
        let words: Vec<_> = words.iter().map(|(word, with)| (word.as_str(), with.as_str())).collect();
        let pieces: Vec<_> = pieces.iter().map(String::as_str).filter(|piece| !piece.is_empty()).collect();
        check(&pieces.concat(), &words, &pieces);
    }
}
