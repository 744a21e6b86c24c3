//! The tool calls of an answer: `OpenCall` collects one, and `AnswerBlocks` opens, extends and closes them.

use crate::aggregator::blocks::{AnswerBlocks, OpenBlock, State};
use crate::aggregator::bounds::{Result, within};
use crate::aggregator::identity::{PositionInEvent, identify, positions};
use crate::aggregator::{Answer, EndMarker, Sink};
use crate::{AggregateError, BlockContent, BlockDelta, CallHead, Text, ToolCall, ToolCallDelta};

/// A tool call while its fragments arrive.
#[derive(Debug, Clone, Default)]
pub(crate) struct OpenCall {
    /// The position of its block.
    pub(crate) block: usize,
    opened: bool,
    pub(crate) index: Option<i64>,
    /// The provider's id, which identifies its fragments.
    pub(crate) id: Option<Text>,
    /// The id generated here, because the provider sent none before the block opened, or that of an earlier call.
    made_id: Option<Text>,
    pub(crate) name: Option<Text>,
    doubt: Doubt,
    /// Other ids than the call's, under which arguments of it came: they may be those of a call that is named later.
    foreign_ids: Vec<Text>,
    /// The number of calls when its name came again, if others had begun since: that may have begun a further call of its
    /// tool, which takes the arguments that follow.
    pub(crate) named_again: usize,
    /// Whether it could have taken arguments that came for a call without a name. If that one never gets a name, they
    /// may belong here.
    beside_nameless: bool,
    /// Whether it takes no more fragments.
    pub(crate) ended: bool,
    /// Whether a finish reason has arrived after all of its fragments.
    pub(crate) vouched: bool,
    arguments: String,
    /// The length of the arguments emitted as chunks.
    shown: usize,
    extent: JsonExtent,
}

/// Reason why a call may not run although it has ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Doubt {
    #[default]
    None,
    /// Another call has its name, so it may be that one's header, sent again. It runs only with its own arguments.
    RepeatedName,
    /// A fragment of this call may belong to another one, or vice versa.
    Disputed,
}

/// The most noted ids: a server that gives every piece another id means nothing by it.
const MOST_FOREIGN_IDS: usize = 64;

impl OpenCall {
    /// Checks whether the fragment has no other name.
    pub(crate) fn may_have_name_of(&self, fragment: &ToolCallDelta) -> bool {
        self.name.is_none() || fragment.name().is_none_or(|name| self.name.as_ref() == Some(name))
    }

    /// Checks whether the fragment has no other id or index.
    pub(crate) fn may_have_key_of(&self, fragment: &ToolCallDelta) -> bool {
        fragment.call_id().is_none_or(|id| self.id.as_ref() == Some(id))
            && fragment.index.is_none_or(|index| self.index == Some(index))
    }

    /// Checks whether it has arguments that may belong to the call that `fragment` names.
    pub(crate) fn has_arguments_of(&self, fragment: &ToolCallDelta) -> bool {
        let is_other_tool = || self.name.is_some() && self.name.as_ref() != fragment.name();
        fragment.name().is_some()
            && match fragment.call_id() {
                Some(id) => self.foreign_ids.contains(id),
                None => !self.foreign_ids.is_empty() && self.index == fragment.index && is_other_tool(),
            }
    }

    /// Returns the id of `fragment`, if it comes with arguments, differs from the call's, and is not noted yet.
    fn foreign_id<'a>(&self, fragment: &'a ToolCallDelta) -> Option<&'a Text> {
        let id = fragment.call_id().filter(|_| fragment.arguments_delta().is_some())?;
        let is_other = self.id.as_ref().is_some_and(|own| own != id);
        let has_room = self.foreign_ids.len() < MOST_FOREIGN_IDS;
        (is_other && has_room && !self.foreign_ids.contains(id)).then_some(id)
    }

    /// Adds the data of `fragment`. Index, id and name are set once. A lone `{}` is replaced by the real arguments, which
    /// some servers send after it.
    pub(crate) fn extend(&mut self, fragment: &ToolCallDelta) {
        let announces = fragment.name().is_some_and(|name| self.name.as_ref() != Some(name))
            || fragment.call_id().is_some_and(|id| self.id.as_ref() != Some(id));
        self.index = self.index.or(fragment.index);
        if self.id.is_none() {
            self.id = fragment.call_id().cloned();
        }
        if self.name.is_none() {
            self.name = fragment.name().cloned();
        }
        let Some(arguments) = fragment.arguments_delta() else { return };
        let foreign_id = self.foreign_id(fragment).cloned();
        self.foreign_ids.extend(foreign_id);
        if !announces && self.only_empty_object() && arguments.trim_start().starts_with('{') {
            self.arguments.clear();
            self.extent = JsonExtent::default();
        }
        self.arguments.push_str(arguments);
    }

    /// Adds arguments that are emitted at once, because all earlier ones were. If they were not, or the arguments
    /// exceed a limit, nothing changes.
    #[inline]
    pub(crate) fn extend_shown(&mut self, arguments: &str, answer: &mut Answer) -> bool {
        let is_shown = self.shown > 0 && self.shown == self.arguments.len() && !self.ended;
        let fits = self.arguments.len() + arguments.len() <= answer.settings.limits.block_bytes;
        if arguments.is_empty() || !is_shown || !fits || answer.bytes.add(arguments.len()).is_err() {
            return false;
        }
        self.vouched = false;
        self.arguments.push_str(arguments);
        self.shown = self.arguments.len();
        true
    }

    /// Returns the arguments to emit now, once the call has a name.
    ///
    /// A lone `{}` is held back until it is certain that no other arguments follow.
    fn take_unshown(&mut self) -> Option<Text> {
        if self.name.is_none() || self.only_empty_object() {
            return None;
        }
        self.take_rest()
    }

    /// Returns all arguments not yet emitted, at the end of the call.
    fn take_rest(&mut self) -> Option<Text> {
        let rest = self.arguments.get(self.shown..).filter(|rest| !rest.is_empty())?;
        let rest = Text::from(rest);
        self.shown = self.arguments.len();
        Some(rest)
    }

    /// Checks whether the arguments so far are one complete JSON object and not disputed. Scans each byte once.
    pub(crate) fn arguments_complete(&mut self) -> bool {
        self.extent.scan(self.arguments.as_bytes()) && self.doubt != Doubt::Disputed
    }

    /// Checks whether it has its name and all of its arguments.
    pub(crate) fn is_settled(&mut self) -> bool {
        self.ended || (self.name.is_some() && self.arguments_complete())
    }

    /// Checks whether it can take a name or more arguments, including those that replace a lone `{}`.
    pub(crate) fn can_take_more(&mut self) -> bool {
        !self.is_settled() || (!self.ended && self.only_empty_object())
    }

    pub(crate) fn has_arguments(&self) -> bool {
        !self.arguments.trim_start().is_empty()
    }

    /// Checks whether no later fragment can make it doubtful, once it has ended.
    fn is_certain(&self) -> bool {
        let is_claimed = self.doubt != Doubt::None || !self.foreign_ids.is_empty();
        !is_claimed && self.name.is_some() && self.has_arguments()
    }

    /// Checks whether its fragments may belong to another call, or may not form a separate call.
    fn is_doubtful(&self) -> bool {
        match self.doubt {
            Doubt::None => false,
            Doubt::RepeatedName => !self.has_arguments(),
            Doubt::Disputed => true,
        }
    }

    /// Checks whether it has arguments of another call: it has no name, or its arguments continue after their end.
    fn has_stray_arguments(&mut self) -> bool {
        self.has_arguments() && (self.name.is_none() || self.extent.overruns(self.arguments.as_bytes()))
    }

    /// Returns the length of the arguments together with those of `fragment`.
    fn bytes_with(&self, fragment: &ToolCallDelta) -> usize {
        self.arguments.len() + fragment.arguments_delta().map_or(0, |arguments| arguments.len())
    }

    /// Returns how many bytes of `fragment` will be stored: its arguments, its name if it is the first, and its id
    /// if new.
    fn grows_by(&self, fragment: &ToolCallDelta) -> usize {
        let length = |text: Option<&Text>| text.map_or(0, |text| text.len());
        length(fragment.call_id().filter(|_| self.id.is_none()))
            + length(fragment.name().filter(|_| self.name.is_none()))
            + length(fragment.arguments_delta())
            + length(self.foreign_id(fragment))
    }

    /// Returns the id under which the call is emitted, if it has one yet. It is fixed once the block is open.
    fn shown_id(&self) -> Option<&Text> {
        self.made_id.as_ref().or(self.id.as_ref())
    }

    fn shown_name(&self) -> Text {
        self.name.clone().unwrap_or_else(|| ToolCall::UNNAMED.into())
    }

    /// Returns the head of its block, if it has an id.
    fn head(&self) -> Option<CallHead> {
        Some(CallHead::new(self.shown_name(), self.shown_id()?))
    }

    /// Checks whether its arguments parse as a JSON object, or are empty.
    fn has_object(&self) -> bool {
        self.to_call(Text::default).parsed_arguments().is_ok_and(|arguments| arguments.is_object())
    }

    /// Returns the current call, as a complete one.
    fn to_call(&self, made_id: impl FnOnce() -> Text) -> ToolCall {
        let id = self.shown_id().cloned().unwrap_or_else(made_id);
        ToolCall::new(id, self.shown_name(), self.arguments.clone())
    }

    fn only_empty_object(&self) -> bool {
        self.shown == 0 && self.arguments == "{}"
    }
}

/// The end of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallEnd {
    /// The provider finished it.
    Complete,
    /// It may be cut off.
    Incomplete,
}

/// The tool calls of an answer.
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
        self.calls.push(OpenCall { block, doubt, ..OpenCall::default() });
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
        if let Some(arguments) = call.take_rest() {
            block.show(BlockDelta::Arguments(arguments), sink);
        }
        let complete = end == CallEnd::Complete && !call.is_doubtful();
        let call = ToolCall { complete, ..call.to_call(Text::default) };
        block.close_with(BlockContent::ToolCall(call), sink);
    }

    /// Closes a call whose block is open at the end of the answer.
    pub(super) fn close_last(&mut self, at: usize, marker: EndMarker, sink: &mut Sink<'_>) {
        let lacks = self.may_lack_arguments(at);
        let end = if lacks { CallEnd::Incomplete } else { self.end_of_open(at, marker) };
        self.close_call(at, end, sink);
    }

    /// Checks whether the call may lack some of its arguments:
    /// - arguments never got a name, and it could take them when they came; or
    /// - it has none, and another call has stray arguments; or
    /// - only the complete arguments of a call with its name told it from that one, and some arguments lack their end.
    fn may_lack_arguments(&mut self, at: usize) -> bool {
        let Some(call) = self.calls.get(at) else { return false };
        let (is_beside, has_none) = (call.beside_nameless, !call.has_arguments());
        let began_as_another = call.doubt == Doubt::RepeatedName;
        let mut any = |is: fn(&mut OpenCall) -> bool| self.calls.iter_mut().any(is);
        (is_beside && any(|call| call.name.is_none() && call.has_arguments()))
            || (has_none && any(OpenCall::has_stray_arguments))
            || (began_as_another && any(|call| call.has_arguments() && !call.arguments_complete()))
    }

    /// Returns how a call ends whose block is open at the end of the answer.
    fn end_of_open(&self, at: usize, marker: EndMarker) -> CallEnd {
        let Some(call) = self.calls.get(at) else {
            return CallEnd::Incomplete;
        };
        match self.finish().map(|finish| &finish.reason) {
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

/// Finds the end of a JSON object without parsing it; scans each byte once.
#[derive(Debug, Clone, Copy, Default)]
struct JsonExtent {
    scanned: usize,
    depth: u32,
    in_string: bool,
    escaped: bool,
    ended: bool,
    broken: bool,
}

impl JsonExtent {
    fn scan(&mut self, text: &[u8]) -> bool {
        for &byte in text.get(self.scanned..).unwrap_or_default() {
            self.step(byte);
        }
        self.scanned = text.len();
        self.ended && !self.broken
    }

    /// Checks whether an object ends and other text follows it.
    fn overruns(&mut self, text: &[u8]) -> bool {
        self.scan(text);
        self.ended && self.broken
    }

    fn step(&mut self, byte: u8) {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return;
        }
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => {}
            _ if self.ended => self.broken = true,
            b'{' | b'[' => self.depth = self.depth.saturating_add(1),
            _ if self.depth == 0 => self.broken = true,
            b'}' | b']' => {
                self.depth -= 1;
                self.ended = self.depth == 0;
            }
            b'"' => self.in_string = true,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(pieces: &[&str]) -> OpenCall {
        let mut call = OpenCall::default();
        for piece in pieces {
            call.extend(&ToolCallDelta::arguments(0, *piece));
            call.arguments_complete();
        }
        call
    }

    #[test]
    fn arguments_are_complete_when_their_object_ends() {
        for (pieces, complete) in [
            (&["{\"a\":", "1}"][..], true),
            (&["{\"a\":\"}", "\\\"", "\"}", " \n"], true),
            (&["{\"a\":[1,{\"b\":2}", "]"], false),
            (&["{}", "x"], false),
            (&["null"], false),
            (&[""], false),
        ] {
            assert_eq!(call(pieces).arguments_complete(), complete, "{pieces:?}");
        }
    }

    #[test]
    fn lone_empty_object_is_held_back_and_replaced() {
        let mut call = OpenCall { name: Some("f".into()), ..OpenCall::default() };
        call.extend(&ToolCallDelta::arguments(0, "{}"));
        assert_eq!(call.take_unshown(), None);
        call.extend(&ToolCallDelta::arguments(0, "{\"a\":1}"));
        assert_eq!(call.take_unshown().as_deref(), Some("{\"a\":1}"));
        assert_eq!(call.arguments, "{\"a\":1}");
    }
}
