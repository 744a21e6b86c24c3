//! The tool calls of an answer.

use super::AnswerBlocks;
use crate::aggregator::error::{Result, within};
use crate::aggregator::identity::{Decision, Identity, PositionInEvent, identify, open};
use crate::aggregator::open_block::{OpenBlock, State};
use crate::aggregator::open_call::{Doubt, OpenCall};
use crate::aggregator::{EndMarker, Sink};
use crate::{AggregateError, BlockContent, BlockDelta, Rule, Text, ToolCall, ToolCallDelta};

/// The end of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallEnd {
    /// The provider finished it.
    Complete,
    /// It may be cut off.
    Incomplete,
}

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
        let Decision { identity, rule, doubt, disputed } = identify(&mut self.calls, &fragment, in_event);
        sink.answer.diagnostics.note(rule);
        self.dispute(&disputed);
        let at = match identity {
            Identity::Known(at) => at,
            Identity::New => self.add_call(doubt, sink)?,
        };
        let calls = self.calls.len();
        if let Some(call) = self.calls.get_mut(at) {
            call.note_header(&fragment, calls);
        }
        if fragment.arguments_delta().is_some() {
            self.note_rivals(at, &fragment);
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
        if call.extend(&fragment) {
            sink.answer.diagnostics.note(Rule::EmptyArgumentsDropped);
        }
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
        let is_nameless =
            self.calls.get(at).is_some_and(|call| call.name.is_none() && fragment.name().is_none());
        if !is_nameless {
            return;
        }
        let open = open(&mut self.calls, |_| true);
        if let Some(call) = self.calls.get_mut(at) {
            let new: Vec<_> =
                open.into_iter().filter(|other| *other != at && !call.rivals.contains(other)).collect();
            call.rivals.extend(new);
        }
    }

    /// Marks the calls as disputed that may own arguments of calls without a name, at the end of the answer.
    pub(super) fn dispute_left_over(&mut self) {
        let nameless = self.calls.iter().filter(|call| call.name.is_none());
        let rivals: Vec<_> = nameless.flat_map(|call| call.rivals.iter().copied()).collect();
        self.dispute(&rivals);
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
        sink.answer.diagnostics.note(Rule::IdMade);
        let made = self.made_id(at, &sink.answer.settings.call_id_prefix);
        if let Some(call) = self.calls.get_mut(at) {
            call.made_id = Some(made);
        }
    }

    /// Returns an id for this call: stable for the same answer, and different from the ids of all other calls.
    pub(super) fn made_id(&self, at: usize, prefix: &Text) -> Text {
        let block = self.calls.get(at).and_then(|call| self.blocks.get(call.block));
        let Some(id) = block.map(|block| block.id) else { return Text::default() };
        let is_taken = |id: &str| {
            let ids = self.calls.iter().flat_map(|call| [&call.id, &call.made_id]);
            ids.flatten().any(|taken| *taken == *id)
        };
        first_free(&format!("{prefix}_{}_{}", id.round, id.position()), is_taken)
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
            self.close_call(at, CallEnd::Complete, sink);
        }
    }

    /// Closes the call's block, unless it is closed.
    fn close_call(&mut self, at: usize, end: CallEnd, sink: &mut Sink<'_>) {
        self.open_call(at, sink);
        let Some((call, block)) = self.call_and_block(at).filter(|(_, block)| !block.is_closed()) else {
            return;
        };
        call.ended = true;
        if call.name.is_none() {
            sink.answer.diagnostics.note(Rule::Unnamed);
        }
        if let Some(arguments) = call.take_rest() {
            block.show(BlockDelta::Arguments(arguments), sink);
        }
        let is_complete = end == CallEnd::Complete;
        let is_doubtful = is_complete && call.is_doubtful();
        if is_doubtful {
            sink.answer.diagnostics.note(Rule::Doubtful);
        }
        let call = ToolCall { complete: is_complete && !is_doubtful, ..call.to_call(Text::default) };
        block.close_with(BlockContent::ToolCall(call), sink);
    }

    /// Closes a call whose block is open at the end of the answer.
    pub(super) fn close_last(&mut self, at: usize, marker: EndMarker, sink: &mut Sink<'_>) {
        let mut end = self.end_of_open(at, marker);
        if end == CallEnd::Complete && self.may_lack_arguments(at) {
            sink.answer.diagnostics.note(Rule::Doubtful);
            end = CallEnd::Incomplete;
        }
        self.close_call(at, end, sink);
    }

    /// Checks whether the call may lack some of its arguments:
    /// - it has none, and another call has stray arguments; or
    /// - it was distinguished from another call only because that one was complete, and some arguments are left
    ///   over or lack their end.
    fn may_lack_arguments(&mut self, at: usize) -> bool {
        let Some(call) = self.calls.get(at) else { return false };
        let (has_none, began_as_another) = (!call.has_arguments(), call.doubt == Doubt::RepeatedHeader);
        let lacks_end = |call: &mut OpenCall| call.has_arguments() && !call.arguments_complete();
        (has_none && self.calls.iter_mut().any(OpenCall::has_stray_arguments))
            || (began_as_another && self.calls.iter_mut().any(lacks_end))
    }

    /// Returns how a call ends whose block is open at the end of the answer.
    fn end_of_open(&self, at: usize, marker: EndMarker) -> CallEnd {
        let Some(call) = self.calls.get(at) else {
            return CallEnd::Incomplete;
        };
        match self.finish.as_ref().map(|finish| &finish.reason) {
            _ if call.ended => CallEnd::Complete,
            Some(reason) if !reason.leaves_calls_whole() => CallEnd::Incomplete,
            Some(_) if call.vouched => CallEnd::Complete,
            // Only the end marker came after it: the only evidence of completeness is that its arguments parse.
            _ if marker == EndMarker::Received && call.has_object() => CallEnd::Complete,
            // It came after the last finish reason and may be cut off anywhere.
            _ => CallEnd::Incomplete,
        }
    }
}

/// Returns this id, or with the first number that makes it free.
fn first_free(id: &str, is_taken: impl Fn(&str) -> bool) -> Text {
    let others = (2_usize..).map(|number| format!("{id}_{number}"));
    std::iter::once(id.to_owned()).chain(others).find(|id| !is_taken(id)).unwrap_or_default().into()
}
