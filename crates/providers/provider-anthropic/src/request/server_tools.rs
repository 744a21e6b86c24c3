//! Tools that the server ran, in answers that go back to it.
//!
//! The API refuses a call of such a tool without its result, and a result without its call. An answer that was cut
//! off may hold one alone, and so may the messages that are left of a long conversation.
//!
//! A call without its result is accepted in the running turn. The server runs it with the next request, or it is a
//! program that has begun and waits for results of its calls.

use std::collections::HashSet;

use advisor_core::{Block, BlockContent, Message, Text};
use serde_json::Value;

use crate::wire::{CALLER, text};

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
        let value = own_opaque(block, format)?;
        let is_call = text(value, "type").is_some_and(|kind| kind.ends_with("tool_use"));
        let call = || text(value, "id").filter(|_| is_call).map(Self::Call);
        text(value, "tool_use_id").map(Self::Result).or_else(call)
    }
}

/// The form in which a block goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SentAs {
    /// As it came.
    Itself,
    /// A call that a program made which is not sent, as one that the model made.
    DirectCall,
    Nothing,
}

/// The calls of tools that the server runs, in some answers, as far as they go back.
#[derive(Debug)]
pub(super) struct Pairs<'a> {
    format: &'a Text,
    sent: HashSet<&'a str>,
}

impl<'a> Pairs<'a> {
    /// Collects the calls in blocks of one format. Blocks of other formats are never sent. Each answer is given with
    /// whether it belongs to the running turn.
    ///
    /// A call needs its result, except in the running turn. A call that was cut off in its input can never be sent. One
    /// that a program made goes only with the program: nobody else has seen its result.
    pub(super) fn new(answers: impl Iterator<Item = (&'a Message, bool)>, format: &'a Text) -> Self {
        let (mut calls, mut results) = (Vec::new(), HashSet::new());
        for (answer, is_open) in answers {
            for block in answer.blocks() {
                match ServerTool::from_block(block, format) {
                    Some(ServerTool::Call(id)) if has_input(block) => calls.push((id, is_open, block)),
                    Some(ServerTool::Result(id)) => _ = results.insert(id),
                    _ => {}
                }
            }
        }
        calls.retain(|(id, is_open, _)| *is_open || results.contains(id));
        let mut sent: HashSet<_> = calls.iter().map(|(id, ..)| *id).collect();
        for (id, _, block) in calls {
            if program_of(block, format).is_some_and(|program| !sent.contains(program)) {
                sent.remove(id);
            }
        }
        Self { format, sent }
    }

    /// Returns the form in which a block goes back.
    pub(super) fn sent_as(&self, block: &Block) -> SentAs {
        let is_sent = match ServerTool::from_block(block, self.format) {
            Some(ServerTool::Result(id)) => self.sent.contains(id),
            Some(ServerTool::Call(id)) => self.sent.contains(id) && has_input(block),
            None => true,
        };
        match program_of(block, self.format) {
            _ if !is_sent => SentAs::Nothing,
            Some(program) if block.as_tool_call().is_some() && !self.sent.contains(program) => {
                SentAs::DirectCall
            }
            _ => SentAs::Itself,
        }
    }
}

/// Returns the id of the program of the server that made a call.
fn program_of<'a>(block: &'a Block, format: &Text) -> Option<&'a str> {
    let fields = match block.as_tool_call() {
        Some(_) => own_data(block, format).find(|data| data.get(CALLER).is_some())?,
        None => own_opaque(block, format)?,
    };
    text(fields.get(CALLER)?, "tool_id")
}

fn own_opaque<'a>(block: &'a Block, format: &Text) -> Option<&'a Value> {
    match block.content() {
        BlockContent::Opaque(opaque) if opaque.format == *format => Some(&opaque.value),
        _ => None,
    }
}

fn has_input(block: &Block) -> bool {
    let BlockContent::Opaque(opaque) = block.content() else { return true };
    opaque.value.get("input").is_none_or(Value::is_object)
}

/// Returns the data of this format that came with a block, in the order of arrival.
pub(super) fn own_data<'a>(block: &'a Block, format: &Text) -> impl Iterator<Item = &'a Value> {
    let data = block.provider_data().iter();
    data.filter(move |data| data.format == *format).map(|data| &data.value)
}
