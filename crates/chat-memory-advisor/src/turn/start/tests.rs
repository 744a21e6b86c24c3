//! Tests of `turn::start`.

use std::sync::Arc;

use advisor_core::{ChatRequest, ConversationKey, Turn};
use conversation_store::{InMemoryStore, ReadRange, Snapshot};

use super::*;
use crate::Window;
use crate::conversation::unfinished_turn::UnfinishedTurn;
use crate::settings::Settings;
use crate::test_logs::{completed, log, turn, user};
use crate::turn::TurnMemory;

/// A conversation in which this turn is open, beside an ended one.
fn with_open(name: &str, unfinished: &[&str]) -> LoadedConversation {
    let log = log(&[("ended", vec![user("u").into(), completed()]), (name, vec![user("v").into()])]);
    let stopped = |name: &&str| UnfinishedTurn::new(turn(name), None, Vec::new());
    let unfinished = unfinished.iter().map(stopped).collect();
    let snapshot = Snapshot::from_log(&log, ReadRange::All);
    LoadedConversation { snapshot, parent: None, unfinished, summary: None }
}

#[test]
fn law_m3_turn_that_begins_between_attempts_is_conflict() {
    let second = |first: LoadedConversation, second: LoadedConversation| {
        let mut attempts = Attempts::for_input(&[user("w")]);
        attempts.check_loaded(&first, &turn("own")).expect("any turn may be open before");
        attempts.check_loaded(&second, &turn("own")).is_ok()
    };
    assert!(second(with_open("a", &[]), with_open("a", &[])), "it was open before");
    assert!(second(with_open("a", &[]), with_open("own", &[])), "an attempt began it");
    assert!(second(with_open("a", &[]), with_open("b", &["b"])), "it stopped in this process");
    assert!(!second(with_open("a", &[]), with_open("b", &[])));
    assert!(!second(with_open("a", &[]), with_open("b", &["c"])));
    let ended = LoadedConversation { snapshot: Snapshot::default(), ..with_open("a", &[]) };
    assert!(second(with_open("a", &[]), ended));
}

#[test]
fn law_r1_attempts_to_begin_are_bounded() {
    let mut attempts = Attempts::for_input(&[user("u")]);
    let conflict = || Err(StoreError::Conflict { current: Version::new(1) });
    for count in 1..ATTEMPTS {
        attempts.check_loaded(&with_open("a", &[]), &turn("own")).unwrap();
        assert!(attempts.retry_after_append(conflict(), &turn("own")).is_ok(), "attempt {count}");
    }
    attempts.check_loaded(&with_open("a", &[]), &turn("own")).unwrap();
    assert!(attempts.retry_after_append(conflict(), &turn("own")).is_err());
}

#[test]
fn only_a_resumed_turn_has_an_unfinished_run() {
    let plan = |turns: &[(&str, Vec<_>)]| {
        let snapshot = Snapshot::from_log(&log(turns), ReadRange::All);
        let loaded = LoadedConversation { snapshot, ..with_open("a", &[]) };
        match StartPlan::plan(&turn("t"), vec![user("u")], loaded, &Window::All.into()).unwrap() {
            StartOutcome::Asking(plan) => plan,
            StartOutcome::Answered(answer) => panic!("answered: {answer:?}"),
        }
    };
    let (resumed, new) = (plan(&[("t", vec![user("u").into()])]), plan(&[]));
    let request = ChatRequest::new(user("u")).with_turn(Turn::new(turn("t")));
    let settings = Settings::new(Arc::new(InMemoryStore::new()));
    let memory = TurnMemory::new(&settings, &request, ConversationKey::new("c").unwrap()).0;
    assert!(!memory.has_unfinished_run(&resumed), "its earlier run has ended, or ran elsewhere");
    memory.registry.unfinished.register(&memory.key, UnfinishedTurn::new(turn("t"), None, Vec::new()));
    assert!(memory.has_unfinished_run(&resumed));
    assert!(!memory.has_unfinished_run(&new), "nothing of an earlier run is stored");
}
