//! Tests of `transcript::window`.

use std::sync::Arc;

use advisor_core::Role;
use proptest::prelude::*;

use super::*;
use crate::repair;
use crate::tests::{Course, answer, any_courses, counted, log_of, plan_start, turn, user, words};
use crate::transcript::repair::{Repair, results_first};
use crate::transcript::texts::{LEFT_OUT, MESSAGE_LEFT_OUT};
use crate::turn::start::{LoadedConversation, StartOutcome, StartPlan};
use advisor_testkit::validate_transcript;
use conversation_store::{ReadRange, Snapshot};

fn turns(lengths: &[usize]) -> Vec<Vec<Message>> {
    let turn = |length: &usize| {
        let mut turn = vec![user("x"); length - 1];
        turn.push(answer("y"));
        turn
    };
    lengths.iter().map(turn).collect()
}

#[test]
fn a_running_turn_may_fill_the_window() {
    let measure = |count| Measure { on_overflow: OnOverflow::Refuse, ..Window::Messages(count).into() };
    let fit = |count| measure(count).fit(&turns(&[2]), vec![user("x"); 3]);
    let (filled, running) = fit(3).unwrap();
    assert_eq!((filled.turns.len(), running.len()), (0, 3));
    assert_eq!(fit(2).unwrap_err().kind(), ErrorKind::ContextOverflow);
}

#[test]
fn first_read_is_about_window_size() {
    let range = |window: Window| Measure::from(window).first_range();
    assert_eq!(range(Window::All), ReadRange::All);
    assert_eq!(range(Window::Messages(3)), ReadRange::LastEntries(6));
    assert_eq!(range(Window::Turns(3)), ReadRange::LastTurns(3));
    assert_eq!(range(Window::Tokens(3)), ReadRange::LastTurns(16));
}

/// The messages that a turn begins with, and the past that they are taken from.
struct Sent {
    measure: Measure,
    /// The turns before the running one, repaired.
    past: Vec<Vec<Message>>,
    earlier: Vec<Message>,
    running: Vec<Message>,
}

/// Begins a turn with this input, after reading as far back as the window needs.
fn begin(measure: Measure, log: &[Entry], input: &[Message]) -> Sent {
    let plan = |planned: Result<StartOutcome<StartPlan>>| match planned.unwrap() {
        StartOutcome::Asking(plan) => plan,
        StartOutcome::Answered(answer) => panic!("answered: {answer:?}"),
    };
    let snapshot = Snapshot::from_log(log, ReadRange::All);
    let past = LoadedConversation { snapshot, parent: None, unfinished: Vec::new(), summary: None };
    let all = plan(StartPlan::plan(&turn("new"), input.to_vec(), past, &measure));
    let mut earlier = plan(plan_start("new", measure.clone(), log, input, &[])).messages();
    assert_eq!(words(&earlier), words(&all.messages()), "what is read shows what is sent");
    let whole = Repair::from_log(log).finish_with(results_first(input.to_vec()), &[]);
    let running = earlier.split_off(earlier.len() - whole.running.len());
    assert_eq!(whole.running, running, "nothing of the running turn is lost");
    Sent { past: whole.earlier, earlier, running, measure }
}

impl Sent {
    /// Returns the space beside the running turn.
    fn room(&self) -> usize {
        match self.measure.window {
            Window::Messages(count) | Window::Tokens(count) => {
                count.saturating_sub(self.measure.size(&self.running))
            }
            _ => unreachable!("it is not counted in messages"),
        }
    }

    fn is_stand_in(message: &Message) -> bool {
        [LEFT_OUT, MESSAGE_LEFT_OUT].contains(&message.text().as_str())
    }

    fn check(&self) {
        let (told, size) = (words(&self.earlier), |messages: &[Message]| self.measure.size(messages));
        let sent: Vec<_> = self.earlier.iter().chain(&self.running).cloned().collect();
        assert_eq!(validate_transcript(&sent), [], "{told}");
        let in_front =
            self.earlier.first().filter(|first| Self::is_stand_in(first) && self.earlier.len() == 2);
        let counted = self.earlier.get(usize::from(in_front.is_some())..).unwrap_or_default();
        assert!(size(counted) <= self.room(), "{} in {}: {told}", size(counted), self.room());
        let begins = |messages: &[Message]| messages.first().is_none_or(|first| first.role() == Role::User);
        if self.past.iter().all(|turn| begins(turn)) {
            assert!(begins(&self.earlier), "it begins with a message of the user: {told}");
        }

        let all = self.past.concat();
        let mut rest = all.iter();
        let mut said = self.earlier.iter().filter(|message| !Self::is_stand_in(message));
        assert!(said.clone().all(|said| rest.any(|message| message == said)), "in their order: {told}");
        if size(&all) <= self.room() {
            assert_eq!(told, words(&all), "all of it fits");
        }
        let fits = |last: &&Message| size(&[(*last).clone()]) <= self.room();
        let finals = || self.past.iter().filter_map(|turn| turn.last());
        if finals().any(|last| fits(&last)) {
            assert!(said.next().is_some(), "an earlier answer fits, and nothing is sent");
        }
        if let Some(last) = finals().next_back().filter(fits) {
            assert_eq!(self.earlier.last(), Some(last), "the last answer fits");
        }
        self.check_turns(&told);
    }

    /// Checks that of each turn the latest rounds are sent, and none without its user messages and final answer.
    fn check_turns(&self, told: &str) {
        let is_sent = |message: &Message| self.earlier.contains(message);
        for turn in &self.past {
            let (last, before) = turn.split_last().unwrap();
            let by_model: Vec<_> = before.iter().filter(|message| message.role() != Role::User).collect();
            let is_sent: Vec<_> = by_model.iter().map(|message| is_sent(message)).collect();
            assert!(is_sent.is_sorted(), "the latest rounds stay: {told}");
            if is_sent.last() == Some(&true) {
                let said = before.iter().filter(|message| message.role() == Role::User).chain([last]);
                assert!(said.clone().all(|message| self.earlier.contains(message)), "{told}");
            }
        }
    }
}

/// Generates the courses of some turns, the input of the next one, and the size of a window.
fn any_case() -> impl Strategy<Value = (Vec<Course>, Vec<Message>, usize)> {
    let input = prop_oneof![Just(Vec::new()), Just(vec![user("new#1")]), Just(vec![user("new#9")])];
    (any_courses(30), input, prop_oneof![0..20_usize, 0..120_usize])
}

/// Returns the input; or, if it is empty, results for the calls that were left to the caller.
fn input_for(log: &[Entry], input: Vec<Message>) -> Vec<Message> {
    if !input.is_empty() {
        return input;
    }
    let open = Repair::from_log(log).open_calls().missing();
    if open.is_empty() { vec![user("new#1")] } else { open.into_iter().take(1).collect() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4 * ProptestConfig::default().cases))]

    #[test]
    fn law_m7_m1_window_sends_what_fits_of_any_conversation(
        (courses, input, count) in any_case(),
        stand_in in 0..12_usize,
        last in any::<prop::sample::Index>(),
    ) {
        let log = log_of(&courses);
        let input = input_for(&log, input);
        let counter: Arc<dyn TokenCounter> = Arc::new(move |message: &Message| counted(message, stand_in));
        for window in [Window::Messages as fn(usize) -> Window, Window::Tokens] {
            let measure = |count| Measure { counter: Arc::clone(&counter), ..window(count).into() };
            begin(measure(count), &log, &input).check();
            // A window that holds some of the last messages, and one that is too small for them.
            let (told, size) = (repair(&log), |messages: &[Message]| measure(0).size(messages));
            let end = told.get(last.index(told.len() + 1)..).unwrap_or_default();
            let enough = size(end) + size(&input);
            begin(measure(enough), &log, &input).check();
            begin(measure(enough.saturating_sub(1)), &log, &input).check();
        }
    }

    #[test]
    fn law_m7_a_window_of_turns_sends_the_last_turns((courses, input, count) in any_case()) {
        let log = log_of(&courses);
        let count = count % 8;
        let sent = begin(Window::Turns(count).into(), &log, &input_for(&log, input));
        let from = sent.past.len().saturating_sub(count.saturating_sub(1));
        prop_assert_eq!(sent.earlier, sent.past[from..].concat());
    }
}

mod filling {
    use super::*;
    use crate::tests::{answer, calls, counted, result, user, words};
    use crate::transcript::repair::is_answer;
    use crate::transcript::texts::{LEFT_OUT, MESSAGE_LEFT_OUT};

    /// Returns the messages sent of these turns, where a placeholder counts five.
    fn sent(turns: &[Vec<Message>], room: usize) -> String {
        sent_with(5, turns, room)
    }

    fn sent_with(stand_in: usize, turns: &[Vec<Message>], room: usize) -> String {
        let stand_ins = stand_ins();
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
