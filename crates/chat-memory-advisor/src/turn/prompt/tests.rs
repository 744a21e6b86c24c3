//! Tests of `turn::prompt`.

use std::sync::Arc;

use advisor_core::ErrorKind;
use proptest::prelude::*;

use super::*;
use crate::tests::{answer, any_courses, calls, counted, log_of, result, user, words};
use crate::transcript::repair::Repair;
use crate::transcript::texts::{MESSAGE_LEFT_OUT, NOT_RUN, NOT_STARTED};
use crate::{OUTCOME_UNKNOWN, OnOverflow, Window};
use advisor_testkit::validate_transcript;

fn prompt_of(system: Vec<Message>, messages: Vec<Message>) -> Prompt {
    let pieces = Pieces { earlier: Vec::new(), running: messages };
    let (mut prompt, _) = Prompt::new(None, pieces, &Window::All.into()).unwrap();
    prompt.messages(system);
    prompt
}

/// Adds messages, and returns the ones to be stored and the whole prompt afterwards.
fn add(prompt: &mut Prompt, messages: &[Message]) -> (String, String) {
    let addition = prompt.add(messages.to_vec());
    let stored = words(&addition.stored);
    prompt.apply(addition);
    (stored, words(&prompt.messages(Vec::new())))
}

fn texts(pair: &(String, String)) -> (&str, &str) {
    (&pair.0, &pair.1)
}

#[test]
fn known_messages_are_skipped_but_equal_ones_added() {
    let asked = user("u");
    let mut prompt = prompt_of(Vec::new(), vec![asked.clone()]);
    let answered = answer("a");
    assert_eq!(texts(&add(&mut prompt, &[asked.clone(), answered.clone()])), ("a:a", "u:u a:a"));
    assert_eq!(texts(&add(&mut prompt, &[asked, answered.clone()])), ("", "u:u a:a"));
    assert_eq!(texts(&add(&mut prompt, &[answer("a")])), ("a:a", "u:u a:a a:a"));
}

#[test]
fn addition_has_no_effect_until_committed() {
    let mut prompt = prompt_of(Vec::new(), vec![user("u")]);
    drop(prompt.add([answer("a")]));
    assert_eq!(words(&prompt.messages(Vec::new())), "u:u");
}

#[test]
fn results_follow_calls_in_order_and_strays_drop() {
    let mut prompt = prompt_of(Vec::new(), vec![user("u")]);
    add(&mut prompt, &[calls(&["1", "2"])]);
    assert_eq!(texts(&add(&mut prompt, &[result("2"), result("9")])), ("r2", "u:u a(1,2)"));
    assert_eq!(texts(&add(&mut prompt, &[result("2"), result("1")])), ("r1", "u:u a(1,2) r1 r2"));
    assert_eq!(texts(&add(&mut prompt, &[result("1")])), ("", "u:u a(1,2) r1 r2"));
}

#[test]
fn open_calls_are_answered_before_other_messages() {
    let mut prompt = prompt_of(Vec::new(), vec![user("u")]);
    add(&mut prompt, &[calls(&["1", "2"])]);
    let added = add(&mut prompt, &[user("note"), result("2")]);
    assert_eq!(texts(&added), ("r2 r1! u:note", "u:u a(1,2) r1! r2 u:note"));
    add(&mut prompt, &[calls(&["3"])]);
    let settled = |prompt: &Prompt| {
        let mut addition = prompt.unchanged();
        addition.settle();
        addition
    };
    assert_eq!(settled(&prompt).stored[0].text(), NOT_STARTED);
    prompt.start_calls();
    let addition = settled(&prompt);
    assert_eq!(addition.stored[0].text(), OUTCOME_UNKNOWN);
    prompt.apply(addition);
    assert!(words(&prompt.messages(Vec::new())).ends_with("a(3) r3!"));
    add(&mut prompt, &[calls(&["4"])]);
    prompt.start_calls();
    prompt.leave_calls();
    assert_eq!(settled(&prompt).stored[0].text(), NOT_RUN, "the turn ended, and goes on");
}

#[test]
fn empty_answer_separates_user_messages_by_placeholder() {
    let mut prompt = prompt_of(Vec::new(), vec![user("u")]);
    assert_eq!(add(&mut prompt, &[user("v")]).1, "u:u u:v", "nobody was asked in between");
    add(&mut prompt, &[answer("")]);
    let added = add(&mut prompt, &[user("w"), user("x")]);
    assert_eq!(added.1, "u:u u:v a:[no answer] u:w u:x");
    assert_eq!(added.0, "a:[no answer] u:w u:x");
    add(&mut prompt, &[answer("")]);
    assert_eq!(add(&mut prompt, &[user("e").ephemeral()]).0, "", "what is not remembered leaves no trace");
}

#[test]
fn system_messages_are_those_of_the_last_request() {
    let mut prompt = prompt_of(vec![Message::system("one")], vec![user("u")]);
    assert_eq!(words(&prompt.messages(vec![Message::system("one")])), "s:one u:u");
    let other = prompt.messages(vec![Message::system("two"), Message::system("three")]);
    assert_eq!(words(&other), "s:two s:three u:u");
    assert_eq!(words(&prompt.messages(Vec::new())), "u:u");
}

#[test]
fn the_prompt_grows_without_copying() {
    let mut prompt = prompt_of(vec![Message::system("s")], vec![user("u")]);
    let system = vec![Message::system("s")];
    let before = prompt.messages(system.clone());
    let addition = prompt.add([answer("a")]);
    prompt.apply(addition);
    let after = prompt.messages(system);
    assert_eq!(words(&after.added_since(&before)), "a:a");
    assert!(before.iter().zip(after.iter()).all(|(one, other)| one.is_same(other)));
}

/// Creates a prompt that begins with the messages sent of this past.
fn started(measure: &Measure, past: Vec<Vec<Message>>, input: Message) -> Result<Prompt> {
    let pieces = Pieces { earlier: past, running: vec![input] };
    Ok(Prompt::new(Some(Message::system("what was before")), pieces, measure)?.0)
}

#[test]
fn sent_history_follows_room_beside_running_turn() {
    let measure = Measure { on_overflow: OnOverflow::Compact, ..Window::Messages(8).into() };
    let past = vec![vec![user("p"), calls(&["1"]), result("1"), answer("q")]];
    let mut prompt = started(&measure, past, user("u")).unwrap();
    let mut sent = Vec::new();
    for ids in [&["1", "2", "3"][..], &["1", "2"], &["1"], &[]] {
        prompt.fit(&measure).unwrap();
        sent.push(words(prompt.messages(vec![Message::system("s")]).iter().skip(2)));
        add(&mut prompt, &[calls(ids)]);
        add(&mut prompt, &ids.iter().map(|id| result(id)).collect::<Vec<_>>());
    }
    assert_eq!(
        sent,
        [
            "u:p a(1) r1 a:q u:u",
            "u:p a:q u:u a(1,2,3) r1 r2 r3",
            "u:u a(1,2,3) r1 r2 r3 a(1,2) r1 r2",
            "u:p a:q u:u a(1,2) r1 r2 a(1) r1",
        ]
    );
    let head: Vec<_> = prompt.messages(vec![Message::system("s")]).iter().take(2).cloned().collect();
    assert_eq!(words(&head), "s:s s:what was before");
}

#[test]
fn messages_compacted_away_are_recognized_when_resent() {
    let measure = Measure { on_overflow: OnOverflow::Compact, ..Window::Messages(4).into() };
    let mut prompt = started(&measure, Vec::new(), user("u")).unwrap();
    let round = || [calls(&["1"]), result("1")];
    let first = round();
    add(&mut prompt, &first);
    add(&mut prompt, &round());
    prompt.fit(&measure).unwrap();
    let sent = "s:what was before u:u a(1) r1";
    assert_eq!(words(&prompt.messages(Vec::new())), sent);
    assert_eq!(texts(&add(&mut prompt, &first)), ("", sent));
}

proptest! {
    #[test]
    fn law_m7_m1_growing_bounded_turn_keeps_last_answer_that_fits(
        courses in any_courses(20),
        rounds in prop::collection::vec((1..4_usize, any::<bool>()), 0..8),
        count in 0..60_usize,
        tokens in any::<bool>(),
        compact in any::<bool>(),
    ) {
        let window = if tokens { Window::Tokens(count) } else { Window::Messages(count) };
        let on_overflow = if compact { OnOverflow::Compact } else { OnOverflow::Refuse };
        let counter: Arc<dyn crate::TokenCounter> = Arc::new(|message: &Message| counted(message, 3));
        let measure = Measure { counter, on_overflow, ..window.into() };
        let size = |messages: &[Message]| {
            messages.iter().map(|message| if tokens { counted(message, 3) } else { 1 }).sum::<usize>()
        };
        let past = Repair::from_log(&log_of(&courses)).finish();
        let last = past.last().and_then(|turn| turn.last()).cloned();
        let question = user("new#1");
        let Ok(mut prompt) = started(&measure, past, question.clone()) else { return Ok(()) };
        for (nth, (parallel, steered)) in rounds.into_iter().enumerate() {
            let ids: Vec<_> = (0..parallel).map(|call| format!("{nth}-{call}")).collect();
            let ids: Vec<_> = ids.iter().map(String::as_str).collect();
            let round = [calls(&ids)].into_iter().chain(ids.iter().map(|id| result(id)));
            let round: Vec<_> = round.chain(steered.then(|| user("and#1"))).collect();
            add(&mut prompt, &round);
            if let Err(error) = prompt.fit(&measure) {
                prop_assert_eq!(error.kind(), ErrorKind::ContextOverflow);
                return Ok(());
            }
            let sent: Vec<_> = prompt.messages(Vec::new()).iter().skip(1).cloned().collect();
            prop_assert_eq!(validate_transcript(&sent), [], "{}", words(&sent));
            let counted = sent.iter().skip(usize::from(sent[0].text() == MESSAGE_LEFT_OUT));
            prop_assert!(size(&counted.cloned().collect::<Vec<_>>()) <= count, "{}", words(&sent));
            let asked = sent.iter().position(|message| *message == question).unwrap();
            let (earlier, running) = sent.split_at(asked);
            prop_assert!(running.ends_with(&round), "the last round stays: {}", words(&sent));
            let room = count - size(running);
            if let Some(last) = last.as_ref().filter(|last| size(&[(*last).clone()]) <= room) {
                prop_assert_eq!(earlier.last(), Some(last), "it fits: {}", words(&sent));
            }
        }
    }
}
