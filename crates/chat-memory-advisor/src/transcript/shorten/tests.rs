//! Tests of `transcript::shorten`.

use super::*;
use crate::tests::{answer, calls, result, user, words};
use crate::transcript::repair::has_calls;
use advisor_testkit::validate_transcript;
use proptest::prelude::*;

/// Compacts a running turn.
fn compact(
    running: &[Message],
    room: usize,
    size: impl Fn(&Message) -> usize,
    stand_ins: &[Message; 3],
) -> Vec<Message> {
    Measured::new(running, size, stand_ins, has_calls).shortened(room)
}

fn messages(running: &[Message], room: usize) -> Vec<Message> {
    compact(running, room, |_| 1, &stand_ins())
}

fn turn_of(rounds: &[usize]) -> Vec<Message> {
    let mut turn = vec![user("go")];
    for parallel in rounds {
        let ids = &["1", "2", "3"][..*parallel];
        turn.push(calls(ids));
        turn.extend(ids.iter().map(|id| result(id)));
    }
    turn
}

#[test]
fn oldest_steps_are_dropped_and_other_messages_stay() {
    let turn = [user("go"), calls(&["1"]), result("1"), answer("hm"), calls(&["2", "3"]), result("2")];
    let turn: Vec<_> = turn.into_iter().chain([result("3"), calls(&["4"]), result("4")]).collect();
    let kept = |room| words(&messages(&turn, room));
    assert_eq!(kept(9), words(&turn));
    assert_eq!(kept(8), "u:go a:hm a(2,3) r2 r3 a(4) r4");
    assert_eq!(kept(7), "u:go a:hm a(2,3) r2 r3 a(4) r4");
    assert_eq!(kept(6), "u:go a:hm a(4) r4");
    assert_eq!(kept(0), "u:go a:hm a(4) r4", "the model has not read the last step yet");
}

#[test]
fn no_two_user_messages_are_adjacent() {
    let turn = vec![user("go"), calls(&["1"]), result("1"), user("and"), calls(&["2"]), result("2")];
    let kept = words(&messages(&turn, 3));
    assert_eq!(kept, format!("u:go a:{LEFT_OUT} u:and a(2) r2"));
}

#[test]
fn user_messages_without_a_gap_stay_adjacent() {
    let turn = vec![user("go"), user("now"), calls(&["1"]), result("1"), calls(&["2"]), result("2")];
    assert_eq!(words(&messages(&turn, 4)), "u:go u:now a(2) r2");
}

proptest! {
    #[test]
    fn placeholders_for_steps_take_room(
        rounds in prop::collection::vec((1..3_usize, any::<bool>()), 0..8),
        room in 0..30_usize,
    ) {
        let mut turn = vec![user("go")];
        for (parallel, steered) in rounds {
            turn.extend(turn_of(&[parallel]).split_off(1));
            turn.extend(steered.then(|| user("and")));
        }
        let least = messages(&turn, 0).len();
        let kept = messages(&turn, room);
        prop_assert_eq!(validate_transcript(&kept), []);
        prop_assert!(kept.len() <= room.max(least), "{}", words(&kept));
    }

    #[test]
    fn fewest_steps_are_dropped_even_with_large_placeholders(
        rounds in prop::collection::vec((1..3_usize, any::<bool>()), 1..8),
        (room, large) in (0..60_usize, 0..40_usize),
    ) {
        let mut turn = vec![user("go")];
        for (parallel, steered) in rounds {
            turn.extend(turn_of(&[parallel]).split_off(1));
            turn.extend(steered.then(|| user("and")));
        }
        let stand_ins = stand_ins();
        let size = |message: &Message| if message.text() == LEFT_OUT { large } else { 2 };
        let kept = compact(&turn, room, size, &stand_ins);
        let measured = Measured::new(&turn, size, &stand_ins, has_calls);
        let most_out = turn.iter().filter(|message| message.tool_calls().next().is_some()).count() - 1;
        let fits = |out: &usize| measured.size_of(Form::Without(*out)) <= room;
        let out = (0..=most_out).find(fits).unwrap_or(most_out);
        prop_assert_eq!(words(&kept), words(&measured.messages_of(Form::Without(out))));
    }

    #[test]
    fn law_m1_compacted_turn_is_valid_and_within_room(
        rounds in prop::collection::vec(1..4_usize, 0..12),
        room in 0..40_usize,
    ) {
        let turn = turn_of(&rounds);
        let kept = messages(&turn, room);
        prop_assert_eq!(validate_transcript(&kept), []);
        let least = 1 + rounds.last().map_or(0, |parallel| parallel + 1);
        prop_assert!(kept.len() <= room.max(least), "as many steps are dropped as necessary");
        prop_assert_eq!(kept.first(), turn.first());
        prop_assert_eq!(kept.last(), turn.last());
        if kept.len() < turn.len() {
            let out = turn.len() - kept.len();
            let last_out = rounds.iter().scan(0, |sum, parallel| { *sum += parallel + 1; Some(*sum) })
                .position(|sum| sum == out).unwrap();
            prop_assert!(kept.len() + rounds[last_out] + 1 > room, "no more steps are dropped than necessary");
        }
    }
}
