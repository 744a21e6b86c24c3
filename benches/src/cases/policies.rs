//! One answer through policies that replace text or judge blocks.

use advisor_chain::stream_policy::{BlockPolicy, PendingBlock, ReplaceText, Verdict};
use advisor_chain::{ChatClient, ChatRequest, Message, StreamAdvisor};

use super::answers::{CHUNKS, model};
use super::{Case, runtime};
use crate::Shape;

pub(super) fn cases() -> Vec<Case> {
    let words = || ReplaceText::new([("however", "but"), ("Mallory", "[name]")]);
    // The matches are long, and any small letter may begin one.
    let addresses = || ReplaceText::for_pattern("[a-z0-9.]{1,64}@[a-z0-9.]{1,64}", "[address]").unwrap();
    let judged = || {
        BlockPolicy::new(|pending: PendingBlock| async move {
            let deletes = pending.call().is_some_and(|call| call.name == "delete");
            Ok(if deletes { Verdict::deny("") } else { Verdict::Allow })
        })
    };
    vec![
        answering("answer, words replaced", Shape::OPENAI, words),
        answering("answer, a pattern replaced", Shape::OPENAI, addresses),
        answering("answer, text beside a judge", Shape::OPENAI, judged),
        answering("answer, arguments that are judged", Shape::ARGUMENTS, judged),
    ]
}

fn answering<A: StreamAdvisor>(name: &str, shape: Shape, advisor: fn() -> A) -> Case {
    Case::new(name, "event", CHUNKS, move |events| {
        let chain =
            ChatClient::builder(model(shape, events)).advisor(advisor()).build().unwrap().chain().clone();
        let runtime = runtime();
        move || {
            let response = runtime.block_on(chain.next_call(ChatRequest::new(Message::user("?")))).unwrap();
            std::hint::black_box(response);
        }
    })
}
