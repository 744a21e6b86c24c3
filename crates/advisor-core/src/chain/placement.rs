//! `Placement`, `Phase`, `PhaseOrder`, `AdvisorRole` and `MemorySide`: the position and role of an advisor.

use std::fmt;

use crate::AdvisorChain;

/// Position and role of an advisor in the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Placement {
    /// The phase in which it runs.
    pub phase: Phase,
    /// Its special role, if any.
    pub role: AdvisorRole,
    /// The side of memory on which it must be, in a chain with memory.
    pub side: MemorySide,
    /// Its place among the advisors of its phase.
    pub order: PhaseOrder,
}

/// The place of an advisor among those of its phase. Ordered outermost first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum PhaseOrder {
    /// The advisor added first is outermost.
    #[default]
    AsAdded,
    /// Inside all others of [`Phase::ModelCall`], whenever it is added; any other phase is an error. Several keep the
    /// order in which they are added.
    BesideModel,
}

/// The side of memory on which an advisor must be. Building a chain with it on the other side fails.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums, reason = "a memory has two sides")]
pub enum MemorySide {
    /// Either side.
    #[default]
    Any,
    /// Between memory and the model, so that its changes to an answer are remembered as they were shown. If the
    /// chain has a tool loop, also inside the loop, since the loop reports each answer to memory. A place in
    /// [`Phase::ModelCall`] always is.
    Inside,
    /// Between the caller and memory, so that its changes to a request are stored.
    Outside,
}

/// The frequency of an advisor's runs, and thereby its distance from the model. Ordered outermost first.
///
/// Inside a phase, the advisor added first is outermost, except for [`PhaseOrder::BesideModel`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(clippy::exhaustive_enums, reason = "the four phases are the shape of every chain")]
pub enum Phase {
    /// Once per turn, outside the tool loop.
    #[default]
    Turn,
    /// The tool loop itself; at most one advisor.
    Loop,
    /// Once per round, inside the tool loop.
    Round,
    /// Once per physical call of the model: retry, rate limit, cache.
    ModelCall,
}

/// The component that sends the messages of a running turn again in each round of its tool loop.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum History {
    /// The memory, if one is inside the loop, else the loop.
    #[default]
    Auto,
    /// The loop.
    InLoop,
    /// The memory inside the loop.
    InMemory,
}

impl History {
    /// Checks whether the loop sends the messages. `inside` is the rest of the chain inside the loop.
    #[must_use]
    pub fn is_in_loop(self, inside: &AdvisorChain) -> bool {
        match self {
            Self::Auto => !inside.contains(|role| role == AdvisorRole::Memory),
            Self::InLoop => true,
            Self::InMemory => false,
        }
    }
}

/// The advisor's special role in a chain, if it has one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AdvisorRole {
    /// No special role.
    #[default]
    General,
    /// Runs tools and calls the model again; at most one, in [`Phase::Loop`].
    ToolLoop {
        /// The component that sends the messages of the turn again in each round.
        history: History,
    },
    /// Adds context that is sent and never stored, once per turn; see [`context_fn`](crate::context_fn).
    Context,
    /// Remembers the conversation; at most one, in [`Phase::Turn`] or [`Phase::Round`].
    Memory,
    /// Reads tool calls in the text of the model; at most one, in [`Phase::ModelCall`].
    TextCalls,
}

impl Placement {
    /// Creates a placement in this phase, without a special role.
    #[must_use]
    pub fn new(phase: Phase) -> Self {
        Self { phase, role: AdvisorRole::General, side: MemorySide::Any, order: PhaseOrder::AsAdded }
    }

    /// Creates a placement directly beside the model, inside all other advisors.
    ///
    /// It is for advisors that translate between the form of a model and that of the chain, and for those that count
    /// its calls.
    #[must_use]
    pub fn beside_model() -> Self {
        Self { order: PhaseOrder::BesideModel, ..Self::new(Phase::ModelCall) }
    }

    /// Requires a place inside memory: for advisors that change answers.
    #[must_use]
    pub fn inside_memory(self) -> Self {
        Self { side: MemorySide::Inside, ..self }
    }

    /// Requires a place outside memory: for advisors that change the user's messages before they are stored.
    #[must_use]
    pub fn outside_memory(self) -> Self {
        Self { side: MemorySide::Outside, ..self }
    }

    /// Sets the role.
    #[must_use]
    pub fn with_role(self, role: AdvisorRole) -> Self {
        Self { role, ..self }
    }
}

impl Default for Placement {
    fn default() -> Self {
        Self::new(Phase::Turn)
    }
}

impl AdvisorRole {
    /// Checks whether this is the tool loop.
    #[must_use]
    pub fn is_tool_loop(self) -> bool {
        matches!(self, Self::ToolLoop { .. })
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Turn => "turn",
            Self::Loop => "loop",
            Self::Round => "round",
            Self::ModelCall => "model call",
        })
    }
}
