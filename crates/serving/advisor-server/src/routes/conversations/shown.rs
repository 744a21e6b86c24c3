//! Messages as a client shows them, with their turn. `ShownIds`: the ids of its calls, as in the stream.

use std::collections::{HashMap, VecDeque};

use advisor_core::{Block, BlockContent, BlockKind, Message, Role, Text, ToolCall, ToolResult, TurnId};
use advisor_sse::CallIds;
use chat_memory_advisor::TurnMessages;
use serde_json::{Value, json};

use crate::markdown::{Room, render};
use crate::routes::page::events::View;

/// Returns the messages of a turn, without those that only the model sees, and without instructions. Texts whose elements
/// have no room stay plain.
pub(super) fn shown_messages(
    turn: &TurnMessages,
    view: View,
    ids: &mut ShownIds,
    room: &mut Room,
) -> impl Iterator<Item = Value> {
    ids.begin_turn();
    let messages = turn.messages.iter().filter(|message| !message.is_hidden());
    messages.filter_map(move |message| shown(message, &turn.turn, view, ids, room))
}

/// Takes note of the ids of a turn that is shown elsewhere.
pub(super) fn pass_turn(turn: &TurnMessages, ids: &mut ShownIds) {
    ids.begin_turn();
    turn.messages.iter().filter(|message| !message.is_hidden()).for_each(|message| ids.pass(message));
}

fn shown(message: &Message, turn: &TurnId, view: View, ids: &mut ShownIds, room: &mut Room) -> Option<Value> {
    Some(match message.role() {
        Role::User => json!({"role": "user", "text": message.text(), "turn": turn}),
        Role::Assistant => {
            let ids = ids.of_calls(message);
            let reasoning =
                message.blocks().iter().filter_map(|block| block.content().text_of(BlockKind::Reasoning));
            // The parts of a summary are blocks.
            let reasoning: Vec<_> = reasoning.map(|part| part.trim_start_matches('\n')).collect();
            let call =
                |(of, id): (&ToolCall, &String)| json!({"id": id, "tool": of.name, "args": arguments(of)});
            let calls: Vec<_> = message.tool_calls().zip(&ids).map(call).collect();
            let mut shown = json!({
                "role": "assistant", "text": message.text(), "reasoning": reasoning.join("\n\n"), "calls": calls,
                "turn": turn,
            });
            if let (View::Page, Some(fields)) = (view, shown.as_object_mut()) {
                fields.insert("parts".into(), parts(message.blocks(), &ids, room).into());
            }
            shown
        }
        Role::Tool => {
            let result = message.tool_result()?;
            json!({
                "role": "tool", "id": ids.of_result(result), "tool": result.name, "result": result.text(),
                "is_error": result.is_error, "turn": turn,
            })
        }
        _ => return None,
    })
}

/// Returns the parts of an answer in their order: texts with their elements as Markdown, reasoning, and calls, which have
/// these ids. There are no elements for a text that stays plain. Blocks without text, such as media, are not shown.
///
/// Texts beside each other are one: providers split a sentence to attach a source or a signature.
fn parts(blocks: &[Block], ids: &[String], room: &mut Room) -> Vec<Value> {
    let blocks: Vec<_> = blocks.iter().filter(|block| block.kind() != BlockKind::Citation).collect();
    let is_text = |block: &Block| matches!(block.kind(), BlockKind::Text | BlockKind::Refusal);
    let mut ids = ids.iter();
    let mut part = |run: &[&Block]| match run.first()?.content() {
        BlockContent::Text(_) | BlockContent::Refusal(_) => {
            let text: String = run.iter().filter_map(|block| block.content().text_of(block.kind())).collect();
            let nodes = render(&text, room);
            Some(json!({"type": "text", "text": text, "nodes": nodes}))
        }
        BlockContent::Reasoning(text) => Some(json!({"type": "reasoning", "text": text})),
        BlockContent::ToolCall(of) => {
            Some(json!({"type": "call", "id": ids.next()?, "tool": of.name, "args": arguments(of)}))
        }
        _ => None,
    };
    blocks.chunk_by(|one, next| is_text(one) && one.kind() == next.kind()).filter_map(&mut part).collect()
}

fn arguments(call: &ToolCall) -> Value {
    call.parsed_arguments().unwrap_or_else(|_| Value::String(call.arguments.clone()))
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
