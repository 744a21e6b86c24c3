//! `ToolCallAdvisor`, `ToolCallAdvisorBuilder`, `ToolCallStreaming` and `Config`: the advisor and its settings.

use std::fmt;
use std::sync::Arc;

use advisor_core::{
    AdvisorInfo, AdvisorRole, CallRunner, Error, FinishReason, Leniency, LoopHistory, Phase, Placement,
    Result, ToolCall, ToolSet,
};

use crate::not_started::closing_text;
use crate::plan::schema::Schemas;
use crate::{LoopHooks, ParallelTools, ToolExecution, ToolLimits, ToolPolicy};

/// The tool loop: runs the calls of an answer, sends the results to the model and repeats.
///
/// # Ordering
/// The tools of a round start after its answer is complete and all advisors inside the loop have completed for it.
/// The starts of calls that must not run twice ([`Effect::AtMostOnce`](advisor_core::Effect)) are recorded before
/// any tool of the round starts. All results of a round are recorded, in call order, before the model is asked
/// again. The end of the turn is recorded before `Completed` is emitted.
///
/// # Cancellation
/// Dropping the stream drops the running round or the running tools. [`LoopHooks::finalize`] still runs.
///
/// # Errors
/// An unknown tool, bad arguments, a failure, a panic, a timeout or an exceeded call limit is a result that the
/// model reads. A limit that ends the turn is a finish reason. Errors come from the chain, the tool execution,
/// recorders and hooks. They carry the final messages of the turn.
///
/// # Example
/// ```
/// use serde_json::{Value, json};
/// use tool_call_advisor::{ToolCallAdvisor, ToolCallStreaming, ToolLimits};
///
/// let advisor = ToolCallAdvisor::builder()
///     .streaming(ToolCallStreaming::All)
///     .limits(ToolLimits { rounds: Some(10), ..ToolLimits::default() })
///     .build()?;
/// # Ok::<(), advisor_core::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct ToolCallAdvisor {
    pub(crate) config: Arc<Config>,
}

impl ToolCallAdvisor {
    /// Creates a loop with default settings.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a builder with default settings.
    pub fn builder() -> ToolCallAdvisorBuilder {
        ToolCallAdvisorBuilder::default()
    }
}

impl AdvisorInfo for ToolCallAdvisor {
    fn name(&self) -> &'static str {
        "tool-call"
    }

    /// Returns the loop phase, which is reserved for the loop.
    fn placement(&self) -> Placement {
        self.config.placement
    }

    fn validate_tools(&self, tools: &ToolSet) -> Result<()> {
        self.config.schemas.validate(tools)
    }

    fn call_runner(&self) -> Option<Arc<dyn CallRunner>> {
        Some(Arc::new(self.clone()))
    }
}

/// Builder of a [`ToolCallAdvisor`].
#[derive(Debug, Default)]
#[must_use = "an advisor is made by `build`"]
pub struct ToolCallAdvisorBuilder {
    config: Config,
}

impl ToolCallAdvisorBuilder {
    /// Sets which chunks are shown while the loop runs. Default: [`ToolCallStreaming::TextOnly`].
    pub fn streaming(mut self, streaming: ToolCallStreaming) -> Self {
        self.config.streaming = streaming;
        self
    }

    /// Selects [`ToolCallStreaming::All`] for `true`, [`ToolCallStreaming::TextOnly`] for `false`.
    pub fn stream_tool_call_responses(self, stream: bool) -> Self {
        self.streaming(if stream { ToolCallStreaming::All } else { ToolCallStreaming::TextOnly })
    }

    /// Selects [`ToolCallStreaming::FinalAnswerOnly`].
    pub fn suppress_tool_call_streaming(self) -> Self {
        self.streaming(ToolCallStreaming::FinalAnswerOnly)
    }

    /// Shows tool events in every mode, not only in [`ToolCallStreaming::All`].
    pub fn tool_events(mut self, show: bool) -> Self {
        self.config.tool_events = show;
        self
    }

    /// Sets whether each request repeats the messages of the turn so far. Default: yes, unless a memory inside the
    /// loop sends them.
    pub fn internal_conversation_history(mut self, enabled: bool) -> Self {
        let history = if enabled { LoopHistory::InLoop } else { LoopHistory::InMemory };
        self.config.placement.role = AdvisorRole::ToolLoop(history);
        self
    }

    /// Sets the limits of a turn.
    pub fn limits(mut self, limits: ToolLimits) -> Self {
        self.config.limits = Arc::new(limits);
        self
    }

    /// Sets the hooks at the turning points of the loop.
    pub fn hooks(mut self, hooks: impl LoopHooks) -> Self {
        self.config.hooks = Arc::new(hooks);
        self
    }

    /// Replaces [`ParallelTools`](crate::ParallelTools) for running tools.
    pub fn execution(mut self, execution: impl ToolExecution) -> Self {
        self.config.execution = Arc::new(execution);
        self
    }

    /// Sets which calls the loop may run. The others are client-side: the turn ends with them, after the loop has run
    /// those of the same answer that it may run.
    pub fn eligible(mut self, eligible: impl Fn(&ToolCall) -> bool + Send + Sync + 'static) -> Self {
        self.config.eligible = Arc::new(eligible);
        self
    }

    /// Sets the rules about which calls run. Calls that they let run are decided by
    /// [`LoopHooks::before_tool`](crate::LoopHooks::before_tool).
    pub fn policy(mut self, policy: ToolPolicy) -> Self {
        self.config.policy = Some(policy);
        self
    }

    /// Sets how to treat arguments that do not fit their schema. A tool's own setting takes precedence. Default:
    /// [`Leniency::NullIsAbsent`].
    pub fn leniency(mut self, leniency: Leniency) -> Self {
        self.config.leniency = leniency;
        self
    }

    /// Sets the sentence that ends a turn at a limit or after a cut-off answer, by its finish reason. It is shown, stored
    /// and sent. Default: an English one.
    ///
    /// If it is blank, nothing is shown, and the response has no block: the application chooses a text by the finish
    /// reason. The stored transcript still ends with an assistant message, the default sentence. Some providers refuse a
    /// transcript that ends with results, and the model should know the reason for the end. The message is
    /// [hidden](advisor_core::Message::hidden), so submitting the turn again does not show it either.
    pub fn closing_text(mut self, text: impl Fn(&FinishReason) -> String + Send + Sync + 'static) -> Self {
        self.config.closing_text = Arc::new(text);
        self
    }

    /// Creates the advisor.
    ///
    /// # Errors
    /// Of kind [`Configuration`](advisor_core::ErrorKind::Configuration), if the limit is 0 rounds, or for a mistake in a
    /// policy: a rule without tools, an edit that is no object, a `*` that is not at the end of a name, a pointer without
    /// its leading `/`.
    pub fn build(self) -> Result<ToolCallAdvisor> {
        if self.config.limits.rounds == Some(0) {
            return Err(Error::configuration("a limit of 0 rounds never asks the model; allow at least 1"));
        }
        self.config.policy.iter().try_for_each(ToolPolicy::validate)?;
        Ok(ToolCallAdvisor { config: Arc::new(self.config) })
    }
}

#[derive(Clone)]
pub(crate) struct Config {
    pub(crate) streaming: ToolCallStreaming,
    pub(crate) tool_events: bool,
    pub(crate) placement: Placement,
    pub(crate) limits: Arc<ToolLimits>,
    pub(crate) hooks: Arc<dyn LoopHooks>,
    pub(crate) execution: Arc<dyn ToolExecution>,
    pub(crate) policy: Option<ToolPolicy>,
    pub(crate) eligible: Arc<dyn Fn(&ToolCall) -> bool + Send + Sync>,
    pub(crate) leniency: Leniency,
    pub(crate) closing_text: Arc<dyn Fn(&FinishReason) -> String + Send + Sync>,
    pub(crate) schemas: Arc<Schemas>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            streaming: ToolCallStreaming::default(),
            tool_events: false,
            placement: Placement { phase: Phase::Loop, role: AdvisorRole::ToolLoop(LoopHistory::Auto) },
            limits: Arc::default(),
            hooks: Arc::new(()),
            execution: Arc::new(ParallelTools::default()),
            policy: None,
            eligible: Arc::new(|_| true),
            leniency: Leniency::default(),
            closing_text: Arc::new(closing_text),
            schemas: Arc::default(),
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("streaming", &self.streaming)
            .field("tool_events", &self.tool_events)
            .field("placement", &self.placement)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// The chunks of a running tool loop that are shown outside it.
///
/// | chunk | `TextOnly` | `FinalAnswerOnly` | `All` |
/// | --- | --- | --- | --- |
/// | text, reasoning, refusal, media, citation of a round before the last | live | – | live |
/// | the same of the last round | live | live when certain, else when it ends | live |
/// | tool-call blocks that the loop runs | – | – | live |
/// | tool-call blocks that it leaves to the caller | once decided | once decided | live |
/// | tool started, progress, finished, not started | – | – | live |
/// | round completed | yes | – | yes |
/// | usage | the last round's | – | each round's |
/// | attempt restarted, completed | yes | yes | yes |
///
/// A last round is certain when no tools are offered, the tool choice is none, or no further round is allowed. The
/// completed response always sums the usage of all rounds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums, reason = "the three modes are the columns of the table")]
pub enum ToolCallStreaming {
    /// Content for the user, live, without tool activity.
    #[default]
    TextOnly,
    /// Only the last round: its answer, then the loop's closing sentence if a limit or a cut-off answer ends the
    /// turn.
    FinalAnswerOnly,
    /// All chunks.
    All,
}
