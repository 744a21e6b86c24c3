//! The settings of a loop.

use std::fmt;
use std::sync::Arc;

use advisor_core::{History, Leniency, ToolCall};

use crate::hooks::NoHooks;
use crate::plan::schema::Schemas;
use crate::{
    ClosingTexts, LoopHooks, ParallelTools, ToolCallStreaming, ToolExecution, ToolLimits, ToolPolicy,
};

#[derive(Clone)]
pub(crate) struct Config {
    pub(crate) streaming: ToolCallStreaming,
    pub(crate) tool_events: bool,
    pub(crate) history: History,
    pub(crate) limits: Arc<ToolLimits>,
    pub(crate) hooks: Arc<dyn LoopHooks>,
    pub(crate) execution: Arc<dyn ToolExecution>,
    pub(crate) policy: Option<ToolPolicy>,
    pub(crate) eligible: Arc<dyn Fn(&ToolCall) -> bool + Send + Sync>,
    pub(crate) leniency: Leniency,
    pub(crate) texts: ClosingTexts,
    pub(crate) schemas: Arc<Schemas>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            streaming: ToolCallStreaming::default(),
            tool_events: false,
            history: History::Auto,
            limits: Arc::default(),
            hooks: Arc::new(NoHooks),
            execution: Arc::new(ParallelTools::new()),
            policy: None,
            eligible: Arc::new(|_| true),
            leniency: Leniency::default(),
            texts: ClosingTexts::new(),
            schemas: Arc::default(),
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("streaming", &self.streaming)
            .field("tool_events", &self.tool_events)
            .field("history", &self.history)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
