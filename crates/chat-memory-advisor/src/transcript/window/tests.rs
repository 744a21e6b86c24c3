//! Tests of `transcript::window`.

use std::sync::Arc;

use advisor_core::Role;
use proptest::prelude::*;

use super::*;
use crate::test_logs::{Course, answer, any_courses, counted, log_of, turn, user, words};
use crate::transcript::repair::{Repair, results_first};
use crate::turn::reading::Reading;
use crate::turn::start_plan::{LoadedConversation, StartOutcome, StartPlan};
use crate::{LEFT_OUT, MESSAGE_LEFT_OUT, repair, validate_transcript};
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
    let fitted = fit(3).unwrap();
    assert_eq!((fitted.earlier.len(), fitted.running.len()), (0, 3));
    assert_eq!(fit(2).unwrap_err().kind(), ErrorKind::ContextOverflow);
}

#[test]
fn turn_window_counts_whole_turns_or_is_unlimited() {
    let sent = |window: Window| {
        let filled = Measure::from(window).fill(&turns(&[2, 5, 3]), &[user("x")]);
        (filled.turns.iter().map(Vec::len).collect::<Vec<_>>(), filled.full)
    };
    assert_eq!(sent(Window::All), (vec![2, 5, 3], false));
    assert_eq!(sent(Window::Turns(0)), (vec![], true));
    assert_eq!(sent(Window::Turns(1)), (vec![], true));
    assert_eq!(sent(Window::Turns(3)), (vec![5, 3], true));
    assert_eq!(sent(Window::Turns(5)), (vec![2, 5, 3], false));
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
    let new = turn("new");
    let plan = |range| {
        let snapshot = Snapshot::from_log(log, range);
        let past = LoadedConversation { snapshot, parent: None, unfinished: Vec::new(), summary: None };
        match StartPlan::plan(&new, input.to_vec(), past, &measure).unwrap() {
            StartOutcome::Asking(plan) => plan,
            StartOutcome::Answered(answer) => panic!("answered: {answer:?}"),
        }
    };
    let reading = Reading::new(&measure).before(&new, input);
    let answers = input.iter().any(|message| message.role() == Role::Tool);
    let mut range = if answers { ReadRange::All } else { reading.first_range() };
    while let Some(larger) = reading.larger_range(range, &Snapshot::from_log(log, range)) {
        range = larger;
    }
    let (plan, all) = (plan(range), plan(ReadRange::All));
    assert_eq!(words(&plan.messages()), words(&all.messages()), "{range:?} shows what is sent");
    let Fitted { earlier, running, .. } = plan.fitted;
    let whole = Repair::from_log(log, &measure.texts).finish_with(results_first(input.to_vec()), &[]);
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
    let open = Repair::from_log(log, &MemoryTexts::default()).open_calls().missing(&MemoryTexts::default());
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
