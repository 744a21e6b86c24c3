//! Tools that the server ran, in answers that go back to it.
//!
//! The API refuses a call of such a tool without its result, and a result without its call. An answer that was cut
//! off may hold one alone, and so may the messages that are left of a long conversation.
//!
//! A call without its result is accepted in an answer that the request continues. The server then runs it. That is a
//! paused answer, and one that also calls tools of the caller, if nothing but their results follows.

use std::collections::HashSet;

use advisor_core::{Block, BlockContent, Message, Text};
use serde_json::Value;

use crate::wire::text;

/// A block about a tool that the server runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServerTool<'a> {
    /// A call with this id.
    Call(&'a str),
    /// The result of the call with this id.
    Result(&'a str),
}

impl<'a> ServerTool<'a> {
    fn from_block(block: &'a Block, format: &Text) -> Option<Self> {
        let BlockContent::Opaque(opaque) = block.content() else { return None };
        if opaque.format != *format {
            return None;
        }
        let is_call = opaque.name.ends_with("tool_use");
        let call = || text(&opaque.value, "id").filter(|_| is_call).map(Self::Call);
        text(&opaque.value, "tool_use_id").map(Self::Result).or_else(call)
    }
}

/// Checks whether each call in an answer has its result there, and each result its call.
pub(super) fn is_paired(answer: &Message, format: &Text) -> bool {
    Pairs::from_messages(std::iter::once(answer), format).are_complete()
}

/// The state of the answer that a block belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerState {
    /// This request continues it: the provider paused it, or waits for results of its calls.
    Open,
    Ended,
}

/// The calls and results of the tools that the server ran in some answers.
#[derive(Debug)]
pub(super) struct Pairs<'a> {
    format: &'a Text,
    calls: HashSet<&'a str>,
    results: HashSet<&'a str>,
}

impl<'a> Pairs<'a> {
    /// Collects the calls and results in blocks of one format. Blocks of other formats are never sent.
    pub(super) fn from_messages(messages: impl Iterator<Item = &'a Message>, format: &'a Text) -> Self {
        let mut pairs = Self { format, calls: HashSet::new(), results: HashSet::new() };
        for tool in
            messages.flat_map(Message::blocks).filter_map(|block| ServerTool::from_block(block, format))
        {
            match tool {
                ServerTool::Call(id) => pairs.calls.insert(id),
                ServerTool::Result(id) => pairs.results.insert(id),
            };
        }
        pairs
    }

    fn are_complete(&self) -> bool {
        self.calls == self.results
    }

    /// Checks whether a block can be sent.
    ///
    /// A call needs its result, and a result its call; but the call of an open answer needs none. A call that was
    /// cut off in its input can never be sent. Other blocks can always be sent.
    pub(super) fn allow(&self, block: &Block, answer: AnswerState) -> bool {
        match ServerTool::from_block(block, self.format) {
            None => true,
            Some(ServerTool::Result(id)) => self.calls.contains(id),
            Some(ServerTool::Call(id)) => {
                (answer == AnswerState::Open || self.results.contains(id)) && has_input(block)
            }
        }
    }
}

fn has_input(block: &Block) -> bool {
    let BlockContent::Opaque(opaque) = block.content() else { return true };
    opaque.value.get("input").is_none_or(Value::is_object)
}
