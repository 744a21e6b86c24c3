use std::ops::Range;

use advisor_core::{Message, Role};

/// What stands between two messages of the user where all that was between them is left out.
pub const LEFT_OUT: &str = "[steps of this turn are left out here]";

/// The messages of a running turn when its oldest steps are left out so that the rest is no larger than `room`, or
/// as many of them as can be. A pure function.
///
/// A step is an answer with calls and its results. Everything else stays, and so does the last step, which the
/// model has not read yet.
pub(crate) fn compact(
    running: Vec<Message>,
    room: usize,
    size: impl Fn(&[Message]) -> usize,
) -> Vec<Message> {
    let out = steps_left_out(&running, room, size);
    let is_out = |place: usize| out.iter().any(|step| step.contains(&place));
    let mut kept: Vec<Message> = Vec::with_capacity(running.len());
    for (place, message) in running.into_iter().enumerate().filter(|(place, _)| !is_out(*place)) {
        let follows_step = place.checked_sub(1).is_some_and(is_out);
        if follows_step && joins_users(kept.last(), Some(&message)) {
            kept.push(stand_in());
        }
        kept.push(message);
    }
    kept
}

/// The oldest steps, as many as have to go; what stands in for them takes room, too.
fn steps_left_out(running: &[Message], room: usize, size: impl Fn(&[Message]) -> usize) -> Vec<Range<usize>> {
    let mut steps = steps_of(running);
    steps.pop();
    let mut left = size(running);
    let mut before = None;
    let mut end = 0;
    let needed = steps.iter().take_while(|step| {
        let goes = left > room;
        // What stands before steps that go one after the other is the same for all of them.
        before = if step.start == end { before } else { step.start.checked_sub(1) };
        end = step.end;
        let joined = before.and_then(|before| running.get(before));
        if joins_users(joined, running.get(end)) {
            left += size(&[stand_in()]);
        }
        left = left.saturating_sub(size(running.get((*step).clone()).unwrap_or_default()));
        goes
    });
    let needed = needed.count();
    steps.truncate(needed);
    steps
}

/// Whether two messages of the user would meet, if nothing stood between these.
fn joins_users(before: Option<&Message>, after: Option<&Message>) -> bool {
    [before, after].iter().all(|message| message.is_some_and(|message| message.role() == Role::User))
}

fn stand_in() -> Message {
    Message::assistant(LEFT_OUT)
}

/// Where the steps of a turn stand.
fn steps_of(running: &[Message]) -> Vec<Range<usize>> {
    let mut steps: Vec<Range<usize>> = Vec::new();
    for (place, message) in running.iter().enumerate() {
        match steps.last_mut() {
            Some(step) if step.end == place && message.role() == Role::Tool => step.end += 1,
            _ if message.tool_calls().next().is_some() => steps.push(place..place + 1),
            _ => {}
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check_transcript;
    use crate::logs::{answer, calls, result, user, words};
    use proptest::prelude::*;

    fn messages(running: &[Message]) -> usize {
        running.len()
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
    fn the_oldest_steps_go_and_what_is_no_step_stays() {
        let turn = [user("go"), calls(&["1"]), result("1"), answer("hm"), calls(&["2", "3"]), result("2")];
        let turn: Vec<_> = turn.into_iter().chain([result("3"), calls(&["4"]), result("4")]).collect();
        let kept = |room| words(&compact(turn.clone(), room, messages));
        assert_eq!(kept(9), words(&turn));
        assert_eq!(kept(8), "u:go a:hm a(2,3) r2 r3 a(4) r4");
        assert_eq!(kept(7), "u:go a:hm a(2,3) r2 r3 a(4) r4");
        assert_eq!(kept(6), "u:go a:hm a(4) r4");
        assert_eq!(kept(0), "u:go a:hm a(4) r4", "the model has not read the last step yet");
    }

    #[test]
    fn two_user_messages_never_meet() {
        let turn = vec![user("go"), calls(&["1"]), result("1"), user("and"), calls(&["2"]), result("2")];
        let kept = words(&compact(turn, 3, messages));
        assert_eq!(kept, format!("u:go a:{LEFT_OUT} u:and a(2) r2"));
    }

    proptest! {
        #[test]
        fn what_stands_in_for_steps_takes_room(
            rounds in prop::collection::vec((1..3_usize, any::<bool>()), 0..8),
            room in 0..30_usize,
        ) {
            let mut turn = vec![user("go")];
            for (parallel, steered) in rounds {
                turn.extend(turn_of(&[parallel]).split_off(1));
                turn.extend(steered.then(|| user("and")));
            }
            let least = compact(turn.clone(), 0, messages).len();
            let kept = compact(turn, room, messages);
            prop_assert_eq!(check_transcript(&kept), []);
            prop_assert!(kept.len() <= room.max(least), "{}", words(&kept));
        }

        #[test]
        fn law_m1_what_is_left_of_a_turn_is_valid_and_no_larger_than_it_has_to_be(
            rounds in prop::collection::vec(1..4_usize, 0..12),
            room in 0..40_usize,
        ) {
            let turn = turn_of(&rounds);
            let kept = compact(turn.clone(), room, messages);
            prop_assert_eq!(check_transcript(&kept), []);
            let least = 1 + rounds.last().map_or(0, |parallel| parallel + 1);
            prop_assert!(kept.len() <= room.max(least), "as many go as have to");
            prop_assert_eq!(kept.first(), turn.first());
            prop_assert_eq!(kept.last(), turn.last());
            if kept.len() < turn.len() {
                let out = turn.len() - kept.len();
                let last_out = rounds.iter().scan(0, |sum, parallel| { *sum += parallel + 1; Some(*sum) })
                    .position(|sum| sum == out).unwrap();
                prop_assert!(kept.len() + rounds[last_out] + 1 > room, "no more go than have to");
            }
        }
    }
}
