//! Chains of a scripted model and policies, read with all laws of a stream checked.

use advisor_core::{
    AdvisorChain, Block, BlockContent, BlockId, BlockKind, ChatClient, ChatClientBuilder, ChatRequest,
    ChatResponse, Chunk, ChunkFold, Delta, DeltaKind, Error, Message, Result, StreamAdvisor, Turn, from_fn,
};
use advisor_testkit::StreamValidator;
use advisor_testkit::{Answer, ScriptedModel};
use futures::{Stream, StreamExt};
use std::sync::Arc;
use std::time::Duration;

use common_advisors::policy::{BlockPolicy, Denials, PendingBlock, Verdict};

/// The longest wait for anything. No wait of a test is near it.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

pub(crate) struct Run {
    pub(crate) chunks: Vec<Chunk>,
    pub(crate) outcome: Result<ChatResponse, Error>,
    pub(crate) turn: Arc<Turn>,
}

impl Run {
    pub(crate) fn response(&self) -> &ChatResponse {
        self.outcome.as_ref().unwrap()
    }

    /// The blocks of the response in short.
    pub(crate) fn blocks(&self) -> Vec<String> {
        in_short(self.response())
    }

    pub(crate) fn denials(&self) -> Denials {
        self.turn.extensions().get().unwrap_or_default()
    }
}

/// The blocks of a response in short: `text`, `(name {})`, `(name {}…)` if incomplete, `<reasoning>`, `Media`.
pub(crate) fn in_short(response: &ChatResponse) -> Vec<String> {
    let block = |block: &Block| match block.content() {
        BlockContent::ToolCall(call) => {
            format!("({} {}{})", call.name, call.arguments, if call.complete { "" } else { "…" })
        }
        BlockContent::Text(text) => text.clone(),
        BlockContent::Reasoning(text) => format!("<{text}>"),
        other => format!("{:?}", other.kind()),
    };
    response.message().blocks().iter().map(block).collect()
}

/// Reads a stream to its end, and checks the laws S1, S3 and S4. What was shown is all of the response.
pub(crate) async fn read(stream: impl Stream<Item = Result<Chunk>> + Unpin, turn: &Arc<Turn>) -> Run {
    let (mut validator, mut fold, mut chunks) = (StreamValidator::new(), ChunkFold::default(), Vec::new());
    let mut stream = stream;
    let outcome = loop {
        let next = tokio::time::timeout(LIMIT, stream.next()).await.expect("the stream goes on");
        match next.expect("a stream ends with `Completed` or an error") {
            Ok(chunk) => {
                validator.push(&chunk).unwrap();
                fold.push(&chunk);
                if let Chunk::Completed(response) = &chunk {
                    let blocks: Vec<_> = response.blocks().map(|(id, block)| (id, block.clone())).collect();
                    assert_eq!(fold.blocks(response.round()), blocks);
                    break Ok(response.clone());
                }
                chunks.push(chunk);
            }
            Err(error) => break Err(error),
        }
    };
    Run { chunks, outcome, turn: Arc::clone(turn) }
}

/// A chain of these advisors, the first one outermost.
pub(crate) fn chain(
    model: ScriptedModel,
    advisors: impl IntoIterator<Item = Arc<dyn StreamAdvisor>>,
) -> AdvisorChain {
    let shared = |advisor: Arc<dyn StreamAdvisor>| {
        let placement = advisor.placement();
        from_fn(String::from(advisor.name()), move |request, next| {
            Arc::clone(&advisor).advise_stream(request, next)
        })
        .with_placement(placement)
    };
    let builder = ChatClient::builder(model);
    let client = advisors.into_iter().map(shared).fold(builder, ChatClientBuilder::advisor).build().unwrap();
    client.chain().clone()
}

pub(crate) fn request() -> ChatRequest {
    ChatRequest::new(Message::user("go"))
}

/// Runs one answer through these advisors.
pub(crate) async fn run(answer: Answer, advisors: Vec<Arc<dyn StreamAdvisor>>) -> Run {
    run_in(chain(ScriptedModel::new([answer]), advisors)).await
}

pub(crate) async fn run_in(chain: AdvisorChain) -> Run {
    let request = request();
    let turn = Arc::clone(&request.turn);
    read(chain.next_stream(request).await.unwrap(), &turn).await
}

/// A policy whose judge is this function.
pub(crate) fn judged(judge: impl Fn(&PendingBlock) -> Verdict + Send + Sync + 'static) -> BlockPolicy {
    BlockPolicy::new(move |pending: PendingBlock| {
        let verdict = judge(&pending);
        async move { Ok(verdict) }
    })
}

/// A policy that denies the calls of these tools.
pub(crate) fn denying(names: &'static [&'static str]) -> BlockPolicy {
    judged(|pending| {
        let denied = pending.call().is_some_and(|call| names.contains(&call.name.as_str()));
        if denied { Verdict::deny("") } else { Verdict::Allow }
    })
}

/// The end of the call with this index, before the answer ends.
pub(crate) fn end_of_call(index: i64) -> Delta {
    Delta::from(DeltaKind::BlockEnd).with_block(index)
}

/// The chunks of one block.
pub(crate) fn of_block(chunks: &[Chunk], block: BlockId) -> Vec<Chunk> {
    chunks.iter().filter(|chunk| chunk.block() == Some(block)).cloned().collect()
}

/// The kinds of the blocks in the order in which they opened.
pub(crate) fn opened(chunks: &[Chunk]) -> Vec<BlockKind> {
    let kind = |chunk: &Chunk| match chunk {
        Chunk::Opened { head, .. } => Some(head.kind),
        _ => None,
    };
    chunks.iter().filter_map(kind).collect()
}
