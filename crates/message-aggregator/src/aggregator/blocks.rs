//! `AnswerBlocks`: the blocks of an answer; opens, extends and closes them.

mod calls;

use crate::aggregator::answer_bytes::{of_content, of_finish, of_provider_data};
use crate::aggregator::error::{Result, within};
use crate::aggregator::identity::PositionInEvent;
use crate::aggregator::open_block::{OpenBlock, State};
use crate::aggregator::open_call::OpenCall;
use crate::aggregator::{Answer, EndMarker, Sink};
use crate::{
    Block, BlockContent, BlockId, BlockKind, Citation, DeltaKind, Finish, FinishReason, ProviderData, Text,
    ToolCall, ToolCallDelta,
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
    /// fits the limits; otherwise changes nothing. [`identify`](crate::aggregator::identity::identify) would find
    /// the same call by the same index, and no dispute: no repeated header may have begun another call.
    #[inline]
    pub(crate) fn extend_call(&mut self, index: i64, text: &str, answer: &mut Answer) -> Option<&OpenBlock> {
        let at = self.calls.iter().rposition(|call| call.index == Some(index))?;
        if self.calls.iter().any(OpenCall::has_repeated_header) {
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
        self.dispute_left_over();
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

    /// Returns the text so far that a reader of text alone is shown.
    pub(crate) fn shown_text(&self) -> String {
        self.blocks.iter().filter_map(OpenBlock::shown_text).collect()
    }

    /// Returns the blocks so far, with their ids. Open ones are included as they are, with incomplete calls.
    pub(crate) fn all(&self, call_id_prefix: &Text) -> impl Iterator<Item = (BlockId, Block)> {
        let call_at = move |at: usize| {
            let call = self.calls.get(at)?;
            Some(ToolCall { complete: false, ..call.to_call(|| self.made_id(at, call_id_prefix)) })
        };
        self.blocks.iter().map(move |block| (block.id, block.to_block(call_at)))
    }
}
