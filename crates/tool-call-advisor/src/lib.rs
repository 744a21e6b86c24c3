//! The tool loop as an advisor: runs the calls of a streamed answer, in order, bounded, and never before the
//! answer is remembered.
//!
#![doc = include_str!("../README.md")]
//!
//! - [`ToolCallAdvisor`] is the loop; [`ToolCallStreaming`] selects which chunks of it are shown.
//! - `#[tool]` makes a tool of a function or a method; [`FnTool`] makes one of a closure; [`ClientSideTool`] offers one that the caller runs.
//! - [`Effect`] declares whether a tool may run twice for one call. If not, the start of a call is recorded before
//!   it runs.
//! - [`ToolLimits`] bounds a turn; [`LoopHooks`] are called at its turning points.
//! - [`ParallelTools`] runs the calls; a custom [`ToolExecution`] replaces it.
//! - [`CallRunner::run`](advisor_core::CallRunner::run) runs calls outside the loop, such as ones that the caller approved.
//!
//! # Features
//! | feature | effect | by default |
//! | --- | --- | --- |
//! | `schema-validation` | checks arguments against the whole schema of a tool, and schemas when a client is built | no |
//! | `typed-tools` | `#[tool]`, `FnTool::typed` and `schema_for`: the schema of a type | yes |
//!
//! The structure of a schema is checked in any case: types, values, bounds, properties, items, `allOf`, `anyOf`, `$ref`.
//! Without `schema-validation`, and for a tool of [another program](advisor_core::ToolDefinition::origin), the tool
//! checks the rest, such as `pattern`, `not` and `format`. Long arguments are checked off the async threads, for at most 10
//! seconds.

mod advisor;
mod approved_calls;
mod execution;
mod fn_tool;
mod hooks;
mod limits;
mod not_started;
mod plan;
mod policy;
mod run;
mod truncate;
#[cfg(feature = "typed-tools")]
mod typed_tool;

pub use advisor::{ToolCallAdvisor, ToolCallAdvisorBuilder, ToolCallStreaming};
#[doc(no_inline)]
pub use advisor_core::{
    Effect, Leniency, Progress, Tool, ToolDefinition, ToolError, ToolInvocation, ToolOutput, ToolSet,
};
#[cfg(feature = "typed-tools")]
#[doc(inline)]
pub use advisor_macros::tool;
pub use execution::{ParallelTools, ReadyCall, ToolBatch, ToolEvents, ToolExecution};
pub use fn_tool::{ClientSideTool, FnTool};
pub use hooks::{LoopEnd, LoopHooks, LoopOutcome};
pub use limits::{OnLimit, ToolLimits};
pub use policy::{ArgumentTest, CallDecision, PolicyAction, ToolPolicy, ToolRule};
#[cfg(feature = "typed-tools")]
#[doc(no_inline)]
pub use schemars::{self, JsonSchema};
#[cfg(feature = "typed-tools")]
pub use typed_tool::schema_for;

/// Used by the code that [`tool`] generates. It may change in any version.
#[cfg(feature = "typed-tools")]
#[doc(hidden)]
pub mod __private {
    pub use crate::typed_tool::{
        AnyResult, ConvertedError, ConvertedResult, DisplayedError, ErrorWithSources, HasSchema, Kind,
        NoError, needs_schema,
    };
    pub use schemars;
    pub use serde;
}
