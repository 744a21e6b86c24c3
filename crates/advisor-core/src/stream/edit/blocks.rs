//! `EditedBlocks`: the blocks before and after an editor; keeps the output well-formed, and makes the answer of it.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use message_aggregator::{
    Block, BlockContent, BlockHead, BlockId, BlockKind, CallHead, ChatResponse, Chunk, ChunkFold,
    FinishReason, Text, ToolCall,
};

use crate::stream::chunk_stream::TurnOfStream;

/// The blocks of a stream on both sides of an editor, until their round ends.
#[derive(Debug)]
pub(super) struct EditedBlocks {
    pub(super) turn: TurnOfStream,
    /// Blocks that opened in the inner stream.
    inside: BTreeMap<BlockId, InnerBlock>,
    /// The emitted blocks.
    shown: ChunkFold,
    /// Emitted blocks of the editor's own: those it added, and those it opened as another kind.
    own: BTreeSet<BlockId>,
    /// The calls of each round by their ids: those of the inner stream and the editor's own.
    calls: BTreeMap<u32, HashMap<Text, BlockId>>,
    /// Blocks that are open in the output, with the kind they opened as.
    open: BTreeMap<BlockId, BlockKind>,
    /// The opening chunks of blocks that wait for their only piece. Without it they have no content and are left out.
    waiting: BTreeMap<BlockId, Chunk>,
    /// The round whose completion may pass the editor, once.
    pub(super) completing: Option<u32>,
    /// The first round that has not ended.
    round: u32,
}

#[derive(Debug)]
struct InnerBlock {
    head: BlockHead,
    /// Its content once closed.
    content: Option<Block>,
}

/// Input and output of the editor.
impl EditedBlocks {
    pub(super) fn new(turn: TurnOfStream) -> Self {
        Self {
            turn,
            inside: BTreeMap::new(),
            shown: ChunkFold::default(),
            own: BTreeSet::new(),
            calls: BTreeMap::new(),
            open: BTreeMap::new(),
            waiting: BTreeMap::new(),
            completing: None,
            round: 0,
        }
    }

    /// Notes a chunk before it goes to the editor.
    pub(super) fn arrive(&mut self, chunk: &Chunk) {
        match chunk {
            Chunk::Opened { block, head } => {
                if let Some(call) = &head.call {
                    self.note_call(*block, &call.call_id);
                }
                self.inside.insert(*block, InnerBlock { head: head.clone(), content: None });
            }
            Chunk::Closed { block, content } => {
                self.inside.entry(*block).and_modify(|inner| inner.content = Some(content.clone()));
            }
            Chunk::AttemptRestarted { round } => {
                self.inside.retain(|block, _| block.round != *round);
                self.calls.remove(round);
            }
            _ => {}
        }
    }

    fn note_call(&mut self, block: BlockId, call_id: &Text) {
        self.calls.entry(block.round).or_default().entry(call_id.clone()).or_insert(block);
    }

    /// Emits a chunk of the editor, if it is valid at this point.
    pub(super) fn let_out(&mut self, chunk: Chunk, out: &mut VecDeque<Chunk>) {
        self.enter(chunk.round(), out);
        let placed = match chunk {
            Chunk::Opened { block, head } => self.open_inner(block, head),
            Chunk::Closed { block, content } => self.close_as(block, Some(content)),
            chunk => self.has_place(&chunk).then_some(chunk),
        };
        if let Some(Chunk::Delta { block, delta }) = &placed
            && is_single_piece(delta.kind())
        {
            let opened = self.waiting.remove(block);
            self.emit(opened, out);
        }
        self.emit(placed, out);
    }

    fn emit(&mut self, chunk: Option<Chunk>, out: &mut VecDeque<Chunk>) {
        if let Some(chunk) = chunk {
            self.shown.push(&chunk);
            out.push_back(chunk);
        }
    }

    /// Ends all earlier rounds: when a later one begins, they have ended, even without a completion.
    fn enter(&mut self, round: u32, out: &mut VecDeque<Chunk>) {
        if round > self.round {
            self.close_until(round - 1, out);
            self.round = round;
        }
    }

    /// Closes blocks that are still open in the output, up to this round.
    pub(super) fn close_until(&mut self, round: u32, out: &mut VecDeque<Chunk>) {
        for (block, _) in self.waiting.extract_if(.., |block, _| block.round <= round) {
            self.open.remove(&block);
        }
        while let Some(block) = self.open.keys().next().copied().filter(|block| block.round <= round)
            && let Some(closed) = self.close_as(block, None)
        {
            self.emit(Some(closed), out);
        }
    }

    /// Forgets how the model closed the calls that are still open in the output. So they are incomplete.
    pub(super) fn cut_calls(&mut self) {
        for (block, _) in self.open.iter().filter(|(_, kind)| **kind == BlockKind::ToolCall) {
            self.inside.entry(*block).and_modify(|inner| inner.content = None);
        }
    }

    /// Closes all blocks that are still open in the output.
    pub(super) fn close_all(&mut self, out: &mut VecDeque<Chunk>) {
        let rounds = self.open.keys().chain(self.waiting.keys()).map(|block| block.round);
        if let Some(last) = rounds.max() {
            self.close_until(last, out);
        }
    }

    fn has_place(&mut self, chunk: &Chunk) -> bool {
        match chunk {
            Chunk::Delta { block, delta } => {
                let kind = delta.kind();
                // A block of a single piece takes one only.
                let has_room = !is_single_piece(kind) || self.waiting.contains_key(block);
                has_room && self.open.get(block) == Some(&kind)
            }
            Chunk::AttemptRestarted { round } => {
                self.open.retain(|block, _| block.round != *round);
                self.own.retain(|block| block.round != *round);
                self.waiting.retain(|block, _| block.round != *round);
                true
            }
            // Rounds and answers end only where the inner stream ends them: completion work may still have to run.
            Chunk::RoundCompleted(response) => self.completing.take() == Some(response.round()),
            Chunk::Completed(_) => false,
            _ => true,
        }
    }

    /// Forgets an ended round, of which nothing more can be emitted.
    pub(super) fn forget(&mut self, round: u32) {
        self.inside.retain(|block, _| block.round != round);
        self.own.retain(|block| block.round != round);
        self.calls.remove(&round);
        // A fold forgets an ended round in the same way as a restarted one.
        self.shown.push(&Chunk::AttemptRestarted { round });
        self.round = self.round.max(round.saturating_add(1));
    }
}

/// Opening and closing of blocks.
impl EditedBlocks {
    /// Returns the opening chunk of a block of the inner stream, unless it was opened before.
    fn open_inner(&mut self, block: BlockId, mut head: BlockHead) -> Option<Chunk> {
        let inner = &self.inside.get(&block)?.head;
        if block.round < self.round || self.shown.has_opened(block) || self.waiting.contains_key(&block) {
            return None;
        }
        if head.kind != inner.kind {
            self.own.insert(block);
            self.give_call_id(block, &mut head);
        }
        self.open(block, head)
    }

    /// Returns the opening chunk, unless it has to wait for the block's only piece.
    fn open(&mut self, block: BlockId, head: BlockHead) -> Option<Chunk> {
        let kind = head.kind;
        self.open.insert(block, kind);
        let opened = Chunk::Opened { block, head };
        if is_single_piece(kind) {
            self.waiting.insert(block, opened);
            return None;
        }
        Some(opened)
    }

    /// Opens an added block. Opens none in a round that has ended.
    pub(super) fn open_added(&mut self, block: BlockId, mut head: BlockHead, out: &mut VecDeque<Chunk>) {
        self.enter(block.round, out);
        if block.round < self.round || self.shown.has_opened(block) {
            return;
        }
        self.give_call_id(block, &mut head);
        self.own.insert(block);
        let opened = self.open(block, head);
        self.emit(opened, out);
    }

    /// Gives a call of the editor's own an id that no other call of its round has.
    fn give_call_id(&mut self, block: BlockId, head: &mut BlockHead) {
        if head.kind != BlockKind::ToolCall {
            return;
        }
        let call = head.call.get_or_insert_with(|| {
            Box::new(CallHead { name: ToolCall::UNNAMED.into(), call_id: Text::default() })
        });
        let taken = self.calls.get(&block.round).and_then(|calls| calls.get(&call.call_id));
        if call.call_id.is_empty() || taken.is_some_and(|other| *other != block) {
            let (prefix, round, position, part) =
                (self.turn.get().call_id_prefix(), block.round, block.position(), block.part());
            call.call_id = format!("{prefix}_{round}_{position}_{part}").into();
        }
        self.note_call(block, &call.call_id);
    }

    /// Closes a block with the content that was emitted; a call of the editor's own is complete then.
    pub(super) fn close(&mut self, block: BlockId, out: &mut VecDeque<Chunk>) {
        let own = self.shown.block(block).filter(|_| self.own.contains(&block));
        let closed = self.close_as(block, own.map(completed));
        self.emit(closed, out);
    }

    /// Returns the closing chunk of a block that is open in the output; `said` is the content that the editor
    /// closed it with.
    fn close_as(&mut self, block: BlockId, said: Option<Block>) -> Option<Chunk> {
        if self.waiting.remove(&block).is_some() {
            self.open.remove(&block);
            return None;
        }
        let shown = self.shown.block(block).filter(|_| self.open.contains_key(&block))?;
        let content = if self.own.contains(&block) {
            own_block(shown, said)
        } else {
            let inside = self.inside.get(&block).and_then(|inner| inner.content.clone());
            self.edited_block(block, &inside.or(said).unwrap_or(shown))
        };
        self.open.remove(&block);
        Some(Chunk::Closed { block, content })
    }
}

/// Checks whether blocks of this kind have one piece, which is all of their content.
fn is_single_piece(kind: BlockKind) -> bool {
    matches!(kind, BlockKind::Media | BlockKind::Citation | BlockKind::Opaque)
}

/// The answer as emitted.
impl EditedBlocks {
    /// Returns the output of a round as an answer that ends for this reason, if there is any.
    pub(super) fn answer(&self, round: u32, reason: &FinishReason) -> Option<ChatResponse> {
        self.shown.response(round, reason)
    }

    /// Returns the response as emitted, or `None` if its blocks are unchanged.
    pub(super) fn edited_answer(&self, response: &ChatResponse) -> Option<ChatResponse> {
        let blocks = || response.blocks();
        let is_left_out = |id: BlockId| self.inside.contains_key(&id) && !self.shown.has_opened(id);
        let added = self.added(response);
        if added.is_empty()
            && blocks().all(|(id, block)| !is_left_out(id) && self.edited_block(id, block) == *block)
        {
            return None;
        }
        let kept = blocks().filter(|(id, _)| !is_left_out(*id));
        let mut edited: Vec<_> = kept.map(|(id, block)| (id, self.edited_block(id, block))).collect();
        if !added.is_empty() {
            edited.extend(added);
            edited.sort_by_key(|(id, _)| *id);
        }
        Some(response.clone().with_blocks(edited))
    }

    /// Returns the emitted blocks that the inner answer does not have.
    fn added(&self, response: &ChatResponse) -> Vec<(BlockId, Block)> {
        let known: BTreeSet<_> = response.blocks().map(|(id, _)| id).collect();
        let added = self.own.iter().filter(|id| id.round == response.round() && !known.contains(id));
        added.filter_map(|id| Some((*id, self.shown.block(*id)?))).collect()
    }

    /// Returns the block as emitted, or the original if it is unchanged.
    fn edited_block(&self, id: BlockId, original: &Block) -> Block {
        let Some(shown) = self.shown.block(id) else {
            return original.clone();
        };
        if self.own.contains(&id) {
            return shown;
        }
        let (BlockContent::ToolCall(shown), Some(call)) = (shown.content(), original.as_tool_call()) else {
            let same = shown.content() == original.content();
            return if same { original.clone() } else { Block::new(shown.content().clone()) };
        };
        // A call that the editor closed early is incomplete; for an open one the original's state applies.
        let complete = if self.open.contains_key(&id) { call.complete } else { shown.complete };
        let mut edited = ToolCall::new(call.id.clone(), shown.name.clone(), shown.arguments.clone());
        edited.complete = complete;
        if edited == *call { original.clone() } else { Block::from(edited) }
    }
}

/// Returns a block of the editor's own, given the content that it was closed with. Its provider data belongs to
/// that content only.
fn own_block(shown: Block, said: Option<Block>) -> Block {
    let Some(said) = said else { return shown };
    let mut content = shown.content().clone();
    let is_same = match (&mut content, said.as_tool_call()) {
        (BlockContent::ToolCall(call), Some(said)) => {
            call.complete = said.complete;
            (&call.name, &call.arguments) == (&said.name, &said.arguments)
        }
        (content, _) => content == said.content(),
    };
    let data = if is_same { said.provider_data().to_vec() } else { Vec::new() };
    Block::with_data(content, data)
}

/// Returns the block with its call complete, if it is one.
fn completed(block: Block) -> Block {
    match block.as_tool_call() {
        Some(call) => ToolCall::new(call.id.clone(), call.name.clone(), call.arguments.clone()).into(),
        None => block,
    }
}
