//! The parts of the message that the client has.

use std::collections::BTreeMap;

use advisor_core::{BlockHead, BlockId, BlockKind, Text, ToolCall, ToolEvent, ToolEventKind, ToolResult};

use super::UiProfile;
use super::event::{Event, Restart};
use crate::shared::json;
use crate::shared::turn::{ClientCall, Turn};
use crate::{Approvals, Frames};

/// The parts of the message that the client has, and the step that is open.
#[derive(Debug, Default)]
pub(super) struct Parts {
    pub(super) turn: Turn,
    profile: UiProfile,
    approvals: Option<Approvals>,
    /// The round whose step is open.
    step: Option<u32>,
    /// The open parts of text, and their kinds.
    texts: BTreeMap<BlockId, BlockKind>,
    calls: BTreeMap<BlockId, Call>,
}

/// The state of a call at the client.
#[derive(Debug)]
struct Call {
    name: Text,
    state: CallState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallState {
    /// Its input forms.
    Forming,
    /// Its input is complete.
    Available,
    /// It has an output or an error.
    Ended,
}

impl Parts {
    pub(super) fn set_profile(&mut self, profile: UiProfile) {
        self.profile = profile;
    }

    pub(super) fn set_approvals(&mut self, approvals: Approvals) {
        self.approvals = Some(approvals);
    }

    pub(super) fn open(&mut self, block: BlockId, head: &BlockHead, frames: &mut Frames) {
        self.start_step(block.round, frames);
        let id = self.turn.part_id(block);
        match head.kind {
            BlockKind::Text | BlockKind::Refusal => {
                self.texts.insert(block, head.kind);
                frames.data(&Event::TextStart { id: &id });
            }
            BlockKind::Reasoning => {
                self.texts.insert(block, head.kind);
                frames.data(&Event::ReasoningStart { id: &id });
            }
            BlockKind::ToolCall => {
                let name = head.call.as_ref().map(|call| call.name.clone()).unwrap_or_default();
                let id = self.turn.id(block);
                frames.data(&Event::ToolInputStart { tool_call_id: &id, tool_name: &name, dynamic: true });
                self.calls.insert(block, Call { name, state: CallState::Forming });
            }
            _ => {}
        }
    }

    pub(super) fn text(&self, block: BlockId, delta: &str, frames: &mut Frames) {
        frames.data(&Event::TextDelta { id: &self.turn.part_id(block), delta });
    }

    pub(super) fn reasoning(&self, block: BlockId, delta: &str, frames: &mut Frames) {
        frames.data(&Event::ReasoningDelta { id: &self.turn.part_id(block), delta });
    }

    pub(super) fn input(&self, block: BlockId, delta: &str, frames: &mut Frames) {
        let id = self.turn.id(block);
        frames.data(&Event::ToolInputDelta { tool_call_id: &id, input_text_delta: delta });
    }

    pub(super) fn close_text(&mut self, block: BlockId, frames: &mut Frames) {
        let id = self.turn.part_id(block);
        match self.texts.remove(&block) {
            Some(BlockKind::Reasoning) => frames.data(&Event::ReasoningEnd { id: &id }),
            Some(_) => frames.data(&Event::TextEnd { id: &id }),
            None => {}
        }
    }

    /// Sends the input of a call whose arguments are JSON. Others have an error when the tool loop refuses them.
    pub(super) fn close_call(&mut self, block: BlockId, call: &ToolCall, frames: &mut Frames) {
        if call.complete && call.parsed_arguments().is_ok() {
            self.make_available(block, &call.name, &call.arguments, frames);
        }
    }

    pub(super) fn tool(&mut self, event: &ToolEvent, frames: &mut Frames) {
        let block = event.block;
        self.start_step(block.round, frames);
        match &event.kind {
            ToolEventKind::Started { arguments } => {
                self.make_available(block, &event.name, arguments, frames)
            }
            ToolEventKind::Finished(result) => self.end(block, result, frames),
            ToolEventKind::NotStarted { result, .. } => self.not_started(event, result, frames),
            _ => {}
        }
    }

    /// Sends the input of open calls, if the client does not have it yet, and asks for their approvals.
    pub(super) fn client_calls(&mut self, calls: &[ClientCall], frames: &mut Frames) {
        for call in calls {
            self.start_step(call.block.round, frames);
            self.make_available(call.block, &call.call.name, &call.call.arguments, frames);
            let approval = self.approvals.as_ref().filter(|_| self.profile >= UiProfile::V6);
            if let Some(id) = approval.and_then(|approvals| approvals.find(call)) {
                let approval_id = &id.to_string();
                frames.data(&Event::ToolApprovalRequest { approval_id, tool_call_id: &call.id });
            }
        }
    }

    /// Ends the parts of an attempt that is void.
    pub(super) fn restart(&mut self, round: u32, frames: &mut Frames) {
        self.close_texts(frames);
        let is_void = |block: &BlockId, call: &Call| block.round == round && call.state != CallState::Ended;
        let void: Vec<_> =
            self.calls.iter().filter(|(block, call)| is_void(block, call)).map(|(block, _)| *block).collect();
        for block in void {
            self.refuse_input(block, "the model is called again", frames);
        }
        self.calls.retain(|block, _| block.round != round);
        frames.data(&Event::DataRestart { data: Restart { round } });
    }

    pub(super) fn finish_step(&mut self, frames: &mut Frames) {
        if self.step.take().is_some() {
            self.close_texts(frames);
            self.refuse_forming(frames);
            frames.data(&Event::FinishStep);
        }
    }

    /// Starts the step of a round. The tools of a round run after its end, so its step ends when a later one starts.
    fn start_step(&mut self, round: u32, frames: &mut Frames) {
        if self.step != Some(round) {
            self.finish_step(frames);
            self.step = Some(round);
            frames.data(&Event::StartStep);
        }
    }

    /// Ends the calls whose input never became complete.
    fn refuse_forming(&mut self, frames: &mut Frames) {
        let is_forming = |call: &Call| call.state == CallState::Forming;
        let forming: Vec<_> =
            self.calls.iter().filter(|(_, call)| is_forming(call)).map(|(block, _)| *block).collect();
        for block in forming {
            self.refuse_input(block, "the call is incomplete", frames);
        }
    }

    fn close_texts(&mut self, frames: &mut Frames) {
        let open: Vec<_> = self.texts.keys().copied().collect();
        open.into_iter().for_each(|block| self.close_text(block, frames));
    }

    fn make_available(&mut self, block: BlockId, name: &Text, arguments: &str, frames: &mut Frames) {
        let call =
            self.calls.entry(block).or_insert_with(|| Call { name: name.clone(), state: CallState::Forming });
        if call.state == CallState::Forming {
            call.state = CallState::Available;
            let (id, input) = (self.turn.id(block), json::arguments(arguments));
            frames.data(&Event::ToolInputAvailable {
                tool_call_id: &id,
                tool_name: name,
                input,
                dynamic: true,
            });
        }
    }

    fn end(&mut self, block: BlockId, result: &ToolResult, frames: &mut Frames) {
        let id = self.turn.id(block);
        if let Some(call) = self.calls.get_mut(&block) {
            call.state = CallState::Ended;
        }
        self.output(&id, result, frames);
    }

    pub(super) fn output(&self, id: &str, result: &ToolResult, frames: &mut Frames) {
        match result.is_error {
            true => self.output_error(id, &result.text(), frames),
            false => frames.data(&Event::ToolOutputAvailable {
                tool_call_id: id,
                output: json::result(result),
                dynamic: true,
            }),
        }
    }

    /// Ends a call that never starts, with an error. A denial would need an approval: clients refuse one without.
    fn not_started(&mut self, event: &ToolEvent, result: &ToolResult, frames: &mut Frames) {
        let state = self.calls.get(&event.block).map(|call| call.state);
        if state != Some(CallState::Available) && self.turn.arguments(event.block).is_empty() {
            self.make_available(event.block, &event.name, "", frames);
        }
        match self.calls.get(&event.block).map(|call| call.state) {
            Some(CallState::Available) => self.end(event.block, result, frames),
            _ => self.refuse_input(event.block, &result.text(), frames),
        }
    }

    /// Ends a call whose input is not complete, or not JSON.
    fn refuse_input(&mut self, block: BlockId, error: &str, frames: &mut Frames) {
        let (id, arguments) = (self.turn.id(block), self.turn.arguments(block).to_owned());
        let Some(call) = self.calls.get_mut(&block) else { return };
        let was = std::mem::replace(&mut call.state, CallState::Ended);
        let (tool_name, input) = (call.name.clone(), json::arguments(&arguments));
        if was == CallState::Available {
            return self.output_error(&id, error, frames);
        }
        if self.profile >= UiProfile::V6 {
            let event = Event::ToolInputError {
                tool_call_id: &id,
                tool_name: &tool_name,
                input,
                error_text: error,
                dynamic: true,
            };
            return frames.data(&event);
        }
        frames.data(&Event::ToolInputAvailable {
            tool_call_id: &id,
            tool_name: &tool_name,
            input,
            dynamic: true,
        });
        self.output_error(&id, error, frames);
    }

    pub(super) fn output_error(&self, id: &str, error_text: &str, frames: &mut Frames) {
        frames.data(&Event::ToolOutputError { tool_call_id: id, error_text, dynamic: true });
    }
}
