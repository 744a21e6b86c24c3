//! `PolicyEditor`: holds blocks back, runs judges, and emits decided blocks in order.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::task::{Context, Poll};

use advisor_core::{
    Block, BlockContent, BlockId, ChatRequest, ChatResponse, Chunk, ChunkEditor, EditedChunks, Error, Result,
};
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};

use super::{BlockPolicy, Denial, DenialCause, Denials, OnFailure};
use crate::policy::judge::{PendingBlock, Verdict};

/// Holds back the judged blocks of one answer.
pub(super) struct PolicyEditor {
    policy: Arc<BlockPolicy>,
    request: ChatRequest,
    held: BTreeMap<BlockId, HeldBlock>,
    /// The held blocks in the order in which they opened, which is that of their emission.
    order: VecDeque<BlockId>,
    /// The held blocks that wait for a judge, in the order in which they ended.
    complete: VecDeque<BlockId>,
    /// The running judges.
    judging: FuturesUnordered<BoxFuture<'static, (BlockId, Result<Verdict>)>>,
}

struct HeldBlock {
    chunks: Vec<Chunk>,
    stage: Stage,
}

enum Stage {
    Open,
    /// Complete; its judge waits or works.
    Complete(Block),
    Judged(Block, Result<Verdict>),
}

impl ChunkEditor for PolicyEditor {
    fn edit(&mut self, chunk: Chunk, out: &mut EditedChunks<'_>) {
        match &chunk {
            Chunk::Opened { block, head } if self.policy.judges(head) => {
                self.held.insert(*block, HeldBlock { chunks: Vec::new(), stage: Stage::Open });
                self.order.push_back(*block);
            }
            Chunk::AttemptRestarted { round } => self.forget(*round),
            _ => {}
        }
        let held = chunk.block().and_then(|id| self.held.get_mut(&id));
        let Some(held) = held else { return out.push(chunk) };
        if let Chunk::Closed { block, content } = &chunk {
            held.stage = Stage::Complete(content.clone());
            self.complete.push_back(*block);
        }
        held.chunks.push(chunk);
    }

    fn poll_pending(&mut self, cx: &mut Context<'_>, out: &mut EditedChunks<'_>) -> Poll<Result<()>> {
        // A verdict may end the answer, so it is emitted before the judge of another block starts.
        loop {
            self.emit_judged(out);
            self.start_judging();
            let Poll::Ready(Some((id, outcome))) = self.judging.poll_next_unpin(cx) else { break };
            self.note(id, outcome);
        }
        if self.judging.is_empty() { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    /// Leaves out blocks that never closed. No judge has seen them whole.
    fn end(&mut self, _response: &ChatResponse, _out: &mut EditedChunks<'_>) {
        self.held.retain(|_, held| !matches!(held.stage, Stage::Open));
        self.order.retain(|id| self.held.contains_key(id));
    }
}

impl PolicyEditor {
    pub(super) fn new(policy: Arc<BlockPolicy>, request: ChatRequest) -> Self {
        Self {
            policy,
            request,
            held: BTreeMap::new(),
            order: VecDeque::new(),
            complete: VecDeque::new(),
            judging: FuturesUnordered::new(),
        }
    }

    fn start_judging(&mut self) {
        while self.judging.len() < self.policy.concurrency.max(1)
            && let Some(id) = self.complete.pop_front()
        {
            if let Some(HeldBlock { stage: Stage::Complete(block), .. }) = self.held.get(&id) {
                let pending = PendingBlock::new(id, block.clone(), self.request.clone());
                let verdict = Arc::clone(&self.policy).verdict(pending);
                self.judging.push(async move { (id, verdict.await) }.boxed());
            }
        }
    }

    fn note(&mut self, id: BlockId, outcome: Result<Verdict>) {
        if let Some(held) = self.held.get_mut(&id)
            && let Stage::Complete(block) = &held.stage
        {
            held.stage = Stage::Judged(block.clone(), outcome);
        }
    }

    /// Takes the first held block, if it is judged.
    fn take_judged(&mut self) -> Option<(BlockId, HeldBlock)> {
        let is_judged = |held: &HeldBlock| matches!(held.stage, Stage::Judged(..));
        let id = self.order.pop_front_if(|id| self.held.get(id).is_some_and(is_judged))?;
        Some((id, self.held.remove(&id)?))
    }

    fn emit_judged(&mut self, out: &mut EditedChunks<'_>) {
        while let Some((id, held)) = self.take_judged() {
            self.emit(id, held, out);
        }
    }

    fn emit(&mut self, id: BlockId, held: HeldBlock, out: &mut EditedChunks<'_>) {
        let HeldBlock { chunks, stage: Stage::Judged(block, outcome) } = held else { return };
        match outcome {
            Ok(Verdict::Allow) => chunks.into_iter().for_each(|chunk| out.push(chunk)),
            Ok(Verdict::Replace(blocks)) => replace(id, &block, blocks, out),
            Ok(Verdict::EndAnswer(reason)) => {
                out.end_answer(reason);
                self.stop();
            }
            Ok(Verdict::Deny { explanation }) => {
                self.deny(id, &block, DenialCause::Verdict { explanation }, out);
            }
            Err(error) => self.emit_unjudged(id, &block, chunks, error, out),
        }
    }

    /// Emits a block without a verdict as the policy says.
    fn emit_unjudged(
        &mut self,
        id: BlockId,
        block: &Block,
        chunks: Vec<Chunk>,
        error: Error,
        out: &mut EditedChunks<'_>,
    ) {
        let policy = self.policy.name.as_str();
        tracing::warn!(policy, block = %id, error = error.kind().as_str(), "a judge gave no verdict");
        match self.policy.on_failure {
            OnFailure::Deny => self.deny(id, block, DenialCause::NoVerdict(error.kind()), out),
            OnFailure::Allow => chunks.into_iter().for_each(|chunk| out.push(chunk)),
            OnFailure::Fail => {
                out.fail(error);
                self.stop();
            }
        }
    }

    fn deny(&mut self, id: BlockId, block: &Block, cause: DenialCause, out: &mut EditedChunks<'_>) {
        let tool = block.as_tool_call().map(|call| call.name.clone());
        let denial = Denial { policy: self.policy.name.clone(), block: id, kind: block.kind(), tool, cause };
        replace(id, block, vec![Block::text(denial.text())], out);
        self.request.turn.extensions().update(|denials: &mut Denials| denials.0.push(denial));
    }

    /// Drops everything that is held back, and the judges.
    fn stop(&mut self) {
        self.held.clear();
        self.order.clear();
        self.complete.clear();
        self.judging = FuturesUnordered::new();
    }

    /// Forgets a void round. Only one round is open at a time.
    fn forget(&mut self, round: u32) {
        if self.held.keys().any(|id| id.round == round) {
            self.stop();
        }
        self.request.turn.extensions().update(|denials: &mut Denials| {
            denials.0.retain(|denial| denial.block.round != round);
        });
    }
}

/// Emits these blocks in place of the original, which is left out.
fn replace(id: BlockId, original: &Block, blocks: Vec<Block>, out: &mut EditedChunks<'_>) {
    match <[Block; 1]>::try_from(blocks) {
        // Under the same id, so that it keeps its place among blocks that other policies have added here.
        Ok([block]) => {
            let block = with_id_of(original, block);
            Chunk::from_block(id, &block).for_each(|chunk| out.push(chunk));
        }
        Err(blocks) => {
            for block in blocks {
                out.add(id, block);
            }
        }
    }
}

/// Returns the block; a call in place of a call gets its id.
fn with_id_of(original: &Block, block: Block) -> Block {
    let (Some(original), Some(call)) = (original.as_tool_call(), block.as_tool_call()) else { return block };
    let mut call = call.clone();
    call.id = original.id.clone();
    Block::with_data(BlockContent::ToolCall(call), block.provider_data().to_vec())
}
