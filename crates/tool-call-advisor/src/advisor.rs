use std::fmt;
use std::sync::Arc;

use advisor_core::{
    AdvisorChain, AdvisorInfo, AdvisorRole, ChatRequest, ChunkStream, Error, History, Leniency, Phase,
    Placement, Result, StreamAdvisor, ToolCall, ToolSet, async_trait,
};

use crate::config::Config;
use crate::run::LoopRun;
use crate::run::stream::LoopStream;
use crate::{ClosingTexts, LoopHooks, ToolCallStreaming, ToolExecution, ToolLimits};

/// The tool loop: runs the calls of an answer, gives the results to the model and asks again.
///
/// # Ordering
/// A round's answer is complete, and everything inside the loop is done with it, before a tool of it
/// starts. The starts of calls that must not run twice ([`Effect::AtMostOnce`](advisor_core::Effect)) are recorded
/// before any tool of the round starts. All results of a round are recorded, in call order, before the model is asked again. The end
/// of the turn is recorded before `Completed` comes out.
///
/// # Cancellation
/// Dropping the stream drops the round or the tools that are running. [`LoopHooks::finalize`] runs.
///
/// # Errors
/// A tool that is unknown, gets bad arguments, fails, panics, takes too long or is one too many is a
/// result that the model reads. A bound that is reached is a finish reason. Errors are those of the
/// chain, of recorders and of hooks; they carry the turn's messages that are final.
///
/// # Example
/// ```
/// use serde_json::{Value, json};
/// use tool_call_advisor::{ToolCallAdvisor, ToolCallStreaming, ToolLimits};
///
/// let advisor = ToolCallAdvisor::builder()
///     .streaming(ToolCallStreaming::All)
///     .limits(ToolLimits::default().with_rounds(10))
///     .build()?;
/// # Ok::<(), advisor_core::Error>(())
/// ```
#[derive(Clone)]
pub struct ToolCallAdvisor {
    config: Arc<Config>,
}

impl ToolCallAdvisor {
    /// The loop as it is without any setting.
    #[must_use]
    pub fn new() -> Self {
        Self { config: Arc::new(ToolCallAdvisorBuilder::default().config) }
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// Begins a loop with settings.
    pub fn builder() -> ToolCallAdvisorBuilder {
        ToolCallAdvisorBuilder::default()
    }
}

impl Default for ToolCallAdvisor {
    fn default() -> Self {
        Self::new()
    }
}

impl AdvisorInfo for ToolCallAdvisor {
    fn name(&self) -> &'static str {
        "tool-call"
    }

    /// In the loop phase, which is its own.
    fn placement(&self) -> Placement {
        Placement::new(Phase::Loop).with_role(AdvisorRole::ToolLoop { history: self.config.history })
    }

    fn validate_tools(&self, tools: &ToolSet) -> Result<()> {
        self.config.schemas.validate(tools)
    }
}

#[async_trait]
impl StreamAdvisor for ToolCallAdvisor {
    async fn advise_stream(self: Arc<Self>, request: ChatRequest, next: AdvisorChain) -> Result<ChunkStream> {
        if request.options.choices.is_some_and(|choices| choices > 1) && !request.tools.is_empty() {
            return Err(Error::configuration(
                "several choices cannot call tools; ask for one choice or offer no tools",
            ));
        }
        let run = Box::new(LoopRun::new(Arc::clone(&self.config), request, next));
        LoopStream::begin(run).await.map(ChunkStream::from_batches)
    }
}

/// Puts a [`ToolCallAdvisor`] together.
#[derive(Default)]
#[must_use = "an advisor is made by `build`"]
pub struct ToolCallAdvisorBuilder {
    config: Config,
}

impl ToolCallAdvisorBuilder {
    /// What those outside see while the loop runs. Default: [`ToolCallStreaming::TextOnly`].
    pub fn streaming(mut self, streaming: ToolCallStreaming) -> Self {
        self.config.streaming = streaming;
        self
    }

    /// `true` is [`ToolCallStreaming::All`], `false` is [`ToolCallStreaming::TextOnly`].
    pub fn stream_tool_call_responses(self, stream: bool) -> Self {
        self.streaming(if stream { ToolCallStreaming::All } else { ToolCallStreaming::TextOnly })
    }

    /// [`ToolCallStreaming::FinalAnswerOnly`].
    pub fn suppress_tool_call_streaming(self) -> Self {
        self.streaming(ToolCallStreaming::FinalAnswerOnly)
    }

    /// Shows what tools do in every mode, not only in [`ToolCallStreaming::All`].
    pub fn tool_events(mut self, show: bool) -> Self {
        self.config.tool_events = show;
        self
    }

    /// Whether each request repeats the turn's messages so far. Left out, it does unless a memory stands
    /// inside the loop, which then sends them.
    pub fn internal_conversation_history(mut self, enabled: bool) -> Self {
        self.config.history = if enabled { History::InLoop } else { History::InMemory };
        self
    }

    /// Leaves the history to a memory inside the loop. It is so by itself where there is one.
    pub fn disable_internal_conversation_history(self) -> Self {
        self.internal_conversation_history(false)
    }

    /// The bounds of a turn.
    pub fn limits(mut self, limits: ToolLimits) -> Self {
        self.config.limits = limits;
        self
    }

    /// What happens at the loop's turning points.
    pub fn hooks(mut self, hooks: impl LoopHooks) -> Self {
        self.config.hooks = Arc::new(hooks);
        self
    }

    /// Runs tools in another way than [`ParallelTools`](crate::ParallelTools).
    pub fn execution(mut self, execution: impl ToolExecution) -> Self {
        self.config.execution = Arc::new(execution);
        self
    }

    /// Which calls the loop may run. An answer with one that it may not run is handed to the caller whole.
    pub fn eligible(mut self, eligible: impl Fn(&ToolCall) -> bool + Send + Sync + 'static) -> Self {
        self.config.eligible = Arc::new(eligible);
        self
    }

    /// What tools are given of arguments that do not fit their schema as they are, unless a tool says so itself.
    /// Default: [`Leniency::NullIsAbsent`].
    pub fn leniency(mut self, leniency: Leniency) -> Self {
        self.config.leniency = leniency;
        self
    }

    /// The sentences that the loop writes itself. Default: English ones, which are shown.
    pub fn closing_texts(mut self, texts: ClosingTexts) -> Self {
        self.config.texts = texts;
        self
    }

    /// The advisor.
    ///
    /// # Errors
    /// Of kind [`Configuration`](advisor_core::ErrorKind::Configuration), if no round is allowed at all.
    pub fn build(self) -> Result<ToolCallAdvisor> {
        if self.config.limits.rounds == Some(0) {
            return Err(Error::configuration("a limit of 0 rounds never asks the model; allow at least 1"));
        }
        Ok(ToolCallAdvisor { config: Arc::new(self.config) })
    }
}

impl fmt::Debug for ToolCallAdvisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.config.fmt(f)
    }
}

impl fmt::Debug for ToolCallAdvisorBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.config.fmt(f)
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolCallAdvisor")
            .field("streaming", &self.streaming)
            .field("tool_events", &self.tool_events)
            .field("history", &self.history)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
