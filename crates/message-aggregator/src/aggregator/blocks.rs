//! `AnswerBlocks` and `OpenBlock`: the blocks of an answer; opens, extends and closes them.

use crate::aggregator::bounds::{Result, of_content, of_finish, of_provider_data, within};
use crate::aggregator::call::{Doubt, OpenCall};
use crate::aggregator::identity::{PositionInEvent, identify, positions};
use crate::aggregator::{Answer, EndMarker, Sink};
use crate::{
    AggregateError, Block, BlockContent, BlockDelta, BlockHead, BlockId, BlockKind, CallHead, Chunk,
    Citation, DeltaKind, Finish, FinishReason, ProviderData, Text, ToolCall, ToolCallDelta,
};

/// The blocks of an answer while it streams.
#[derive(Debug, Default)]
pub(crate) struct AnswerBlocks {
    /// In order of first appearance.
    blocks: Vec<OpenBlock>,
    calls: Vec<OpenCall>,
    /// The block that opened or took text last, unless it has ended. A text without a number grows only while it is
    /// the current block, which it stays at a citation.
    current: Option<usize>,
    finish: Option<Finish>,
}

impl AnswerBlocks {
    pub(crate) fn finish(&self) -> Option<&Finish> {
        self.finish.as_ref()
    }

    pub(crate) fn push(&mut self, key: Option<i64>, kind: DeltaKind, sink: &mut Sink<'_>) -> Result {
        match kind {
            DeltaKind::Text(text) => self.extend(key, BlockKind::Text, text, sink),
            DeltaKind::Reasoning(text) => self.extend(key, BlockKind::Reasoning, text, sink),
            DeltaKind::Refusal(text) => self.extend(key, BlockKind::Refusal, text, sink),
            DeltaKind::Media(item) => {
                self.add_whole(key, BlockContent::Media(item.media), item.provider_data, sink)
            }
            DeltaKind::Citation(citation) => self.add_citation(*citation, sink),
            DeltaKind::Opaque(opaque) => self.add_whole(key, BlockContent::Opaque(*opaque), None, sink),
            DeltaKind::ReasoningData(data) => self.add_reasoning_data(key, *data, sink),
            DeltaKind::BlockData(data) => self.add_data(key, *data, sink),
            DeltaKind::ToolCalls(fragments) => {
                let count = fragments.len();
                fragments.into_iter().enumerate().try_for_each(|(position, fragment)| {
                    self.push_fragment(fragment, PositionInEvent { position, count }, sink)
                })
            }
            DeltaKind::Arguments { index, text } => {
                let fragment =
                    ToolCallDelta { index, arguments_delta: Some(text), ..ToolCallDelta::default() };
                self.push_fragment(fragment, PositionInEvent { position: 0, count: 1 }, sink)
            }
            DeltaKind::BlockEnd => {
                self.end_block(key, sink);
                Ok(())
            }
            DeltaKind::Finish(finish) => self.note_finish(*finish, sink),
            // The aggregator handles these itself.
            DeltaKind::Usage(_) | DeltaKind::Origin(_) | DeltaKind::Done => Ok(()),
        }
    }

    /// Notes a finish reason. An answer that was cut off stays cut off, whatever the server sends next.
    fn note_finish(&mut self, finish: Finish, sink: &mut Sink<'_>) -> Result {
        sink.answer.bytes.add(of_finish(&finish))?;
        let is_cut = self.finish.as_ref().is_some_and(|before| before.reason.vetoes_calls());
        if finish.reason.vetoes_calls() || !is_cut {
            self.finish = Some(finish);
        }
        self.calls.iter_mut().for_each(|call| call.vouched = true);
        Ok(())
    }

    fn extend(&mut self, key: Option<i64>, kind: BlockKind, text: Text, sink: &mut Sink<'_>) -> Result {
        if text.is_empty() {
            return Ok(());
        }
        let at = self.text_block(key, kind, sink)?;
        if let Some(block) = self.blocks.get_mut(at) {
            block.extend(&text, sink.answer)?;
            sink.chunks.push_back(block.piece(kind, text));
        }
        Ok(())
    }

    /// Extends the current block, if it has this kind and number, and the text fits the limits; otherwise changes
    /// nothing. No later block has the number, or that one would be the current block.
    #[inline]
    pub(crate) fn extend_current(
        &mut self,
        key: Option<i64>,
        kind: BlockKind,
        text: &str,
        answer: &mut Answer,
    ) -> Option<&OpenBlock> {
        let block = self.blocks.get_mut(self.current?)?;
        let block = Some(block).filter(|block| block.takes_text(key, kind))?;
        (!text.is_empty() && block.extend(text, answer).is_ok()).then_some(&*block)
    }

    /// Extends the arguments of the call with this index, if all its earlier arguments were emitted and the text
    /// fits the limits; otherwise changes nothing. [`identify`](crate::aggregator::identity::identify) finds the same
    /// call by an index alone, and no dispute: no name that came again may have begun another call.
    #[inline]
    pub(crate) fn extend_call(&mut self, index: i64, text: &str, answer: &mut Answer) -> Option<&OpenBlock> {
        let at = self.calls.iter().rposition(|call| call.index == Some(index))?;
        if self.calls.iter().any(|call| call.named_again > at) {
            return None;
        }
        let call = self.calls.get_mut(at)?;
        let block = self.blocks.get(call.block)?;
        call.extend_shown(text, answer).then_some(block)
    }

    /// Returns the position of the open block of this kind and number; opens one if none is open.
    fn text_block(&mut self, key: Option<i64>, kind: BlockKind, sink: &mut Sink<'_>) -> Result<usize> {
        let known = match key {
            None => self.current,
            Some(_) => self.blocks.iter().rposition(|block| block.key == key),
        };
        match known.filter(|at| self.blocks.get(*at).is_some_and(|block| block.takes_text(key, kind))) {
            Some(at) => {
                self.set_current(at, sink);
                Ok(at)
            }
            None => self.open_block(key, State::Text(kind, String::new()), sink),
        }
    }

    fn add_whole(
        &mut self,
        key: Option<i64>,
        content: BlockContent,
        data: Option<ProviderData>,
        sink: &mut Sink<'_>,
    ) -> Result {
        sink.answer.bytes.add(of_content(&content) + data.as_ref().map_or(0, of_provider_data))?;
        let block = Block::with_data(content, Vec::from_iter(data));
        let at = self.open_block(key, State::Closed(block), sink)?;
        self.blocks.get(at).into_iter().for_each(|block| block.show_whole(sink));
        Ok(())
    }

    /// Adds a citation. A text goes on after it, so that an editor of text sees it whole.
    fn add_citation(&mut self, citation: Citation, sink: &mut Sink<'_>) -> Result {
        let is_text = |at: &usize| self.blocks.get(*at).is_some_and(OpenBlock::is_open_text);
        let text = self.current.take_if(|at| is_text(at));
        // Its number, if any, is that of the text which it supports.
        let added = self.add_whole(None, BlockContent::Citation(citation), None, sink);
        self.current = text.or(self.current);
        added
    }

    fn add_reasoning_data(&mut self, key: Option<i64>, data: ProviderData, sink: &mut Sink<'_>) -> Result {
        // A signature may arrive after the text has begun; it still belongs to the reasoning.
        let is_meant =
            |block: &OpenBlock| block.kind() == BlockKind::Reasoning && (key.is_none() || block.key == key);
        let known = self.blocks.iter().rposition(is_meant);
        self.push_data(known, key, BlockKind::Reasoning, data, sink)
    }

    fn add_data(&mut self, key: Option<i64>, data: ProviderData, sink: &mut Sink<'_>) -> Result {
        self.push_data(self.numbered_or_current(key), key, BlockKind::Text, data, sink)
    }

    /// Adds data to a known block, or to a new one of this kind.
    fn push_data(
        &mut self,
        known: Option<usize>,
        key: Option<i64>,
        kind: BlockKind,
        data: ProviderData,
        sink: &mut Sink<'_>,
    ) -> Result {
        let at = match known {
            Some(at) => at,
            None => self.open_block(key, State::Text(kind, String::new()), sink)?,
        };
        self.blocks.get_mut(at).map_or(Ok(()), |block| block.push_data(data, sink))
    }

    /// Returns the position of the last block with this number, calls included; without a number, of the current
    /// block.
    fn numbered_or_current(&self, key: Option<i64>) -> Option<usize> {
        if key.is_none() {
            return self.current;
        }
        let block = self.blocks.iter().rposition(|block| block.key == key);
        let call = self.calls.iter().rfind(|call| call.index == key).map(|call| call.block);
        block.max(call)
    }

    /// Adds a block that becomes the current one.
    fn open_block(&mut self, key: Option<i64>, state: State, sink: &mut Sink<'_>) -> Result<usize> {
        self.leave_current(sink);
        let at = self.add_block(key, state, sink)?;
        self.current = Some(at);
        Ok(at)
    }

    /// Adds a block, and opens it unless it is a call.
    fn add_block(&mut self, key: Option<i64>, state: State, sink: &mut Sink<'_>) -> Result<usize> {
        let index = sink.answer.blocks;
        // Blocks beyond the positions of a round would share an id.
        let limit = sink.answer.settings.limits.blocks.min(BlockId::POSITIONS as usize);
        within("blocks in one answer", index as usize + 1, limit)?;
        sink.answer.blocks += 1;
        let block = OpenBlock::new(BlockId::new(sink.answer.round, index), key, state);
        if block.open_call().is_none() {
            block.open(None, sink);
        }
        self.blocks.push(block);
        Ok(self.blocks.len() - 1)
    }

    fn set_current(&mut self, at: usize, sink: &mut Sink<'_>) {
        if self.current != Some(at) {
            self.leave_current(sink);
            self.current = Some(at);
        }
    }

    /// Ends the current block, since another one goes on: a text if it has no number, a call with `eager_calls`.
    fn leave_current(&mut self, sink: &mut Sink<'_>) {
        let Some(block) = self.current.take().and_then(|at| self.blocks.get_mut(at)) else { return };
        match block.open_call() {
            Some(call) if sink.answer.settings.eager_calls => self.end_call(call, sink),
            None if block.key.is_none() => block.close(sink),
            _ => {}
        }
    }

    fn end_block(&mut self, key: Option<i64>, sink: &mut Sink<'_>) {
        let Some(at) = self.numbered_or_current(key) else { return };
        self.current = self.current.filter(|current| *current != at);
        let Some(block) = self.blocks.get_mut(at) else { return };
        match block.open_call() {
            Some(call) => self.end_call(call, sink),
            None => block.close(sink),
        }
    }

    /// Closes all open blocks, in order, and returns the reason for the end.
    pub(crate) fn close_all(&mut self, marker: EndMarker, sink: &mut Sink<'_>) -> Finish {
        self.current = None;
        for at in 0..self.blocks.len() {
            let Some(block) = self.blocks.get_mut(at) else { continue };
            match block.open_call() {
                Some(call) => self.close_last(call, marker, sink),
                None => block.close(sink),
            }
        }
        self.settled_finish()
    }

    fn settled_finish(&self) -> Finish {
        let empty = self.blocks.is_empty();
        match &self.finish {
            None if empty => Finish::inferred(FinishReason::Empty),
            None if self.calls.is_empty() => Finish::inferred(FinishReason::Stop),
            None => Finish::inferred(FinishReason::ToolCalls),
            Some(finish)
                if empty && matches!(finish.reason, FinishReason::Stop | FinishReason::ToolCalls) =>
            {
                Finish { reason: FinishReason::Empty, ..finish.clone() }
            }
            Some(finish) => finish.clone(),
        }
    }

    /// Returns the blocks so far, with their ids. Open ones are included as they are, with incomplete calls.
    pub(crate) fn all(&self, call_id_prefix: &Text) -> impl Iterator<Item = (BlockId, Block)> {
        let call_at = move |at| self.call_so_far(at, call_id_prefix);
        self.blocks.iter().map(move |block| (block.id, block.to_block(call_at)))
    }
}

/// A block while it streams.
#[derive(Debug)]
pub(crate) struct OpenBlock {
    pub(crate) id: BlockId,
    /// The provider's number of the block, if it numbers blocks.
    pub(crate) key: Option<i64>,
    state: State,
    data: Vec<ProviderData>,
}

#[derive(Debug)]
pub(crate) enum State {
    /// Text that may grow, of a block of this kind.
    Text(BlockKind, String),
    /// The open call at this position among the calls of the answer.
    Call(usize),
    Closed(Block),
}

impl OpenBlock {
    pub(crate) fn new(id: BlockId, key: Option<i64>, state: State) -> Self {
        let data = match &state {
            State::Closed(block) => block.provider_data().to_vec(),
            State::Text(..) | State::Call(_) => Vec::new(),
        };
        Self { id, key, state, data }
    }

    pub(crate) fn kind(&self) -> BlockKind {
        match &self.state {
            State::Text(kind, _) => *kind,
            State::Call(_) => BlockKind::ToolCall,
            State::Closed(block) => block.kind(),
        }
    }

    /// Checks whether it is an open text of this kind and number.
    #[inline]
    pub(crate) fn takes_text(&self, key: Option<i64>, kind: BlockKind) -> bool {
        self.key == key && matches!(self.state, State::Text(open, _) if open == kind)
    }

    pub(crate) fn is_open_text(&self) -> bool {
        matches!(self.state, State::Text(..))
    }

    pub(crate) fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed(_))
    }

    /// Returns the position of its call, unless the block is closed.
    pub(crate) fn open_call(&self) -> Option<usize> {
        match self.state {
            State::Call(call) => Some(call),
            _ => None,
        }
    }

    /// Appends a piece of the text, unless the block is closed. If it exceeds a limit, nothing changes.
    #[inline]
    pub(crate) fn extend(&mut self, piece: &str, answer: &mut Answer) -> Result {
        let State::Text(_, text) = &mut self.state else { return Ok(()) };
        within("bytes in one block", text.len() + piece.len(), answer.settings.limits.block_bytes)?;
        answer.bytes.add(piece.len())?;
        text.push_str(piece);
        Ok(())
    }

    /// Returns the chunk of a piece of text or arguments.
    #[inline]
    pub(crate) fn piece(&self, kind: BlockKind, text: Text) -> Chunk {
        Chunk::Delta { block: self.id, delta: BlockDelta::from_text(kind, text) }
    }

    /// Adds data to be replayed with the block; it may arrive after the block has ended.
    pub(crate) fn push_data(&mut self, data: ProviderData, sink: &mut Sink<'_>) -> Result {
        let limit = sink.answer.settings.limits.provider_data;
        within("pieces of provider data on one block", self.data.len() + 1, limit)?;
        sink.answer.bytes.add(of_provider_data(&data))?;
        self.data.push(data);
        Ok(())
    }

    pub(crate) fn open(&self, call: Option<CallHead>, sink: &mut Sink<'_>) {
        let head = BlockHead { kind: self.kind(), call: call.map(Box::new) };
        sink.chunks.push_back(Chunk::Opened { block: self.id, head });
    }

    #[inline]
    pub(crate) fn show(&self, delta: BlockDelta, sink: &mut Sink<'_>) {
        sink.chunks.push_back(Chunk::Delta { block: self.id, delta });
    }

    /// Emits the content of a block that arrived in one piece.
    pub(crate) fn show_whole(&self, sink: &mut Sink<'_>) {
        if let State::Closed(content) = &self.state {
            BlockDelta::from_content(content.content()).into_iter().for_each(|delta| self.show(delta, sink));
            sink.chunks.push_back(Chunk::Closed { block: self.id, content: content.clone() });
        }
    }

    /// Closes the block, unless it is closed or a call.
    pub(crate) fn close(&mut self, sink: &mut Sink<'_>) {
        if let State::Text(kind, text) = &mut self.state {
            let content = BlockContent::from_text(*kind, std::mem::take(text));
            self.close_with(content, sink);
        }
    }

    pub(crate) fn close_with(&mut self, content: BlockContent, sink: &mut Sink<'_>) {
        let content = Block::with_data(content, self.data.clone());
        self.state = State::Closed(content.clone());
        sink.chunks.push_back(Chunk::Closed { block: self.id, content });
    }

    /// Returns the current block; `call` returns the call at a position while it is open.
    pub(crate) fn to_block(&self, call: impl FnOnce(usize) -> Option<ToolCall>) -> Block {
        let content = match &self.state {
            // Data that arrived after the end is missing on the closing chunk.
            State::Closed(block) if block.provider_data().len() == self.data.len() => return block.clone(),
            State::Closed(block) => block.content().clone(),
            State::Text(kind, text) => BlockContent::from_text(*kind, text.clone()),
            State::Call(at) => match call(*at) {
                Some(call) => BlockContent::ToolCall(call),
                None => BlockContent::Text(String::new()),
            },
        };
        Block::with_data(content, self.data.clone())
    }
}

/// The tool calls among the blocks.
impl AnswerBlocks {
    fn push_fragment(
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
    fn call_so_far(&self, at: usize, call_id_prefix: &Text) -> Option<ToolCall> {
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
    fn end_call(&mut self, at: usize, sink: &mut Sink<'_>) {
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
    fn close_last(&mut self, at: usize, marker: EndMarker, sink: &mut Sink<'_>) {
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
