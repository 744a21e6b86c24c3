//! The tool calls among the blocks of an answer: opens, extends and closes them.

use crate::aggregator::blocks::{AnswerBlocks, OpenBlock, State};
use crate::aggregator::bounds::{Result, within};
use crate::aggregator::call::{Doubt, OpenCall};
use crate::aggregator::identity::{PositionInEvent, identify, positions};
use crate::aggregator::{EndMarker, Sink};
use crate::{AggregateError, BlockContent, BlockDelta, Text, ToolCall, ToolCallDelta};

impl AnswerBlocks {
    pub(super) fn push_fragment(
        &mut self,
        fragment: ToolCallDelta,
        in_event: PositionInEvent,
        sink: &mut Sink<'_>,
    ) -> Result {
        if fragment.is_empty() {
            return Ok(());
        }
        let assignment = identify(&mut self.calls, &fragment, in_event);
        self.dispute(&assignment.disputed);
        let at = match assignment.known {
            Some(at) => at,
            None => self.add_call(assignment.doubt, sink)?,
        };
        self.note_rivals(at, &fragment);
        let calls = self.calls.len();
        if let Some(call) = self.calls.get_mut(at).filter(|_| fragment.name().is_some() && at + 1 < calls) {
            call.named_again = calls;
        }
        self.extend_at(at, fragment, sink)
    }

    /// Adds a fragment to its call.
    fn extend_at(&mut self, at: usize, mut fragment: ToolCallDelta, sink: &mut Sink<'_>) -> Result {
        let Some((call, block)) = self.call_and_block(at) else { return Ok(()) };
        if let Some(data) = fragment.provider_data.take() {
            block.push_data(data, sink)?;
        }
        if call.ended {
            // A repeated header after the end adds nothing.
            return match fragment.arguments_delta() {
                None => Ok(()),
                Some(_) => Err(AggregateError::BlockEnded { block: block.id.position() }),
            };
        }
        let limit = sink.answer.settings.limits.block_bytes;
        within("bytes in one tool call", call.bytes_with(&fragment), limit)?;
        sink.answer.bytes.add(call.grows_by(&fragment))?;
        call.vouched &= fragment.arguments_delta().is_none();
        let had_id = call.shown_id().is_some();
        call.extend(&fragment);
        if !had_id {
            self.replace_taken_id(at, sink);
        }
        self.show_call(at, sink);
        Ok(())
    }

    fn dispute(&mut self, calls: &[usize]) {
        for at in calls {
            self.calls.get_mut(*at).into_iter().for_each(|call| call.doubt = Doubt::Disputed);
        }
    }

    /// Notes which other calls could take arguments that arrive for a call without a name.
    fn note_rivals(&mut self, at: usize, fragment: &ToolCallDelta) {
        let is_nameless = self.calls.get(at).is_some_and(|call| call.name.is_none());
        if is_nameless && fragment.name().is_none() && fragment.arguments_delta().is_some() {
            for other in positions(&mut self.calls, OpenCall::can_take_more) {
                if let Some(call) = self.calls.get_mut(other).filter(|_| other != at) {
                    call.beside_nameless = true;
                }
            }
        }
    }

    /// Generates an id for the call if its provider id equals another call's emitted id, from the provider or
    /// generated here.
    fn replace_taken_id(&mut self, at: usize, sink: &mut Sink<'_>) {
        let id = self.calls.get(at).and_then(|call| call.id.as_ref());
        let mut others = self.calls.iter().enumerate().filter(|(other, _)| *other != at);
        if id.is_some() && others.any(|(_, call)| call.shown_id() == id) {
            self.make_id(at, sink);
        }
    }

    fn make_id(&mut self, at: usize, sink: &mut Sink<'_>) {
        let made = self.made_id(at, &sink.answer.settings.call_id_prefix);
        if let Some(call) = self.calls.get_mut(at) {
            call.made_id = Some(made);
        }
    }

    /// Returns an id for this call: stable for the same answer, and different from the ids of all other calls.
    fn made_id(&self, at: usize, prefix: &Text) -> Text {
        let block = self.calls.get(at).and_then(|call| self.blocks.get(call.block));
        let Some(id) = block.map(|block| block.id) else { return Text::default() };
        let is_taken = |id: &str| {
            let ids = self.calls.iter().flat_map(|call| [&call.id, &call.made_id]);
            ids.flatten().any(|taken| *taken == *id)
        };
        first_free(&format!("{prefix}_{}_{}", id.round, id.position()), is_taken)
    }

    /// Returns a call as it is, incomplete.
    pub(super) fn call_so_far(&self, at: usize, call_id_prefix: &Text) -> Option<ToolCall> {
        let call = self.calls.get(at)?.to_call(|| self.made_id(at, call_id_prefix));
        Some(ToolCall { complete: false, ..call })
    }

    /// Opens the call's block once it has a name, and emits the arguments that are certain.
    fn show_call(&mut self, at: usize, sink: &mut Sink<'_>) {
        if self.calls.get(at).is_none_or(|call| call.name.is_none()) {
            return;
        }
        self.open_call(at, sink);
        if let Some((call, block)) = self.call_and_block(at)
            && let Some(arguments) = call.take_unshown()
        {
            block.show(BlockDelta::Arguments(arguments), sink);
        }
    }

    /// Opens the call's block, unless it was opened. A call without an id gets one.
    fn open_call(&mut self, at: usize, sink: &mut Sink<'_>) {
        let Some(call) = self.calls.get(at).filter(|call| !call.opened) else { return };
        let block = call.block;
        if call.shown_id().is_none() {
            self.make_id(at, sink);
        }
        self.set_current(block, sink);
        if let Some((call, block)) = self.call_and_block(at) {
            call.opened = true;
            block.open(call.head(), sink);
        }
    }

    fn call_and_block(&mut self, at: usize) -> Option<(&mut OpenCall, &mut OpenBlock)> {
        let call = self.calls.get_mut(at)?;
        let block = self.blocks.get_mut(call.block)?;
        Some((call, block))
    }

    fn add_call(&mut self, doubt: Doubt, sink: &mut Sink<'_>) -> Result<usize> {
        let at = self.calls.len();
        within("tool calls in one answer", at + 1, sink.answer.settings.limits.calls)?;
        let block = self.add_block(None, State::Call(at), sink)?;
        self.calls.push(OpenCall::new(block, doubt));
        Ok(at)
    }

    /// Ends a call that the provider ended. Its block closes now if nothing later can make the call doubtful,
    /// otherwise with the answer.
    pub(super) fn end_call(&mut self, at: usize, sink: &mut Sink<'_>) {
        let Some(call) = self.calls.get_mut(at).filter(|call| !call.ended) else { return };
        call.ended = true;
        if call.is_certain() && self.calls.iter().all(|call| call.name.is_some()) {
            self.close_call(at, true, sink);
        }
    }

    /// Closes the call's block, unless it is closed. A call that is not whole may be cut off.
    fn close_call(&mut self, at: usize, is_whole: bool, sink: &mut Sink<'_>) {
        self.open_call(at, sink);
        let Some((call, block)) = self.call_and_block(at).filter(|(_, block)| !block.is_closed()) else {
            return;
        };
        call.ended = true;
        if let Some(arguments) = call.take_rest() {
            block.show(BlockDelta::Arguments(arguments), sink);
        }
        let complete = is_whole && !call.is_doubtful();
        let call = ToolCall { complete, ..call.to_call(Text::default) };
        block.close_with(BlockContent::ToolCall(call), sink);
    }

    /// Closes a call whose block is open at the end of the answer.
    pub(super) fn close_last(&mut self, at: usize, marker: EndMarker, sink: &mut Sink<'_>) {
        let is_whole = !self.may_lack_arguments(at) && self.ends_whole(at, marker);
        self.close_call(at, is_whole, sink);
    }

    /// Checks whether the call may lack some of its arguments:
    /// - arguments never got a name, and it could take them when they came; or
    /// - it has none, and another call has stray arguments; or
    /// - only the complete arguments of a call with its name told it from that one, or that one from it, and some arguments
    ///   lack their end.
    fn may_lack_arguments(&mut self, at: usize) -> bool {
        let Some(call) = self.calls.get(at) else { return false };
        let (is_beside, has_none) = (call.beside_nameless, !call.has_arguments());
        let name = call.name.clone();
        let is_twin = |other: &OpenCall| other.doubt == Doubt::RepeatedName && other.name == name;
        let has_twin = self.calls.iter().any(is_twin);
        let mut any = |is: fn(&mut OpenCall) -> bool| self.calls.iter_mut().any(is);
        (is_beside && any(|call| call.name.is_none() && call.has_arguments()))
            || (has_none && any(OpenCall::has_stray_arguments))
            || (has_twin && any(|call| call.has_arguments() && !call.arguments_complete()))
    }

    /// Checks whether the provider finished a call whose block is open at the end of the answer.
    fn ends_whole(&self, at: usize, marker: EndMarker) -> bool {
        let Some(call) = self.calls.get(at) else { return false };
        match self.finish().map(|finish| &finish.reason) {
            _ if call.ended => true,
            Some(reason) if !reason.leaves_calls_whole() => false,
            Some(_) if call.vouched => true,
            // It came after the last finish reason and may be cut off anywhere. If the end marker came after it, the only
            // evidence of completeness is that its arguments parse.
            _ => marker == EndMarker::Received && call.has_object(),
        }
    }
}

/// Returns this id, or with the first number that makes it free.
fn first_free(id: &str, is_taken: impl Fn(&str) -> bool) -> Text {
    let others = (2_usize..).map(|number| format!("{id}_{number}"));
    std::iter::once(id.to_owned()).chain(others).find(|id| !is_taken(id)).unwrap_or_default().into()
}
