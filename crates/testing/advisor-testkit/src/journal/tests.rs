//! Tests of `journal`.

use std::panic::{AssertUnwindSafe, catch_unwind};

use futures::FutureExt;

use super::*;

fn journal(labels: &[&str]) -> Journal {
    let journal = Journal::new();
    labels.iter().for_each(|label| journal.record(*label));
    journal
}

/// Returns the panic message of `assertion`.
fn failure(assertion: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(assertion)).expect_err("the assertion should fail");
    *panic.downcast::<String>().expect("a panic with a message")
}

#[test]
fn a_star_stands_for_anything() {
    for (pattern, label, expected) in [
        ("a", "a", true),
        ("a", "ab", false),
        ("", "", true),
        ("*", "", true),
        ("*", "a b", true),
        ("a*", "a", true),
        ("a*", "ab", true),
        ("a*", "ba", false),
        ("*b", "ab", true),
        ("*b", "ba", false),
        ("a*a", "a", false),
        ("a*c*e", "abcde", true),
        ("a*c*e", "abde", false),
        ("a*bc*c", "abc", false),
        ("a**b", "ab", true),
        ("*ä*", "naïv är", true),
        ("tool.* c1", "tool.end c12", false),
    ] {
        assert_eq!(matches(pattern, label), expected, "{pattern} ~ {label}");
    }
}

#[test]
fn events_keep_their_order_over_clones_and_threads() {
    let journal = Journal::new();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let journal = journal.clone();
            scope.spawn(move || (0..100).for_each(|i| journal.record(format!("{thread} {i:03}"))));
        }
    });
    assert_eq!(journal.count("*"), 400);
    for thread in 0..4 {
        let steps: Vec<String> = (0..100).map(|i| format!("{thread} {i:03}")).collect();
        journal.assert_order(&steps.iter().map(String::as_str).collect::<Vec<_>>());
    }
}

#[test]
fn happens_before_means_every_one_before_every_one() {
    let journal = journal(&["store r1", "tool c1", "tool c2", "store r2"]);
    journal.assert_happens_before("store r1", "tool*");
    journal.assert_happens_before("tool*", "store r2");
    // One store event is the first and another the last, so neither order holds for all of them.
    assert!(!journal.happens_before("store*", "tool*") && !journal.happens_before("tool*", "store*"));
    assert!(!journal.happens_before("tool c1", "tool*"), "an event does not happen before itself");
    for (earlier, later, absent) in [("tool c1", "c", "c"), ("c", "tool c1", "c"), ("x", "y", "x")] {
        let message = failure(|| journal.assert_happens_before(earlier, later));
        assert!(message.starts_with(&format!("nothing that matches `{absent}` was recorded\n")), "{message}");
    }
}

#[test]
fn failed_checks_mark_the_culprits_in_the_timeline() {
    let journal = journal(&["begins", "tool c1", "stored r1"]);
    assert_eq!(
        failure(|| journal.assert_happens_before("stored*", "tool*")),
        "not every `stored*` comes before every `tool*`\n\
         \x20    1  begins\n\
         >    2  tool c1  <- `tool*`\n\
         >    3  stored r1  <- `stored*`\n"
    );
    let message = failure(|| journal.assert_count("tool*", 3));
    assert!(message.starts_with("`tool*` was recorded 1 times instead of 3\n"), "{message}");
    assert!(failure(|| Journal::new().assert_order(&["a"])).ends_with("(nothing was recorded)\n"));
}

#[test]
fn assert_order_finds_a_subsequence() {
    let journal = journal(&["a", "x", "b", "a", "c"]);
    journal.assert_order(&["a", "b", "c"]);
    journal.assert_order(&["a", "a", "c"]);
    journal.assert_order(&["*", "*", "*", "*", "*"]);
    journal.assert_order(&[]);
    let message = failure(|| journal.assert_order(&["b", "x"]));
    assert!(message.starts_with("nothing that matches `x` comes after `b`\n"), "{message}");
    assert!(message.contains(">    2  x  <- `x`"), "{message}");
}

#[test]
fn recorded_waits_for_the_event() {
    let journal = journal(&["a"]);
    let mut waiting = Box::pin(journal.recorded("b*"));
    assert!(waiting.as_mut().now_or_never().is_none());
    journal.record("c");
    assert!(waiting.as_mut().now_or_never().is_none());
    journal.record("b1");
    journal.record("b2");
    assert_eq!(waiting.as_mut().now_or_never().as_deref(), Some("b1"));
}
