use super::*;
use crate::logs::{answer, calls, result, user, words};
use crate::{NOT_STARTED, OUTCOME_UNKNOWN};

/// Adds messages and gives what is to be stored and the whole prompt afterwards.
fn add(prompt: &mut Prompt, messages: &[Message]) -> (String, String) {
    let addition = prompt.add(messages.to_vec());
    let stored = words(&addition.stored);
    prompt.take_over(addition);
    (stored, words(&prompt.messages(Vec::new())))
}

fn texts(pair: &(String, String)) -> (&str, &str) {
    (&pair.0, &pair.1)
}

#[test]
fn what_is_known_is_not_taken_twice_and_what_merely_equals_it_is() {
    let asked = user("u");
    let mut prompt = Prompt::new(Vec::new(), vec![asked.clone()]);
    let answered = answer("a");
    assert_eq!(texts(&add(&mut prompt, &[asked.clone(), answered.clone()])), ("a:a", "u:u a:a"));
    assert_eq!(texts(&add(&mut prompt, &[asked, answered.clone()])), ("", "u:u a:a"));
    assert_eq!(texts(&add(&mut prompt, &[answer("a")])), ("a:a", "u:u a:a a:a"));
}

#[test]
fn an_addition_changes_nothing_before_it_is_taken_over() {
    let mut prompt = Prompt::new(Vec::new(), vec![user("u")]);
    drop(prompt.add([answer("a")]));
    assert_eq!(words(&prompt.messages(Vec::new())), "u:u");
}

#[test]
fn ephemeral_messages_are_sent_and_not_stored_and_system_messages_neither() {
    let mut prompt = Prompt::new(Vec::new(), vec![user("u")]);
    let added = add(&mut prompt, &[user("e").ephemeral(), Message::system("s"), answer(" ")]);
    assert_eq!(texts(&added), ("", "u:u u:e"));
}

#[test]
fn results_come_behind_their_calls_in_call_order_and_others_are_left_out() {
    let mut prompt = Prompt::new(Vec::new(), vec![user("u")]);
    add(&mut prompt, &[calls(&["1", "2"])]);
    assert_eq!(texts(&add(&mut prompt, &[result("2"), result("9")])), ("r2", "u:u a(1,2)"));
    assert_eq!(texts(&add(&mut prompt, &[result("2"), result("1")])), ("r1", "u:u a(1,2) r1 r2"));
    assert_eq!(texts(&add(&mut prompt, &[result("1")])), ("", "u:u a(1,2) r1 r2"));
}

#[test]
fn the_same_id_may_be_used_again_in_another_round() {
    let mut prompt = Prompt::new(Vec::new(), vec![user("u")]);
    for _ in 0..2 {
        add(&mut prompt, &[calls(&["0"])]);
        assert_eq!(add(&mut prompt, &[result("0")]).0, "r0");
    }
    assert_eq!(words(&prompt.messages(Vec::new())), "u:u a(0) r0 a(0) r0");
}

#[test]
fn open_calls_are_answered_before_anything_else_is_sent() {
    let mut prompt = Prompt::new(Vec::new(), vec![user("u")]);
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
    prompt.take_over(addition);
    assert!(words(&prompt.messages(Vec::new())).ends_with("a(3) r3!"));
}

#[test]
fn after_an_empty_answer_the_user_does_not_speak_twice_in_a_row() {
    let mut prompt = Prompt::new(Vec::new(), vec![user("u")]);
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
    let mut prompt = Prompt::new(vec![Message::system("one")], vec![user("u")]);
    assert_eq!(words(&prompt.messages(vec![Message::system("one")])), "s:one u:u");
    let other = prompt.messages(vec![Message::system("two"), Message::system("three")]);
    assert_eq!(words(&other), "s:two s:three u:u");
    assert_eq!(words(&prompt.messages(Vec::new())), "u:u");
}

#[test]
fn the_prompt_grows_without_copying() {
    let mut prompt = Prompt::new(vec![Message::system("s")], vec![user("u")]);
    let system = vec![Message::system("s")];
    let before = prompt.messages(system.clone());
    let addition = prompt.add([answer("a")]);
    prompt.take_over(addition);
    let after = prompt.messages(system);
    assert_eq!(words(&after.added_since(&before)), "a:a");
    assert!(before.iter().zip(after.iter()).all(|(one, other)| one.is_same(other)));
}
