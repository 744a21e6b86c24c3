//! Tests of `journal`.

use super::*;
use crate::{Answer, ScriptedModel};
use advisor_core::{ChatClient, Error, ErrorKind};
use futures::FutureExt;
use serde_json::json;
use std::panic::{AssertUnwindSafe, catch_unwind};

fn journal(labels: &[&str]) -> Journal {
    let journal = Journal::new();
    for &label in labels {
        journal.record(label);
    }
    journal
}

/// Returns the panic message of `assertion`.
fn failure(assertion: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(assertion)).expect_err("the assertion should fail");
    *panic.downcast::<String>().expect("a panic with a message")
}

#[test]
fn events_keep_their_order_over_clones_and_threads() {
    let journal = Journal::new();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let journal = journal.clone();
            scope.spawn(move || {
                for i in 0..100 {
                    journal.record(format!("thread {thread} step {i:03}"));
                }
            });
        }
    });
    assert_eq!(journal.count("*"), 400);
    for thread in 0..4 {
        let steps: Vec<String> = (0..100).map(|i| format!("thread {thread} step {i:03}")).collect();
        let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
        journal.assert_order(&steps);
    }
}

#[test]
fn happens_before_means_every_one_before_every_one() {
    let journal = journal(&["store r1", "tool c1", "tool c2", "store r2"]);
    journal.assert_happens_before("store r1", "tool*");
    journal.assert_happens_before("tool*", "store r2");
    // One store event is the first and another the last, so neither order holds for all of them.
    assert!(journal.happens_before("store*", "tool*").is_err());
    assert!(journal.happens_before("tool*", "store*").is_err());
    // An event does not happen before itself.
    assert!(journal.happens_before("tool c1", "tool*").is_err());
}

#[test]
fn happens_before_needs_both_to_have_happened() {
    let journal = journal(&["a", "b"]);
    for (earlier, later, absent) in [("a", "c", "c"), ("c", "b", "c"), ("x", "y", "x")] {
        let problem = journal.happens_before(earlier, later).unwrap_err();
        assert_eq!(problem.problem(), format!("nothing that matches `{absent}` was recorded"));
    }
}

#[test]
fn failed_happens_before_marks_culprits_in_timeline() {
    let journal = Journal::new();
    journal.record("turn.start");
    journal.record_with("tool.start c1", json!({"name": "get_weather"}));
    journal.record("store.append assistant r1");
    let message = failure(|| journal.assert_happens_before("store.append*", "tool.start*"));
    assert_eq!(
        message,
        "not every `store.append*` comes before every `tool.start*`\n\
        \x20    1  turn.start\n\
        >    2  tool.start c1  {\"name\":\"get_weather\"}  <- `tool.start*`\n\
        >    3  store.append assistant r1  <- `store.append*`\n"
    );
}

#[test]
fn assert_order_finds_a_subsequence() {
    let journal = journal(&["a", "x", "b", "a", "c"]);
    journal.assert_order(&["a", "b", "c"]);
    journal.assert_order(&["a", "a", "c"]);
    journal.assert_order(&["*", "*", "*", "*", "*"]);
    journal.assert_order(&[]);
    assert!(journal.in_order(&["*", "*", "*", "*", "*", "*"]).is_err());
}

#[test]
fn failed_order_names_missing_pattern_and_position() {
    let journal = journal(&["b", "a", "c"]);
    let message = failure(|| journal.assert_order(&["a", "b", "c"]));
    assert_eq!(
        message,
        "`b` comes only before `a`, not after it\n\
        >    1  b  <- `b`\n\
        >    2  a  <- `a`\n\
        \x20    3  c\n"
    );
    let absent = journal.in_order(&["a", "d"]).unwrap_err();
    assert_eq!(absent.problem(), "nothing that matches `d` comes after `a`");
    let first = journal.in_order(&["d"]).unwrap_err();
    assert_eq!(first.problem(), "nothing that matches `d` was recorded");
}

#[test]
fn a_failed_count_says_both_numbers() {
    let journal = journal(&["tool c1", "tool c2"]);
    journal.assert_count("tool*", 2);
    journal.assert_count("store*", 0);
    let message = failure(|| journal.assert_count("tool*", 3));
    assert!(message.starts_with("`tool*` was recorded 2 times instead of 3\n>    1  tool c1"), "{message}");
}

#[test]
fn long_timeline_shows_events_near_culprits() {
    let journal = Journal::new();
    for i in 1..=500 {
        journal.record(format!("event {i}"));
    }
    let message = failure(|| journal.assert_happens_before("event 400", "event 30"));
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(lines.len(), 1 + 1 + 17 + 1 + 17 + 1);
    assert_eq!(lines[1], "        ... 21 more");
    assert_eq!(lines[10], ">   30  event 30  <- `event 30`");
    assert_eq!(lines[19], "        ... 353 more");
    assert_eq!(lines[37], "        ... 92 more");
}

#[test]
fn an_empty_journal_says_so() {
    let message = failure(|| Journal::new().assert_order(&["a"]));
    assert!(message.ends_with("(nothing was recorded)\n"), "{message}");
    assert_eq!(Journal::new().to_string(), "  (nothing was recorded)\n");
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
    let event = waiting.as_mut().now_or_never().expect("it is there");
    assert_eq!(event.label, "b1");
}

#[test]
fn a_journal_comes_back_from_json() {
    let journal = journal(&["turn.start"]);
    journal.record_with("tool.start c1", json!({"name": "get_weather"}));
    let form = json!({
        "version": 1,
        "events": [{"label": "turn.start"}, {"label": "tool.start c1", "fields": {"name": "get_weather"}}],
    });
    assert_eq!(serde_json::to_value(&journal).unwrap(), form);
    let read: Journal = serde_json::from_value(form.clone()).unwrap();
    assert_eq!(read.events(), journal.events());
    let later = json!({"version": 2, "events": []});
    assert!(serde_json::from_value::<Journal>(later).unwrap_err().to_string().contains("version 2"));
}

#[tokio::test(start_paused = true)]
async fn a_timed_journal_has_whole_milliseconds() {
    let journal = Journal::timed();
    journal.record("a");
    tokio::time::advance(std::time::Duration::from_micros(12_900)).await;
    journal.record_with("b", json!({"n": 1}));
    let form = json!({"version": 1, "events": [
        {"label": "a", "at_ms": 0},
        {"label": "b", "at_ms": 12, "fields": {"n": 1}},
    ]});
    assert_eq!(serde_json::to_value(&journal).unwrap(), form);
    let read: Journal = serde_json::from_value(form).unwrap();
    assert_eq!(read.events(), journal.events());
    read.record("c");
    assert_eq!(read.events()[2].at_ms, None, "a journal that was read has no clock");
}

/// An advisor that fails after the answer.
struct Refuses;

impl advisor_core::AdvisorInfo for Refuses {
    fn name(&self) -> &'static str {
        "refuses"
    }
}

#[async_trait::async_trait]
impl advisor_core::Advisor for Refuses {
    type State = ();
    async fn before(
        &self,
        request: advisor_core::ChatRequest,
    ) -> Result<(advisor_core::ChatRequest, ()), Error> {
        Ok((request, ()))
    }
    async fn after(&self, _: (), _: &advisor_core::ChatResponse) -> Result<(), Error> {
        Err(Error::new(ErrorKind::Advisor, "no"))
    }
}

#[tokio::test]
async fn a_failed_advisor_is_recorded_as_dropped() {
    let journal = Journal::new();
    let model = ScriptedModel::new([Answer::from_text("Hi")]);
    let client = ChatClient::builder(JournalModel::new(model, &journal))
        .advisor(JournalAdvisor::new(Refuses, &journal))
        .build()
        .unwrap();
    client.prompt().user("go").call().await.unwrap_err();
    let labels = journal.labels();
    let expected = [
        "advisor.enter refuses",
        "model.ask r1",
        "model.first_chunk r1",
        "advisor.first_chunk refuses r1",
        "model.end r1",
        "advisor.drop refuses",
    ];
    assert_eq!(labels, expected);
    assert_eq!(journal.events()[4].fields, json!({"chunks": 3}));
}
