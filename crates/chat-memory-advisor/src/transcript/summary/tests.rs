//! Tests of `transcript::summarizer`.

use super::*;
use crate::tests::{answer, calls, client_side_end, completed, log, result, rolled_back, user};
use advisor_core::{Delta, DeltaKind, FinishReason};
use advisor_testkit::{Answer, ScriptedModel};
use conversation_store::EntryKind;

pub(crate) fn summarizer(after: usize, keep: usize) -> Summarizer {
    let client = ChatClient::builder(ScriptedModel::new([])).build().unwrap();
    Summarizer { after, keep, ..Summarizer::new(client, Spawner::new(drop)) }
}

fn plain(name: &'static str) -> (&'static str, Vec<EntryKind>) {
    (name, vec![user(name).into(), answer("ok").into(), completed()])
}

#[test]
fn summary_covers_all_but_last_turns_when_enough() {
    let turns = ["a", "b", "c", "d"].map(plain);
    assert_eq!(summarizer(4, 1).request(&log(&turns)), None);
    let told = summarizer(3, 1).request(&log(&turns)).unwrap();
    assert_eq!(told, (9, "User: a\nAssistant: ok\nUser: b\nAssistant: ok\nUser: c\nAssistant: ok\n".into()));
    assert_eq!(summarizer(3, 3).request(&log(&turns)).unwrap().0, 3);
    assert_eq!(summarizer(3, 4).request(&log(&turns)), None, "nothing is left to be told");
    assert_eq!(summarizer(3, 0).request(&log(&turns)).unwrap().0, 9, "the last turn always stays");
}

#[test]
fn a_summary_goes_on_from_the_one_before() {
    let mut turns = vec![plain("a"), plain("b"), plain("c"), plain("d")];
    let earlier = Summary { until: 6, text: "they talked".into() };
    turns[3].1.insert(1, EntryKind::Summary(earlier));
    let (until, told) = summarizer(1, 1).request(&log(&turns)).unwrap();
    assert_eq!(
        (until, told.as_str()),
        (9, "Summary of what was before:\nthey talked\nUser: c\nAssistant: ok\n")
    );
    assert_eq!(summarizer(2, 1).request(&log(&turns)), None);
}

#[test]
fn summary_request_is_bounded() {
    let text = "\u{e4}".repeat(MOST);
    let long = || vec![user(&text).into(), answer(&text).into(), completed()];
    let (until, told) = summarizer(2, 1).request(&log(&[("a", long()), ("b", long()), plain("c")])).unwrap();
    assert_eq!((until, told.matches(" [cut]\n").count()), (6, 4));
    assert!(told.len() < MOST);
    let many: Vec<EntryKind> = (0..40).map(|_| user(&text).into()).chain([completed()]).collect();
    let (_, told) = summarizer(1, 1).request(&log(&[("a", many), plain("b")])).unwrap();
    assert!(told.ends_with("[the rest is left out]\n") && told.len() < MOST * 5 / 4, "{}", told.len());
}

#[test]
fn summary_keeps_calls_with_results_and_skips_undone() {
    let turns = [
        ("a", vec![user("u").into(), calls(&["1"]).into(), client_side_end()]),
        ("b", vec![result("1").into(), answer("done").into(), completed()]),
        ("c", vec![user("never").into(), rolled_back()]),
        plain("d"),
    ];
    assert_eq!(summarizer(1, 3).request(&log(&turns)), None);
    let (until, told) = summarizer(1, 2).request(&log(&turns)).unwrap();
    assert_eq!(until, 6);
    assert_eq!(told, "User: u\nAssistant calls f: {}\nf: result 1\nAssistant: done\n");
    let (until, told) = summarizer(1, 1).request(&log(&turns)).unwrap();
    assert!(until == 8 && !told.contains("never"));
}

#[test]
fn request_ends_with_the_turn_that_exceeds_its_size() {
    let texts = || (0..10).map(|_| user(&"x".repeat(MOST)).into()).chain([completed()]).collect::<Vec<_>>();
    let turns = [("a", texts()), ("b", texts()), ("c", texts()), plain("d")];
    assert_eq!(summarizer(3, 1).request(&log(&turns)).unwrap().0, 11);
}

#[test]
fn last_summary_is_among_the_turns_to_read() {
    assert!(summarizer(4, 1).turns_to_read() > 4 + 1);
    assert_eq!(summarizer(usize::MAX, 1).turns_to_read(), usize::MAX);
}

#[tokio::test]
async fn refusal_of_the_model_is_no_summary() {
    let refusal = Delta::from(DeltaKind::Refusal("I cannot help.".into()));
    let model = ScriptedModel::new([Answer::new().delta(refusal).finish(FinishReason::Stop)]);
    let client = ChatClient::builder(model).build().unwrap();
    let summarizer = Summarizer { client, ..summarizer(1, 1) };
    assert_eq!(summarizer.summarize(&log(&[plain("a"), plain("b")])).await.unwrap(), None);
}

#[tokio::test]
async fn instructions_are_the_system_message_and_longest_summary_is_kept() {
    let longest = "x".repeat(LONGEST_SUMMARY);
    let model = ScriptedModel::new([Answer::from_text(longest.clone())]);
    let client = ChatClient::builder(model.clone()).build().unwrap();
    let summarizer = Summarizer { client, ..summarizer(1, 1) };
    let turns = log(&[plain("a"), plain("b")]);
    let summary = summarizer.summarize(&turns).await.unwrap().unwrap();
    assert_eq!(summary.text.as_str(), longest);
    assert_eq!(model.prompts()[0].messages.iter().next().unwrap().text(), INSTRUCTIONS);
}
