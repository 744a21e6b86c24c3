//! `Shown`: a message as a client shows it, with its turn. `ShownIds`: the ids of its calls, as in the stream.

use std::collections::{HashMap, VecDeque};

use advisor_core::{Block, BlockContent, BlockKind, Message, Role, Text, ToolCall, ToolResult, TurnId};
use advisor_sse::CallIds;
use chat_memory_advisor::TurnMessages;
use serde::Serialize;
use serde_json::Value;

use crate::markdown::{Node, Room, render};
use crate::routes::page::events::View;

/// A message as a client shows it, with its turn.
#[derive(Debug, Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub(super) enum Shown {
    User {
        text: String,
        turn: String,
    },
    Assistant {
        text: String,
        reasoning: String,
        turn: String,
        /// The parts in their order, for the page.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        parts: Vec<ShownPart>,
        calls: Vec<ShownCall>,
    },
    Tool {
        id: String,
        tool: String,
        result: String,
        is_error: bool,
        turn: String,
    },
}

#[derive(Debug, Serialize)]
pub(super) struct ShownCall {
    id: String,
    tool: String,
    args: Value,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ShownPart {
    /// With its elements as Markdown. There are none for a text that stays plain.
    Text {
        text: String,
        nodes: Vec<Node>,
    },
    Reasoning {
        text: String,
    },
    Call(ShownCall),
}

/// Returns the messages of a turn, without those that only the model sees, and without instructions. Texts whose elements
/// have no room stay plain.
pub(super) fn shown_messages(
    turn: &TurnMessages,
    view: View,
    ids: &mut ShownIds,
    room: &mut Room,
) -> impl Iterator<Item = Shown> {
    ids.begin_turn();
    let messages = turn.messages.iter().filter(|message| !message.is_hidden());
    messages.filter_map(move |message| shown(message, &turn.turn, view, ids, room))
}

/// Takes note of the ids of a turn that is shown elsewhere.
pub(super) fn pass_turn(turn: &TurnMessages, ids: &mut ShownIds) {
    ids.begin_turn();
    turn.messages.iter().filter(|message| !message.is_hidden()).for_each(|message| ids.pass(message));
}

fn shown(message: &Message, turn: &TurnId, view: View, ids: &mut ShownIds, room: &mut Room) -> Option<Shown> {
    Some(match message.role() {
        Role::User => Shown::User { text: message.text(), turn: turn.to_string() },
        Role::Assistant => {
            let (blocks, ids) = (message.blocks(), ids.of_calls(message));
            let reasoning = blocks.iter().filter_map(|block| block.content().text_of(BlockKind::Reasoning));
            let parts = match view {
                View::Answer => Vec::new(),
                View::Page => parts(blocks, ids.iter(), room),
            };
            Shown::Assistant {
                text: message.text(),
                // The parts of a summary are blocks.
                reasoning: reasoning
                    .map(|part| part.trim_start_matches('\n'))
                    .collect::<Vec<_>>()
                    .join("\n\n"),
                parts,
                calls: message.tool_calls().zip(ids).map(|(of, id)| call(of, id)).collect(),
                turn: turn.to_string(),
            }
        }
        Role::Tool => {
            let result = message.tool_result()?;
            let (id, tool) = (ids.of_result(result), result.name.to_string());
            Shown::Tool { id, tool, result: result.text(), is_error: result.is_error, turn: turn.to_string() }
        }
        _ => return None,
    })
}

/// Blocks without text, such as media, are not shown. The ids are those of the answer's calls.
///
/// Texts beside each other are one: providers split a sentence to attach a source or a signature.
fn parts<'a>(blocks: &[Block], mut ids: impl Iterator<Item = &'a String>, room: &mut Room) -> Vec<ShownPart> {
    let mut parts = Vec::new();
    let mut last = None;
    for block in blocks.iter().filter(|block| block.kind() != BlockKind::Citation) {
        let continues = last.replace(block.kind()) == Some(block.kind());
        match block.content() {
            BlockContent::Text(text) | BlockContent::Refusal(text) => match parts.last_mut() {
                Some(ShownPart::Text { text: before, .. }) if continues => before.push_str(text),
                _ => parts.push(ShownPart::Text { text: text.clone(), nodes: Vec::new() }),
            },
            BlockContent::Reasoning(text) => parts.push(ShownPart::Reasoning { text: text.clone() }),
            BlockContent::ToolCall(of) => {
                parts.extend(ids.next().map(|id| ShownPart::Call(call(of, id.clone()))));
            }
            _ => {}
        }
    }
    for part in &mut parts {
        if let ShownPart::Text { text, nodes } = part {
            *nodes = render(text, room);
        }
    }
    parts
}

fn call(call: &ToolCall, id: String) -> ShownCall {
    ShownCall {
        id,
        tool: call.name.to_string(),
        args: call.parsed_arguments().unwrap_or_else(|_| Value::String(call.arguments.clone())),
    }
}

/// The ids of calls and their results, as in the stream of their turn.
#[derive(Debug, Clone, Default)]
pub(in crate::routes) struct ShownIds {
    turn: CallIds,
    /// The ids of the calls of the last answer, by the id in memory. Their results follow, perhaps in the next turn.
    open: HashMap<Text, VecDeque<Text>>,
}

impl ShownIds {
    pub(in crate::routes) fn begin_turn(&mut self) {
        self.turn = CallIds::default();
    }

    /// Begins a turn whose calls' ids all end so.
    pub(in crate::routes) fn begin_turn_with(&mut self, suffix: String) {
        self.turn = CallIds::with_suffix(suffix);
    }

    /// Takes note of the ids of a message that is shown elsewhere.
    pub(in crate::routes) fn pass(&mut self, message: &Message) {
        match message.tool_result() {
            Some(result) => drop(self.of_result(result)),
            None if message.role() == Role::Assistant => drop(self.of_calls(message)),
            None => {}
        }
    }

    /// Returns the ids of the calls of an answer, in their order.
    pub(in crate::routes) fn of_calls(&mut self, answer: &Message) -> Vec<String> {
        self.open.clear();
        let ids = answer.tool_calls().map(|call| {
            let id = self.turn.next_id(&call.id);
            self.open.entry(call.id.clone()).or_default().push_back(id.clone());
            id.to_string()
        });
        ids.collect()
    }

    /// Returns the id of the call of a result.
    pub(in crate::routes) fn of_result(&mut self, result: &ToolResult) -> String {
        let open = self.open.get_mut(&result.call_id).and_then(VecDeque::pop_front);
        open.unwrap_or_else(|| result.call_id.clone()).to_string()
    }
}
