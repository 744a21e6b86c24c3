//! Tests of `transcript::repair`.

use advisor_core::{ToolCall, ToolResult};
use proptest::prelude::*;

use super::*;
use crate::tests::{
    answer, any_log, calls, client_side_end, completed, interrupted, log, ordinary_log, result, rolled_back,
    started, user, words,
};
use crate::transcript::texts::{CONTINUED_WITHOUT_RESULTS, NO_ANSWER, NOT_RUN};
use crate::{OUTCOME_UNKNOWN, VERIFY_BEFORE_RETRYING};
use advisor_testkit::validate_transcript;

fn repaired(turns: &[(&str, Vec<EntryKind>)]) -> String {
    let messages = repair(&log(turns));
    assert_eq!(validate_transcript(&messages), []);
    words(&messages)
}

/// Its content is left out, too.
#[test]
fn refused_turn_has_no_answer_and_was_not_interrupted() {
    let refused = vec![user("u").into(), EntryKind::TurnEnded(TurnEnd::Refused)];
    let next = vec![user("v").into(), answer("b").into(), completed()];
    let sent = repaired(&[("t", refused), ("n", next)]);
    assert!(sent.ends_with(&format!("] a:{NO_ANSWER} u:v a:b")), "{sent}");
}

#[test]
fn law_t1_every_call_gets_one_result_in_call_order() {
    let open = |results: &[&str]| {
        let mut turn: Vec<EntryKind> = vec![user("u").into(), calls(&["1", "2", "1"]).into()];
        turn.extend(results.iter().map(|id| result(id).into()));
        repaired(&[("t", turn)])
    };
    assert_eq!(open(&[]), "u:u a(1,2,1) r1! r2! r1! a:[interrupted]");
    assert_eq!(open(&["2"]), "u:u a(1,2,1) r1! r2 r1! a:[interrupted]");
    assert_eq!(open(&["2", "1", "1", "1", "9"]), "u:u a(1,2,1) r1 r2 r1 a:[interrupted]");
    let text = repair(&log(&[("t", vec![user("u").into(), calls(&["1"]).into()])]))[2].text();
    assert_eq!(text, OUTCOME_UNKNOWN);
}

#[test]
fn turn_beginning_with_stray_result_answers_no_calls() {
    let asked = vec![user("u").into(), calls(&["1"]).into(), client_side_end()];
    let next = |id: &str| vec![result(id).into(), user("v").into(), answer("b").into(), completed()];
    assert_eq!(repaired(&[("t", asked.clone()), ("n", next("1"))]), "u:u a(1) r1 u:v a:b");
    assert_eq!(
        repaired(&[("t", asked), ("n", next("9"))]),
        format!("u:u a(1) r1! a:{CONTINUED_WITHOUT_RESULTS} u:v a:b")
    );
}

#[test]
fn law_m1_omitted_answer_never_leaves_adjacent_user_messages() {
    for lost in [result("9"), answer(" ")] {
        let turn = vec![user("u").into(), lost.into(), user("v").into()];
        assert_eq!(repaired(&[("t", turn)]), "u:u a:[no answer] u:v a:[interrupted]");
    }
}

#[test]
fn open_calls_follow_last_remembered_message_of_turn() {
    let open = |next: Message| {
        let kinds = vec![user("u").into(), calls(&["1", "2"]).into(), next.into()];
        words(&open_calls(&log(&[("t", kinds)])).missing())
    };
    assert_eq!(open(result("1")), "r2!");
    assert_eq!(open(calls(&["3"])), "r3!");
    assert_eq!((open(user("v")), open(answer("a"))), (String::new(), String::new()));
    for nothing in [result("1").ephemeral(), answer("a").ephemeral(), answer(" "), Message::system("s")] {
        assert_eq!(open(nothing), "r1! r2!");
    }
}

/// Returns the results of a turn's calls: `?` outcome unknown, `!` verify before retrying, `-` not run, `=`
/// result.
fn answered(kinds: Vec<EntryKind>) -> String {
    let messages = repair(&log(&[("t", kinds)]));
    assert_eq!(validate_transcript(&messages), []);
    let mark = |text: &str| match text {
        OUTCOME_UNKNOWN => '?',
        VERIFY_BEFORE_RETRYING => '!',
        NOT_RUN => '-',
        _ => '=',
    };
    messages.iter().filter_map(Message::tool_result).map(|result| mark(&result.text())).collect()
}

#[test]
fn law_t1_t5_started_once_only_call_must_be_verified() {
    let open = |more: Vec<EntryKind>| {
        answered([user("u").into(), calls(&["1", "2", "1"]).into()].into_iter().chain(more).collect())
    };
    assert_eq!(open(vec![]), "???");
    assert_eq!(open(vec![started(1, 1, "2")]), "?!?");
    assert_eq!(open(vec![started(1, 0, "1"), started(1, 2, "1")]), "!?!");
    assert_eq!(open(vec![started(1, 2, "1")]), "??!", "of two calls of one id, the one at its place");
    assert_eq!(
        open(vec![started(1, 7, "2"), started(1, 8, "1")]),
        "!!?",
        "of an answer that was changed, by the id"
    );
    assert_eq!(open(vec![started(1, 0, "9")]), "???", "a call of another answer");
    assert_eq!(open(vec![started(1, 0, "1"), result("1").into(), result("2").into()]), "==?");
    assert_eq!(open(vec![started(1, 1, "2"), started(1, 2, "1"), result("1").into()]), "=!!");
    let later = vec![started(1, 0, "1"), calls(&["1"]).into()];
    assert_eq!(open(later), "!???", "the start of an earlier round says nothing of a later one");
}

#[test]
fn client_side_calls_did_not_run_unless_started() {
    let left = |more: Vec<EntryKind>| {
        answered([user("u").into(), calls(&["1", "2"]).into()].into_iter().chain(more).collect())
    };
    let failed = || EntryKind::TurnEnded(TurnEnd::Failed { partial: "".into() });
    assert_eq!(left(vec![client_side_end()]), "--");
    assert_eq!(left(vec![completed()]), "--", "whatever the provider calls it");
    assert_eq!((left(vec![interrupted("")]), left(vec![failed()])), ("??".into(), "??".into()));
    assert_eq!(left(vec![started(1, 1, "2"), client_side_end()]), "-!");
    assert_eq!(left(vec![client_side_end(), result("2").into(), client_side_end()]), "-=");
    assert_eq!(
        left(vec![client_side_end(), interrupted("")]),
        "--",
        "what failed afterwards does not start them"
    );
    assert_eq!(left(vec![client_side_end(), user("v").into(), calls(&["1"]).into()]), "--?");
}

#[test]
fn closed_client_side_calls_keep_their_stored_results() {
    let told = |text: &str| {
        let unknown = Message::tool(ToolResult::error(&ToolCall::new("1", "f", ""), text));
        let closed = vec![
            user("u").into(),
            calls(&["1"]).into(),
            client_side_end(),
            unknown.into(),
            client_side_end(),
        ];
        let messages = repair(&log(&[("t", closed), ("n", vec![user("v").into()])]));
        (messages[2].text(), messages[3].text())
    };
    assert_eq!(told(NOT_RUN), (NOT_RUN.into(), CONTINUED_WITHOUT_RESULTS.into()));
    assert_eq!(
        told(OUTCOME_UNKNOWN),
        (OUTCOME_UNKNOWN.into(), CONTINUED_WITHOUT_RESULTS.into()),
        "as an older version told"
    );
}

#[test]
fn late_or_orphaned_result_is_left_out() {
    let late = vec![
        user("u").into(),
        calls(&["1"]).into(),
        user("v").into(),
        result("1").into(),
        answer("a").into(),
        completed(),
    ];
    assert_eq!(repaired(&[("t", late)]), "u:u a(1) r1! u:v a:a");
    let orphan = vec![result("1").into(), user("u").into(), answer("a").into(), completed()];
    assert_eq!(repaired(&[("t", orphan)]), "u:u a:a");
    assert_eq!(repaired(&[("t", vec![result("1").into(), completed()])]), "", "nothing is left of the turn");
}

#[test]
fn unanswered_turn_is_closed_visibly_for_model() {
    let next = || ("next", vec![user("v").into(), answer("b").into(), completed()]);
    let closed = |end: Option<EntryKind>| {
        let turn = [EntryKind::from(user("u"))].into_iter().chain(end).collect();
        repaired(&[("t", turn), next()])
    };
    assert_eq!(closed(None), "u:u a:[interrupted] u:v a:b");
    assert_eq!(closed(Some(interrupted(""))), "u:u a:[interrupted] u:v a:b");
    assert_eq!(closed(Some(interrupted("so far"))), "u:u a:so far [interrupted] u:v a:b");
    assert_eq!(closed(Some(interrupted("so far "))), "u:u a:so far [interrupted] u:v a:b");
    assert_eq!(closed(Some(interrupted("so far\n"))), "u:u a:so far\n[interrupted] u:v a:b");
    let failed = EntryKind::TurnEnded(TurnEnd::Failed { partial: "half".into() });
    assert_eq!(closed(Some(failed)), "u:u a:half [interrupted] u:v a:b");
    assert_eq!(closed(Some(completed())), "u:u a:[no answer] u:v a:b");
    assert_eq!(closed(Some(rolled_back())), "u:v a:b");
}

#[test]
fn calls_ending_turn_may_be_answered_by_next() {
    let asking = || ("one", vec![user("u").into(), calls(&["1", "2"]).into(), client_side_end()]);
    let next = |messages: &[Message]| {
        let mut turn: Vec<EntryKind> = messages.iter().cloned().map(EntryKind::from).collect();
        turn.extend([answer("a").into(), completed()]);
        ("two", turn)
    };
    assert_eq!(repaired(&[asking()]), format!("u:u a(1,2) r1! r2! a:{CONTINUED_WITHOUT_RESULTS}"));
    assert_eq!(
        repaired(&[asking(), next(&[result("2"), result("1"), user("v")])]),
        "u:u a(1,2) r1 r2 u:v a:a"
    );
    assert_eq!(repaired(&[asking(), next(&[result("2")])]), "u:u a(1,2) r1! r2 a:a");
    let passed_over = format!("u:u a(1,2) r1! r2! a:{CONTINUED_WITHOUT_RESULTS}");
    assert_eq!(repaired(&[asking(), next(&[user("v")])]), format!("{passed_over} u:v a:a"));
    let undone = ("two", vec![result("1").into(), result("2").into(), rolled_back()]);
    assert_eq!(repaired(&[asking(), undone]), passed_over);
    let silent = ("two", vec![result("1").into(), result("2").into(), completed()]);
    assert_eq!(repaired(&[asking(), silent]), "u:u a(1,2) r1 r2 a:[no answer]");
}

#[test]
fn omitted_answer_leaves_placeholder_between_user_messages() {
    let empty = vec![user("u").into(), answer(" ").into(), user("v").into(), answer("a").into(), completed()];
    assert_eq!(repaired(&[("t", empty)]), "u:u a:[no answer] u:v a:a");
    let resumed = vec![user("u").into(), completed(), user("v").into(), answer("a").into(), completed()];
    assert_eq!(repaired(&[("t", resumed)]), "u:u a:[no answer] u:v a:a");
    let said_twice = log(&[("t", vec![user("u").into(), user("v").into(), answer("a").into(), completed()])]);
    assert_eq!(words(&repair(&said_twice)), "u:u u:v a:a", "what the caller said stays as it was said");
}

#[test]
fn continued_turn_has_its_last_recorded_end() {
    let went_on =
        vec![user("u").into(), answer("a").into(), completed(), answer("b").into(), interrupted("c")];
    assert_eq!(repaired(&[("t", went_on)]), "u:u a:a a:b a:c [interrupted]");
}

/// Creates a log of complete turns with the same transcript.
fn as_log(pieces: &[Vec<Message>]) -> Vec<Entry> {
    let turns: Vec<_> = (0..)
        .zip(pieces)
        .map(|(number, piece): (u32, _)| {
            let kinds = piece.iter().cloned().map(EntryKind::from).chain([completed()]).collect();
            (format!("t{number}"), kinds)
        })
        .collect();
    log(&turns
        .iter()
        .map(|(name, kinds): &(String, Vec<_>)| (name.as_str(), kinds.clone()))
        .collect::<Vec<_>>())
}

#[test]
fn calls_of_answer_match_by_ordered_ids() {
    let open = OpenCalls::from_message(&calls(&["1", "2"]));
    assert!(open.are_those_of(&calls(&["1", "2"])));
    for other in [calls(&["2", "1"]), calls(&["1"]), calls(&["1", "2", "3"]), answer("no call")] {
        assert!(!open.are_those_of(&other));
    }
}

proptest! {
    #[test]
    fn law_m1_repaired_transcript_is_valid(log in any_log()) {
        prop_assert_eq!(validate_transcript(&repair(&log)), []);
    }

    #[test]
    fn repairing_twice_changes_nothing_more(log in any_log()) {
        let pieces = Repair::from_log(&log).finish();
        let again = Repair::from_log(&as_log(&pieces)).finish();
        prop_assert_eq!(&again, &pieces, "a text that is there stays");
        for piece in &pieces {
            prop_assert_eq!(validate_transcript(piece), [], "each piece is valid by itself");
        }
    }

    #[test]
    fn valid_transcript_is_unchanged(log in ordinary_log()) {
        let ends = |entry: &Entry| matches!(&entry.kind, EntryKind::TurnEnded(TurnEnd::Interrupted { .. }));
        if log.iter().any(ends) {
            return Ok(());
        }
        let messages: Vec<_> = log.iter().filter_map(|entry| entry.kind.as_message()).cloned().collect();
        prop_assert_eq!(repair(&log), messages);
    }

    #[test]
    fn only_the_end_changes_when_a_turn_follows(log in any_log(), cut in any::<prop::sample::Index>()) {
        let turns: Vec<_> = log.chunk_by(same_turn).collect();
        let kept: Vec<_> = turns.iter().take(cut.index(turns.len() + 1)).copied().flatten().cloned().collect();
        let before = Repair::from_log(&kept).finish();
        let after = Repair::from_log(&log).finish();
        let untouched = before.len().saturating_sub(1);
        prop_assert_eq!(&before[..untouched], &after[..untouched]);
    }
}

/// Law M6: wherever an entry is damaged, the transcript is valid, and the turns around the entry are unchanged.
#[test]
fn law_m6_a_damaged_entry_leaves_a_valid_transcript() {
    let whole = log(&[
        ("a", vec![user("1").into(), answer("x").into(), completed()]),
        (
            "b",
            vec![
                user("2").into(),
                calls(&["1", "2"]).into(),
                result("1").into(),
                result("2").into(),
                answer("y").into(),
                completed(),
            ],
        ),
        ("c", vec![user("3").into(), answer("z").into(), completed()]),
    ]);
    for place in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[place].kind = EntryKind::Corrupt(b"half an en".into());
        let messages = repair(&damaged);
        assert_eq!(validate_transcript(&messages), [], "{place}: {}", words(&messages));
        let told = words(&messages);
        for (turn, entries) in [("u:1 a:x", 0..3), ("u:2 a(1,2) r1 r2 a:y", 3..9), ("u:3 a:z", 9..12)] {
            assert!(told.contains(turn) || entries.contains(&place), "{place}: {told}");
        }
        assert!(!told.contains("half"));
    }
}
