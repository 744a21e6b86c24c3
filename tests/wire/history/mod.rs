//! A conversation that begins with one provider continues with any other, and follows the rules of that one.
//!
//! Each origin plays the same conversation through its real model, the tool loop and memory: a turn of three rounds
//! with a picture, reasoning, parallel calls, one of them without arguments, and results with a picture and with an
//! error; then a turn that ends in a refusal, or is filtered or cut. The stored conversation is exported and imported.
//! Each target continues it, and its request is checked against its rules, which each file in `targets/` lists.

mod odd;
mod origins;
mod story;
mod targets;

use std::panic::{AssertUnwindSafe, catch_unwind};

use targets::Sent;

#[tokio::test]
async fn conversation_follows_the_rules_of_each_next_provider() {
    let (mut checked, mut broken) = (0, Vec::new());
    for origin in origins::ALL {
        let conversation = story::begun_with(origin).await;
        for target in targets::ALL {
            let body = story::continued_with(target, &conversation).await;
            let sent = Sent { origin, target, items: (target.read)(&body), body };
            for rule in target.rules.iter().copied().flatten() {
                if catch_unwind(AssertUnwindSafe(|| (rule.check)(&sent))).is_err() {
                    broken.push(format!("from {} to {}: {}", origin.name, target.name, rule.name));
                }
                checked += 1;
            }
        }
    }
    println!("{checked} rules checked");
    assert!(broken.is_empty(), "{broken:#?}");
}

#[tokio::test]
async fn every_answer_is_sent_and_none_is_empty() {
    for target in targets::ALL.into_iter().filter(|target| target.in_text.is_none()) {
        odd::sent_to(target).await;
    }
}

#[tokio::test]
async fn pictures_of_any_type_do_not_stop_the_next_provider() {
    for target in targets::ALL.into_iter().filter(|target| target.in_text.is_none()) {
        odd::pictures_sent_to(target).await;
    }
}

#[tokio::test]
async fn every_failure_of_a_tool_is_sent_as_text() {
    for target in targets::ALL.into_iter().filter(|target| target.in_text.is_none()) {
        odd::failures_sent_to(target).await;
    }
}
