//! `fill`: selects earlier turns, and the form of each, for the free room of a window.

use advisor_core::Message;

use crate::transcript::shorten::{Form, Measured};

/// The messages that a window sends of the turns before the running one.
#[derive(Debug, Default)]
pub(crate) struct Filled {
    /// The turns, oldest first, each with the messages that are sent.
    pub(crate) turns: Vec<Vec<Message>>,
    /// Whether turns before these would not be sent, with any content.
    pub(crate) full: bool,
}

/// Fills a window from the end; no message is smaller than `least`. A pure function.
///
/// - The latest turns are sent whole, as many as fit. Of older turns, the user messages and final answers are
///   sent.
/// - The whole `room` decides the form of an older turn, so the form does not depend on later turns. A turn is
///   skipped if no form of it fits into the whole room.
/// - The first turn that fits into the whole room, but not into the space left, ends the window.
/// - If nothing else of the past is sent, the placeholder for the question of a final answer takes no room.
/// - The space left at the end goes to the rounds that were left out, those of the latest turn first.
pub(crate) fn fill<'a>(
    turns: impl DoubleEndedIterator<Item = Measured<'a>>,
    room: usize,
    least: usize,
) -> Filled {
    let (mut left, mut full, mut whole) = (room, false, true);
    let mut sent: Vec<(Measured<'_>, Form)> = Vec::new();
    for turn in turns.rev() {
        whole &= turn.size_of(Form::Without(0)) <= left;
        let form = if whole { Some(Form::Without(0)) } else { turn.said(room) };
        let Some(form) = form else { continue };
        let (size, in_front) = (turn.size_of(form), form == Form::AnswerInFront);
        let fits = size <= left && (!in_front || sent.is_empty());
        if fits {
            left = left.saturating_sub(size);
            sent.push((turn, form));
        }
        full = in_front || !fits;
        if full {
            break;
        }
    }
    full |= left < least;
    for (turn, form) in &mut sent {
        if let Form::Without(1..) = form {
            let own = turn.size_of(*form).saturating_add(left);
            *form = turn.within(own);
            left = own.saturating_sub(turn.size_of(*form));
        }
    }
    Filled { turns: sent.iter().rev().map(|(turn, form)| turn.messages_of(*form)).collect(), full }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_logs::{answer, calls, counted, result, user, words};
    use crate::transcript::repair::is_answer;
    use crate::transcript::shorten::Placeholders;
    use crate::{LEFT_OUT, MESSAGE_LEFT_OUT, MemoryTexts};

    /// Returns the messages sent of these turns, where a placeholder counts five.
    fn sent(turns: &[Vec<Message>], room: usize) -> String {
        sent_with(5, turns, room)
    }

    fn sent_with(stand_in: usize, turns: &[Vec<Message>], room: usize) -> String {
        let stand_ins = Placeholders::from_texts(&MemoryTexts::default());
        let size = |message: &Message| counted(message, stand_in);
        let filled = fill(turns.iter().map(|turn| Measured::new(turn, size, &stand_ins, is_answer)), room, 1);
        words(&filled.turns.concat()).replace(LEFT_OUT, "..").replace(MESSAGE_LEFT_OUT, "...")
    }

    fn plain(question: usize, said: usize) -> Vec<Message> {
        vec![user(&format!("q#{question}")), answer(&format!("a#{said}"))]
    }

    /// Creates a turn with messages of two tokens each, and results of three.
    fn working(rounds: &[&'static str]) -> Vec<Message> {
        let round = |id: &&'static str| [calls(&[*id]), result(id)];
        let said = [user("go#2")].into_iter().chain(rounds.iter().flat_map(round));
        said.chain([answer("done#2")]).collect()
    }

    #[test]
    fn oversized_turn_keeps_question_answer_and_latest_rounds() {
        // A round counts five.
        let turns = [plain(1, 1), working(&["1", "2", "3"])];
        assert_eq!(sent(&turns, 21), "u:q#1 a:a#1 u:go#2 a(1) r1 a(2) r2 a(3) r3 a:done#2");
        assert_eq!(sent(&turns, 20), "u:go#2 a(1) r1 a(2) r2 a(3) r3 a:done#2", "it fits whole");
        assert_eq!(sent(&turns, 18), "u:q#1 a:a#1 u:go#2 a(2) r2 a(3) r3 a:done#2");
        assert_eq!(sent(&turns, 15), "u:q#1 a:a#1 u:go#2 a(3) r3 a:done#2");
        assert_eq!(sent(&turns, 10), "u:q#1 a:a#1 u:go#2 a:done#2");
        assert_eq!(sent(&turns, 5), "u:go#2 a:done#2");
    }

    #[test]
    fn latest_of_several_oversized_turns_gets_rounds_first() {
        let turns = [working(&["1", "2"]), working(&["3", "4", "5"])];
        assert_eq!(sent(&turns, 13), "u:go#2 a:done#2 u:go#2 a(5) r5 a:done#2");
        assert_eq!(sent(&turns, 18), "u:go#2 a:done#2 u:go#2 a(4) r4 a(5) r5 a:done#2");
        assert_eq!(sent(&turns, 23), "u:go#2 a:done#2 u:go#2 a(3) r3 a(4) r4 a(5) r5 a:done#2");
        assert_eq!(sent(&turns, 28), "u:go#2 a(2) r2 a:done#2 u:go#2 a(3) r3 a(4) r4 a(5) r5 a:done#2");
        let large = [vec![user("go#2"), calls(&["3"]), answer("hm#90"), answer("done#2")]];
        let turns: Vec<_> = turns.into_iter().take(1).chain(large).collect();
        assert_eq!(sent(&turns, 18), "u:go#2 a(1) r1 a(2) r2 a:done#2 u:go#2 a:done#2");
    }

    #[test]
    fn oversized_question_or_answer_becomes_placeholder() {
        let turns = [plain(1, 1), plain(50, 4)];
        assert_eq!(sent(&turns, 20), "u:q#1 a:a#1 u:... a:a#4");
        assert_eq!(sent(&turns, 8), "u:... a:a#4", "what stands in takes no room");
        assert_eq!(sent(&turns, 3), "u:q#1 a:a#1", "nothing of a turn can be sent");
        let turns = [plain(1, 1), plain(4, 50)];
        assert_eq!(sent(&turns, 20), "u:q#1 a:a#1 u:q#4 a:...");
        assert_eq!(sent(&turns, 8), "u:q#1 a:a#1");
        assert_eq!(sent(&[plain(1, 1), plain(60, 50)], 20), "u:q#1 a:a#1");
    }

    #[test]
    fn turn_that_fits_only_alone_ends_window() {
        let turns = [plain(1, 1), plain(9, 3), plain(1, 1)];
        assert_eq!(sent(&turns, 13), "u:q#1 a:a#1", "its question is not too large for the window");
        assert_eq!(sent(&turns, 14), "u:q#9 a:a#3 u:q#1 a:a#1");
    }

    #[test]
    fn answer_without_question_is_sent_without_later_turns() {
        let turns = [plain(1, 1), plain(9, 3), plain(1, 1)];
        assert_eq!(
            sent(&turns, 7),
            "u:q#1 a:a#1",
            "the turn before it would need the placeholder, and so ends the window"
        );
        assert_eq!(sent(&turns[..2], 7), "u:... a:a#3", "behind it nothing else is sent");
    }

    #[test]
    fn the_latest_messages_of_the_user_stay() {
        let steered = |first: usize| {
            let said = [user(&format!("u#{first}")), calls(&["1"]), result("1"), user("v#2"), answer("hm#2")];
            vec![said.into_iter().chain([user("w#2"), answer("done#2")]).collect::<Vec<_>>()]
        };
        let sent = |first, room| sent_with(1, &steered(first), room);
        assert_eq!(sent(2, 15), "u:u#2 a(1) r1 u:v#2 a:hm#2 u:w#2 a:done#2");
        assert_eq!(sent(2, 14), "u:u#2 a:.. u:v#2 a:hm#2 u:w#2 a:done#2");
        assert_eq!(sent(2, 10), "u:u#2 a:.. u:v#2 a:.. u:w#2 a:done#2");
        assert_eq!(sent(2, 9), "u:v#2 a:.. u:w#2 a:done#2", "what stands in takes room");
        assert_eq!(sent(9, 14), "u:v#2 a:.. u:w#2 a:done#2");
        assert_eq!(sent(9, 6), "u:w#2 a:done#2");
        assert_eq!(sent(9, 3), "u:... a:done#2");
    }
}
