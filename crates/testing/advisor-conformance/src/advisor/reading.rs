//! One answer, as it comes out of the advisor under test.

use std::future::{Future, poll_fn};
use std::task::Poll;
use std::time::Duration;

use advisor_core::{
    AdvisorChain, ChatRequest, Chunk, ConversationKey, Message, Result, ToolDefinition, ToolSet, Turn, TurnId,
};
use futures::stream::BoxStream;
use futures::{Stream, StreamExt, TryFutureExt};
use serde_json::{Value, json};
use tokio::task::yield_now;
use tool_call_advisor::FnTool;

use super::script::TOOL;
use super::subject::{Clause, Subject};
use crate::run::Run;

/// The longest wait for anything. No wait of a correct advisor is near it.
const LIMIT: Duration = Duration::from_secs(10);
/// More items than any answer has. One that is always ready lets no timeout be noticed.
const MOST_ITEMS: usize = 100_000;
/// The number of times that other tasks may run before an advisor that waits counts as idle.
const YIELDS: usize = 64;

const ENDS: Clause = Clause {
    law: "law S1",
    rule: "an answer ends",
    remedy: "wake the task whenever a poll returns `Pending`, and end once the inner stream has ended",
};

pub(super) type Items = BoxStream<'static, Result<Chunk>>;

/// The reader of an answer.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reader {
    /// As an outer advisor reads it, chunk by chunk.
    Advisor,
    /// As a turn, which takes all ready chunks at once.
    Turn,
}

/// Returns the items of an answer, which ends without a completion after too many.
pub(super) fn bounded(items: impl Stream<Item = Result<Chunk>> + Send + 'static) -> Items {
    items.take(MOST_ITEMS).boxed()
}

impl Reader {
    pub(super) const ALL: [Self; 2] = [Self::Advisor, Self::Turn];

    /// Begins to read. Nothing happens before the first poll.
    pub(super) fn open(self, chain: &AdvisorChain, request: ChatRequest) -> Items {
        match self {
            Self::Advisor => {
                let chain = chain.clone();
                let opening = async move { chain.next_stream(request).await };
                bounded(opening.try_flatten_stream())
            }
            Self::Turn => bounded(chain.stream(request)),
        }
    }
}

/// Reads an answer to its end.
pub(super) async fn read(subject: &Subject, items: Items) -> Run {
    let run = within(subject, Run::read(items)).await;
    run.unwrap_or_else(|| {
        subject.breaks(ENDS, format_args!("neither a completion nor an error in {MOST_ITEMS} items"))
    })
}

/// Waits for a future, and fails if it takes too long.
pub(super) async fn within<T>(subject: &Subject, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(LIMIT, future).await {
        Ok(output) => output,
        Err(_) => subject.breaks(ENDS, format_args!("nothing for {LIMIT:?}")),
    }
}

/// Returns the items that are ready.
pub(super) async fn ready_items(items: &mut Items) -> Vec<Result<Chunk>> {
    poll_fn(|cx| {
        let mut ready = Vec::new();
        while let Poll::Ready(Some(item)) = items.poll_next_unpin(cx) {
            ready.push(item);
        }
        Poll::Ready(ready)
    })
    .await
}

/// Returns the chunks that come out after a decision for which the advisor waits, while the model sends nothing.
pub(super) async fn later_chunks(items: &mut Items) -> Vec<Chunk> {
    let mut later = Vec::new();
    for _ in 0..YIELDS {
        yield_now().await;
        later.extend(ready_items(items).await.into_iter().filter_map(Result::ok));
    }
    later
}

/// Lets other tasks run.
pub(super) async fn let_others_run() {
    for _ in 0..YIELDS {
        yield_now().await;
    }
}

/// Returns the user's request of a turn, in a conversation of the same name. Ids of blocks and calls depend on it.
pub(super) fn request(subject: &Subject, turn: &str) -> ChatRequest {
    let id = TurnId::new(turn).expect("a short id");
    let conversation = ConversationKey::new(turn).expect("a short id");
    // Different turns ask different questions.
    let question = format!("{} This is turn {turn}.", subject.question);
    let request = ChatRequest { turn: Turn::new(id), ..ChatRequest::new(Message::user(question)) };
    ChatRequest { tools: tools(|_| {}), conversation: Some(conversation), ..request }
}

/// Returns the tools that the model calls; `started` runs when one starts.
pub(super) fn tools(started: impl Fn(&Value) + Clone + Send + Sync + 'static) -> ToolSet {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let definition = ToolDefinition::new(TOOL, "Works.", schema);
    let run = move |arguments: Value| {
        started(&arguments);
        async { Ok("worked") }
    };
    ToolSet::new().with(FnTool::new(definition, run))
}
