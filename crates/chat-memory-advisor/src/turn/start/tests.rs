//! Tests of `turn::start`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use advisor_core::{CallKey, ErrorKind, TurnEnd, async_trait};
use conversation_store::ReadRange;
use proptest::prelude::*;

use super::*;
use crate::tests::{
    answer, any_log, calls, client_side_end, completed, log, plan_start, result, started, stored, turn,
    turn_memory, user, wait_for, words,
};
use crate::transcript::summary::tests::summarizer;
use crate::transcript::texts::{CONTINUED_WITHOUT_RESULTS, NOT_RUN};
use crate::{INTERRUPTED, Window, repair};
use advisor_testkit::{Around, Asked, StoreAround, Work, validate_transcript};

fn planned(log: &[Entry], said: &[Message], unfinished: &[UnfinishedTurn]) -> Result<StartPlan> {
    plan_in(Window::All, log, said, unfinished)
}

/// Returns the plan of a turn that has no answer yet.
fn plan_in(
    window: Window,
    log: &[Entry],
    said: &[Message],
    unfinished: &[UnfinishedTurn],
) -> Result<StartPlan> {
    match start_in(window, log, said, unfinished)? {
        StartOutcome::Asking(plan) => Ok(plan),
        StartOutcome::Answered(answer) => panic!("answered: {answer:?}"),
    }
}

fn past(log: &[Entry], range: ReadRange, unfinished: &[UnfinishedTurn]) -> LoadedConversation {
    let unfinished = unfinished.to_vec();
    LoadedConversation { snapshot: Snapshot::from_log(log, range), parent: None, unfinished, summary: None }
}

fn start_in(
    window: Window,
    log: &[Entry],
    said: &[Message],
    unfinished: &[UnfinishedTurn],
) -> Result<StartOutcome<StartPlan>> {
    plan_start("new", window.into(), log, said, unfinished)
}

impl StartPlan {
    /// Returns the messages to send.
    pub(crate) fn messages(&self) -> Vec<Message> {
        self.prompt.clone().messages(Vec::new()).iter().cloned().collect()
    }
}

/// Describes the entries to write, one word each with its turn: `t:u:hello`, `t:end`.
fn written(plan: &StartPlan) -> String {
    let word = |new: &NewEntry| match &new.kind {
        EntryKind::Message(message) => format!("{}:{}", new.turn, words([message])),
        EntryKind::TurnEnded(TurnEnd::Interrupted { partial }) => format!("{}:cut({partial})", new.turn),
        EntryKind::TurnEnded(TurnEnd::RolledBack) => format!("{}:undone", new.turn),
        _ => format!("{}:end", new.turn),
    };
    plan.entries.iter().map(word).collect::<Vec<_>>().join(" ")
}

fn with(log: &[Entry], plan: &StartPlan) -> Vec<Entry> {
    let mut log = log.to_vec();
    let seqs = plan.version.0 + 1..;
    log.extend(seqs.zip(&plan.entries).map(|(seq, new)| Entry::new(seq, new.turn.clone(), new.kind.clone())));
    log
}

#[test]
fn law_t5_resumed_turn_knows_its_started_calls() {
    let own = vec![user("u").into(), calls(&["1", "2"]).into(), started(1, 0, "1")];
    let dead = log(&[("t", vec![user("t").into(), answer("a").into(), completed()]), ("new", own)]);
    let plan = planned(&dead, &[user("u")], &[]).unwrap();
    assert_eq!(written(&plan), "new:r1! new:r2!");
    assert_eq!(plan.earlier_run.as_ref().unwrap().started, [CallKey::new(turn("t"), 1, 0)].into());
    let told = [crate::VERIFY_BEFORE_RETRYING, crate::OUTCOME_UNKNOWN];
    assert_eq!(result_texts(&plan.messages()), told);
    let stored: Vec<_> = plan.entries.iter().filter_map(|new| new.kind.as_message().cloned()).collect();
    assert_eq!(result_texts(&stored), told);
}

fn result_texts(messages: &[Message]) -> Vec<String> {
    messages.iter().filter_map(Message::tool_result).map(advisor_core::ToolResult::text).collect()
}

#[test]
fn started_calls_of_dead_turn_must_be_verified() {
    let dead = log(&[("t", vec![user("u").into(), calls(&["1", "2"]).into(), started(1, 1, "2")])]);
    let plan = planned(&dead, &[user("v")], &[]).unwrap();
    assert_eq!(written(&plan), "t:r1! t:r2! t:cut() new:u:v");
    let told = [crate::OUTCOME_UNKNOWN, crate::VERIFY_BEFORE_RETRYING];
    assert_eq!(result_texts(&plan.messages()), told);
    assert_eq!(result_texts(&repair(&with(&dead, &plan))), told, "and it stays so");
}

#[test]
fn dead_turn_is_closed_with_known_shown_text() {
    let dead = log(&[("t", vec![user("u").into(), calls(&["1", "2"]).into(), result("2").into()])]);
    let plan = planned(&dead, &[user("v")], &[]).unwrap();
    assert_eq!(written(&plan), "t:r1! t:cut() new:u:v");
    assert_eq!(words(&plan.messages()), "u:u a(1,2) r1! r2 a:[interrupted] u:v");

    let dead = log(&[("t", vec![user("u").into()])]);
    let cut = |partial: &str| TurnEnd::Interrupted { partial: partial.into() };
    let known = |end| UnfinishedTurn { end, ..UnfinishedTurn::new(turn("t"), Version(1), Vec::new()) };
    let plan = planned(&dead, &[user("v")], &[known(cut("so f"))]).unwrap();
    assert_eq!(written(&plan), "t:cut(so f) new:u:v");
    assert_eq!(words(&plan.messages()), "u:u a:so f [interrupted] u:v");
    let plan = planned(&dead, &[user("v")], &[known(TurnEnd::RolledBack)]).unwrap();
    assert_eq!(written(&plan), "t:undone new:u:v");
    assert_eq!(words(&plan.messages()), "u:v");
    let other = UnfinishedTurn { turn: turn("other"), ..known(cut("x")) };
    assert_eq!(written(&planned(&dead, &[user("v")], &[other]).unwrap()), "t:cut() new:u:v");
}

#[test]
fn input_may_answer_calls_of_previous_turn() {
    let asking = |end: Option<EntryKind>| {
        let kinds = [EntryKind::from(user("u")), calls(&["1", "2"]).into()].into_iter().chain(end).collect();
        log(&[("t", kinds)])
    };
    let all = planned(&asking(Some(client_side_end())), &[result("2"), result("1")], &[]).unwrap();
    assert_eq!(written(&all), "new:r2 new:r1");
    assert_eq!(words(&all.messages()), "u:u a(1,2) r1 r2");
    let some = planned(&asking(Some(client_side_end())), &[user("v"), result("2")], &[]).unwrap();
    assert_eq!(written(&some), "t:r1! t:end new:r2 new:u:v", "results come first");
    assert_eq!(words(&some.messages()), "u:u a(1,2) r1! r2 u:v");
    let none = planned(&asking(Some(client_side_end())), &[user("v")], &[]).unwrap();
    assert_eq!(written(&none), "t:r1! t:r2! t:end new:u:v");
    assert_eq!(words(&none.messages()), format!("u:u a(1,2) r1! r2! a:{CONTINUED_WITHOUT_RESULTS} u:v"));
    let stored = |plan: &StartPlan| {
        let stored = plan.entries.iter().filter_map(|new| new.kind.as_message()?.tool_result());
        stored.map(advisor_core::ToolResult::text).collect::<Vec<_>>()
    };
    assert_eq!((stored(&none), stored(&some)[0].as_str()), (vec![NOT_RUN.to_owned(); 2], NOT_RUN));
    let dead = planned(&asking(None), &[result("1"), result("2")], &[]).unwrap();
    assert_eq!(written(&dead), "t:cut() new:r1 new:r2");
    assert_eq!(words(&dead.messages()), "u:u a(1,2) r1 r2");
}

#[test]
fn unread_results_can_be_submitted_again() {
    let brought = |kinds: Vec<EntryKind>| {
        let asking = vec![user("u").into(), calls(&["1", "2"]).into(), client_side_end()];
        log(&[("t", asking), ("failed", kinds)])
    };
    let failed = || EntryKind::TurnEnded(TurnEnd::Failed { partial: "".into() });
    let both = brought(vec![result("1").into(), result("2").into(), failed()]);
    let again = planned(&both, &[result("1"), result("2")], &[]).unwrap();
    assert_eq!(written(&again), "failed:undone new:r1 new:r2");
    assert_eq!(words(&again.messages()), "u:u a(1,2) r1 r2");
    let with_text = brought(vec![result("1").into(), result("2").into(), user("v").into(), failed()]);
    let all = [result("1"), result("2"), user("v")];
    assert_eq!(written(&planned(&with_text, &all, &[]).unwrap()), "failed:undone new:r1 new:r2 new:u:v");
    // Messages that the input does not repeat must not get lost, and results that the model has answered cannot be
    // brought again.
    planned(&with_text, &all[..2], &[]).unwrap_err();
    planned(&both, &[result("1")], &[]).unwrap_err();
    let read = brought(vec![result("1").into(), result("2").into(), answer("a").into(), failed()]);
    planned(&read, &[result("1"), result("2")], &[]).unwrap_err();
}

#[test]
fn result_for_unknown_call_is_refused() {
    let asking = log(&[("t", vec![user("u").into(), calls(&["1"]).into(), client_side_end()])]);
    for said in [vec![result("9")], vec![result("1"), result("1")], vec![user("v"), result("9")]] {
        let error = planned(&asking, &said, &[]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration);
        assert!(error.to_string().contains("no such call"), "{error}");
    }
    let own = [user("v"), calls(&["9"]), result("9"), user("w")];
    assert_eq!(words(&planned(&[], &own, &[]).unwrap().messages()), "u:v a(9) r9 u:w");
}

#[test]
fn answered_turn_returns_same_answer() {
    let failed = || EntryKind::TurnEnded(TurnEnd::Failed { partial: "".into() });
    let own = vec![user("v").into(), answer("yes").into(), completed()];
    let later = ("t", vec![user("u").into(), answer("a").into(), completed()]);
    for log in [
        log(&[("new", own.clone())]),
        log(&[("new", own.clone()), later]),
        log(&[("new", own.iter().cloned().chain([failed()]).collect())]),
    ] {
        match start_in(Window::All, &log, &[user("v")], &[]).unwrap() {
            StartOutcome::Answered(answer) => {
                assert_eq!(
                    (answer.text().as_str(), answer.finish.reason.clone()),
                    ("yes", advisor_core::FinishReason::Stop)
                );
            }
            StartOutcome::Asking(plan) => panic!("{plan:?}"),
        }
    }
}

#[test]
fn turn_with_unknown_end_is_refused() {
    let damage = || EntryKind::Corrupt(b"half".into());
    for own in [
        vec![damage(), answer("a").into(), completed()],
        vec![user("v").into(), damage(), completed()],
        vec![user("v").into(), answer("a").into(), damage()],
        vec![user("v").into(), damage()],
    ] {
        let error = start_in(Window::All, &log(&[("new", own)]), &[user("v")], &[]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Store, "{error}");
    }
    // Damage elsewhere does not hide the end.
    let own = vec![user("v").into(), damage(), answer("a").into(), completed()];
    let started_turn = start_in(Window::All, &log(&[("new", own)]), &[user("v")], &[]).unwrap();
    assert!(matches!(started_turn, StartOutcome::Answered(answer) if answer.text() == "a"));
}

#[test]
fn turn_id_reused_for_other_input_is_refused() {
    let failed = || EntryKind::TurnEnded(TurnEnd::Failed { partial: "".into() });
    let undone = || EntryKind::TurnEnded(TurnEnd::RolledBack);
    let later = ("t", vec![user("u").into(), answer("a").into(), completed()]);
    for (log, why) in [
        (log(&[("new", vec![user("w").into()])]), "another input"),
        (log(&[("new", vec![user("w").into(), answer("a").into(), completed()])]), "another input"),
        (log(&[("new", vec![user("v").into(), failed()]), later]), "gone on"),
        (log(&[("new", vec![user("v").into(), undone()])]), "rolled back"),
    ] {
        let error = start_in(Window::All, &log, &[user("v")], &[]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TurnIdReused);
        assert!(error.to_string().contains(why) && error.to_string().contains("new id"), "{error}");
    }
}

#[test]
fn beginning_writes_after_entries_closing_previous_turn() {
    let open = log(&[("t", vec![user("u").into()])]);
    let plan = planned(&open, &[user("v")], &[]).unwrap();
    let unfinished = plan.unsure(&turn("new")).unwrap();
    assert_eq!(
        (unfinished.known, unfinished.unsure.len(), unfinished.until),
        (Some(Version(1)), 1, Some(Version(3)))
    );
}

#[test]
fn law_k3_only_new_turn_is_at_its_beginning() {
    let new = planned(&[], &[user("v")], &[]).unwrap().unsure(&turn("new")).unwrap();
    assert_eq!(new.stopped, StoppedWhile::Beginning);
    let open = log(&[("new", vec![user("v").into(), calls(&["1"]).into()])]);
    let resumed = planned(&open, &[user("v")], &[]).unwrap().unsure(&turn("new")).unwrap();
    assert_eq!(resumed.stopped, StoppedWhile::Running);
}

/// Returns how many entries of a log a turn with this name and input reads.
fn read_by(
    name: &str,
    measure: Measure,
    log: &[Entry],
    said: &[Message],
    unfinished: &[UnfinishedTurn],
) -> usize {
    #[derive(Default)]
    struct Counting(AtomicUsize);
    #[async_trait]
    impl Around for Counting {
        async fn around(&self, _: Asked<'_>, work: Work<'_>) -> Result<Option<Version>, StoreError> {
            work.await
        }

        fn show(&self, snapshot: &mut Snapshot) {
            self.0.store(snapshot.entries.len(), Ordering::Relaxed);
        }
    }
    let store = StoreAround::with(Arc::new(stored(log)), Counting::default());
    let memory = turn_memory(store.clone(), name, measure).0;
    for turn in unfinished {
        memory.registry.register(&memory.key, turn.clone());
    }
    drop(wait_for(Start::new(&memory, said).read()));
    store.around.0.load(Ordering::Relaxed)
}

/// A turn of three entries.
fn plain(name: &'static str) -> (&'static str, Vec<EntryKind>) {
    (name, vec![user(name).into(), answer("ok").into(), completed()])
}

const MANY: [&str; 20] =
    ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s", "t"];

#[test]
fn law_m7_unwritten_text_of_dropped_turn_takes_room() {
    let mut turns = MANY.map(plain);
    turns[19].1.truncate(1);
    let log = log(&turns);
    let end = TurnEnd::Interrupted { partial: "so far".into() };
    let version = Version(log.len() as u64);
    let unfinished = [UnfinishedTurn { end, ..UnfinishedTurn::new(turn("t"), version, Vec::new()) }];
    // Each of the other turns counts one.
    let counter: Arc<dyn crate::TokenCounter> =
        Arc::new(|message: &Message| if message.text() == "ok" { 0 } else { message.text().len() });
    let measure = || Measure { counter: Arc::clone(&counter), ..Window::Tokens(17).into() };
    assert_eq!(read_by("new", measure(), &log, &[user("v")], &[]), 46, "without a text it ends the window");
    assert_eq!(
        read_by("new", measure(), &log, &[user("v")], &unfinished),
        58,
        "it does not fit, so earlier turns may"
    );
}

#[test]
fn reading_continues_until_summary_covers_read_entries() {
    for (until, read) in [(39, 25), (20, 61)] {
        let mut turns = MANY.map(plain);
        turns[19].1.insert(1, EntryKind::Summary(Summary { until, text: "they talked".into() }));
        // It reads eight turns first.
        let measure = Measure { summarizer: Some(summarizer(2, 1)), ..Window::All.into() };
        assert_eq!(read_by("new", measure, &log(&turns), &[user("x")], &[]), read);
    }
}

#[test]
fn law_m3_turn_that_begins_between_attempts_is_conflict() {
    let open =
        |name: &str| log(&[("ended", vec![user("u").into(), completed()]), (name, vec![user("v").into()])]);
    let second = |log: &[Entry], unfinished: &[&str]| {
        let memory = turn_memory(stored(&[]), "own", Window::All.into()).0;
        let said = [user("w")];
        let start = Start { attempts: 2, open: Some(turn("a")), ..Start::new(&memory, &said) };
        let stopped = |name: &&str| UnfinishedTurn::new(turn(name), None, Vec::new());
        let unfinished: Vec<_> = unfinished.iter().map(stopped).collect();
        start.check_others(&Snapshot::from_log(log, ReadRange::All), &unfinished).is_ok()
    };
    assert!(second(&open("a"), &[]), "it was open before");
    assert!(second(&open("own"), &[]), "an attempt began it");
    assert!(second(&open("b"), &["b"]), "it stopped in this process");
    assert!(!second(&open("b"), &[]) && !second(&open("b"), &["c"]));
    assert!(second(&[], &[]));
}

#[test]
fn law_r1_attempts_to_begin_are_bounded() {
    let memory = turn_memory(stored(&[]), "own", Window::All.into()).0;
    let said = [user("w")];
    for attempts in 1..=ATTEMPTS {
        let mut start = Start { attempts, ..Start::new(&memory, &said) };
        let again = start.retry_after(Err(StoreError::Conflict { current: Version(1) }));
        assert_eq!(again.is_ok(), attempts < ATTEMPTS, "attempt {attempts}");
    }
}

proptest! {
    #[test]
    fn law_m6_from_any_log_the_next_request_is_valid(log in any_log(), count in 0..12_usize, all in any::<bool>()) {
        let window = if all { Window::All } else { Window::Messages(count) };
        let plan = plan_in(window, &log, &[user("v")], &[]).unwrap();
        prop_assert_eq!(validate_transcript(&plan.messages()), []);
        prop_assert_eq!(plan.messages().last().cloned(), Some(user("v")));
    }

    #[test]
    fn law_m2_sent_messages_equal_later_view_of_log(log in any_log()) {
        let measure = Window::All.into();
        let started_turn = StartPlan::plan(&turn("new"), vec![user("v")], past(&log, ReadRange::All, &[]), &measure);
        let StartOutcome::Asking(plan) = started_turn.unwrap() else { panic!("the turn is new") };
        let mut told = repair(&with(&log, &plan));
        prop_assert_eq!(told.pop().unwrap().text(), INTERRUPTED);
        prop_assert_eq!(told, plan.messages());
    }

    #[test]
    fn a_dead_turn_is_closed_once(log in any_log(), partial in "[a-c]{0,2}") {
        let Some(last) = log.chunk_by(same_turn).next_back() else { return Ok(()) };
        let name = last[0].turn.clone();
        let unfinished = UnfinishedTurn {
            end: TurnEnd::Interrupted { partial: partial.as_str().into() },
            ..UnfinishedTurn::new(name, Version(log.len() as u64), Vec::new())
        };
        let plan = planned(&log, &[user("v")], std::slice::from_ref(&unfinished)).unwrap();
        let after = with(&log, &plan);
        let input = after.chunk_by(same_turn).next_back().unwrap().len();
        let closed = &after[..after.len() - input];
        let again = planned(closed, &[user("v")], &[unfinished]).unwrap();
        prop_assert_eq!(written(&again), "new:u:v");
        prop_assert_eq!(again.messages(), plan.messages());
    }
}
