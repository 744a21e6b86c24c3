//! `BlockPolicy`: the advisor, its settings, one verdict with its timeout, and `Denials`.

mod editor;

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use advisor_core::{
    AWAY_AFTER, AdvisorChain, AdvisorInfo, AdvisorRole, BlockHead, BlockId, BlockKind, CallHead, ChatRequest,
    ChunkStream, Error, ErrorKind, Phase, Placement, Result, StreamAdvisor, Text, async_trait, catch_panics,
};

use tokio::time::{Instant, timeout_at};

use self::editor::PolicyEditor;
use crate::policy::judge::{Judge, PendingBlock, Verdict};

/// Holds back each block of chosen kinds until a judge has decided about it: tool calls by default.
///
/// A denied call becomes a text; a judge that wants another one replaces the block by it ([`Verdict::Replace`]). The tool
/// loop never runs a denied call, and memory stores the text. A model that should see an
/// error result and try something else needs a hook of the tool loop in place of a policy.
///
/// Its position is [`Phase::ModelCall`], inside memory. Of several policies, the one added last is nearest to the
/// model and acts first; the others see its output.
///
/// It also judges calls that the model writes into its text, if `TextToolCalls` of `text-tool-calls` finds them. That
/// advisor is always nearer to the model, whatever the order in which both are added.
///
/// # Ordering
/// Other blocks stream on while a judge works (law S2). Judged blocks are judged in parallel, and emitted in the order
/// in which they opened. The answer completes after the last verdict, so memory and tools see the result (law O3).
///
/// # Cancellation
/// Dropping the stream drops the judges.
///
/// # Errors
/// With [`OnFailure::Fail`], the error of a judge ends the stream. With the other settings, a judge causes no error.
///
/// # Example
/// ```
/// use advisor_core::ChatClient;
/// use advisor_testkit::{Answer, ScriptedModel};
/// use common_advisors::policy::{BlockPolicy, PendingBlock, Verdict};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> advisor_core::Result<()> {
/// let policy = BlockPolicy::new(|pending: PendingBlock| async move {
///     let deletes = pending.call().is_some_and(|call| call.name == "delete");
///     Ok(if deletes { Verdict::deny("") } else { Verdict::Allow })
/// });
/// let model = ScriptedModel::new([Answer::from_calls([("c1", "delete", "{}")])]);
/// let client = ChatClient::builder(model).advisor(policy).build()?;
/// let response = client.prompt().user("Clean up.").call().await?;
/// assert_eq!(response.text(), "[The call of `delete` was denied.]");
/// assert_eq!(response.tool_calls().count(), 0);
/// # Ok(()) }
/// ```
#[must_use]
#[derive(Clone)]
#[allow(clippy::exhaustive_structs, reason = "callers write it with `..BlockPolicy::new(…)`")]
pub struct BlockPolicy {
    /// The name that [`explain`](AdvisorChain::explain) and [`Denial::policy`] show.
    pub name: Text,
    /// The judge.
    pub judge: Arc<dyn Judge>,
    /// The kinds of blocks that are judged, and held back until then.
    pub kinds: Vec<BlockKind>,
    /// The tools whose calls are judged; `None`: all. Calls of other tools stream on.
    pub tools: Option<Vec<Text>>,
    /// The time limit of each verdict; `None`: no limit. A limit needs a tokio runtime with time.
    ///
    /// A judge makes progress only while the stream is polled. If the first poll after the limit is more than a second
    /// late, the time starts again. So there is no limit for a consumer that polls less often than the timeout: its
    /// block stays held back until the verdict.
    pub timeout: Option<Duration>,
    /// The number of blocks of an answer that are judged at a time; 0 counts as 1.
    pub concurrency: usize,
    /// The result of a judge that gives no verdict.
    pub on_failure: OnFailure,
}

impl BlockPolicy {
    /// Creates a policy for tool calls. At most 8 blocks of an answer are judged at a time, each for at most 30
    /// seconds. Its other settings are fields: `BlockPolicy { timeout: None, ..BlockPolicy::new(judge) }`.
    pub fn new(judge: impl Judge) -> Self {
        Self {
            name: "block-policy".into(),
            judge: Arc::new(judge),
            kinds: vec![BlockKind::ToolCall],
            tools: None,
            timeout: Some(Duration::from_secs(30)),
            concurrency: 8,
            on_failure: OnFailure::default(),
        }
    }

    /// Checks whether a block that opens like this is judged.
    fn judges(&self, head: &BlockHead) -> bool {
        let is_chosen = |call: &CallHead| self.tools.as_ref().is_none_or(|tools| tools.contains(&call.name));
        self.kinds.contains(&head.kind) && head.call.as_deref().is_none_or(is_chosen)
    }

    /// Returns the verdict on a block. A timeout and a panic are errors.
    async fn verdict(self: Arc<Self>, pending: PendingBlock) -> Result<Verdict> {
        let judge = Arc::clone(&self.judge);
        let judged = catch_panics(async move { judge.judge(pending).await });
        let outcome = match self.timeout {
            None => judged.await,
            Some(timeout) => within(timeout, "a judge gave no verdict in time", judged).await?,
        };
        // The panic's text may hold content.
        outcome.unwrap_or_else(|_| Err(Error::new(ErrorKind::Advisor, "a judge panicked")))
    }
}

impl AdvisorInfo for BlockPolicy {
    fn name(&self) -> &str {
        &self.name
    }

    fn placement(&self) -> Placement {
        Placement { phase: Phase::ModelCall, role: AdvisorRole::InsideMemory }
    }
}

#[async_trait]
impl StreamAdvisor for BlockPolicy {
    async fn advise_stream(self: Arc<Self>, request: ChatRequest, next: AdvisorChain) -> Result<ChunkStream> {
        let editor = PolicyEditor::new(self, request.clone());
        Ok(next.next_stream(request).await?.edit_with(editor))
    }
}

impl fmt::Debug for BlockPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockPolicy")
            .field("name", &self.name)
            .field("kinds", &self.kinds)
            .field("tools", &self.tools)
            .field("timeout", &self.timeout)
            .field("concurrency", &self.concurrency)
            .field("on_failure", &self.on_failure)
            .finish_non_exhaustive()
    }
}

/// Awaits a future for at most this time. `what` is the text of the error.
///
/// The future makes progress only while it is polled. If the first poll after the end of the time is later than
/// [`AWAY_AFTER`], the time starts again. So there is no limit for a stream that is polled less often than `time`.
async fn within<F: Future>(time: Duration, what: &'static str, future: F) -> Result<F::Output> {
    let mut future = pin!(future);
    loop {
        let Some(due) = Instant::now().checked_add(time) else { return Ok(future.await) };
        match timeout_at(due, &mut future).await {
            Ok(output) => return Ok(output),
            Err(_) if due.elapsed() > AWAY_AFTER => {}
            Err(_) => return Err(Error::new(ErrorKind::Timeout, what)),
        }
    }
}

/// The result of a judge that gives no verdict: after an error, a timeout or a panic.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnFailure {
    /// The block is denied: fail-secure.
    #[default]
    Deny,
    /// The block is emitted, with a warning in the log: fail-open.
    Allow,
    /// The answer fails with the judge's error.
    Fail,
}

/// The denied blocks of a turn, in the order in which they were left out. An extension of the turn.
///
/// They include blocks of an answer that an outer advisor rejected, but not those of an attempt that the model call
/// restarted.
///
/// # Example
/// ```
/// use std::sync::Arc;
///
/// use advisor_core::ChatClient;
/// use advisor_testkit::{Answer, ScriptedModel};
/// use futures::TryStreamExt;
/// use common_advisors::policy::{BlockPolicy, Denials, PendingBlock, Verdict};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> advisor_core::Result<()> {
/// # let policy = BlockPolicy::new(|_: PendingBlock| async { Ok(Verdict::deny("Ask an administrator.")) });
/// # let model = ScriptedModel::new([Answer::from_calls([("c1", "delete", "{}")])]);
/// # let client = ChatClient::builder(model).advisor(policy).build()?;
/// let mut stream = client.prompt().user("Clean up.").stream();
/// let turn = Arc::clone(stream.turn());
/// while let Some(_chunk) = stream.try_next().await? {}
/// let denials = turn.extensions().get::<Denials>().unwrap_or_default();
/// assert_eq!(denials.0[0].tool.as_deref(), Some("delete"));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Denials(pub Vec<Denial>);

/// A block that a policy left out of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Denial {
    /// The name of the policy.
    pub policy: Text,
    /// The block.
    pub block: BlockId,
    /// The kind of the block.
    pub kind: BlockKind,
    /// The name of the tool, for a call.
    pub tool: Option<Text>,
    /// The cause.
    pub cause: DenialCause,
}

/// The cause of a denial.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DenialCause {
    /// The judge denied the block.
    Verdict {
        /// Its reason, which may be empty.
        explanation: Text,
    },
    /// The judge gave no verdict: it failed with an error of this kind, took too long
    /// ([`Timeout`](ErrorKind::Timeout)) or panicked ([`Advisor`](ErrorKind::Advisor)).
    NoVerdict(ErrorKind),
}

impl Denial {
    /// Returns the text in place of the block.
    fn text(&self) -> String {
        let what = match (&self.tool, self.kind) {
            (Some(tool), _) => format!("The call of `{tool}`"),
            (None, BlockKind::Reasoning) => "A part of the reasoning".to_owned(),
            (None, BlockKind::Media) => "An image or file".to_owned(),
            (None, BlockKind::Citation) => "A citation".to_owned(),
            (None, BlockKind::Opaque) => "A part of the answer".to_owned(),
            (None, _) => "A text".to_owned(),
        };
        match &self.cause {
            DenialCause::Verdict { explanation } if explanation.trim().is_empty() => {
                format!("[{what} was denied.]")
            }
            DenialCause::Verdict { explanation } => format!("[{what} was denied: {explanation}]"),
            DenialCause::NoVerdict(_) => format!("[{what} was denied, since it could not be checked.]"),
        }
    }
}
