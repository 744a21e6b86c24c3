use std::fmt;

/// Where an advisor stands in the chain and what it is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Placement {
    /// How often it runs.
    pub phase: Phase,
    /// What the chain must know it for.
    pub role: AdvisorRole,
    /// On which side of memory it has to stand, where there is one.
    pub side: MemorySide,
}

/// On which side of memory an advisor has to stand. The chain is refused when it is built otherwise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums, reason = "a memory has two sides")]
pub enum MemorySide {
    /// On either.
    #[default]
    Any,
    /// Between memory and the model, and inside the tool loop if there is one, since the loop tells memory of each answer:
    /// what it changes of an answer is remembered as it was shown. In [`Phase::ModelCall`] it always is.
    Inside,
    /// Between the caller and memory: what it changes of a request is remembered as it was changed.
    Outside,
}

/// How often an advisor runs; also its distance from the model. Outermost first.
///
/// Inside a phase, the advisor added first is outermost.
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
    /// Once per physical attempt to ask the model: retry, rate limit, cache.
    ModelCall,
}

/// Who sends the messages of a running turn again in each round of its tool loop.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum History {
    /// The memory, if one stands inside the loop, else the loop.
    #[default]
    Auto,
    /// The loop.
    InLoop,
    /// The memory inside the loop.
    InMemory,
}

impl History {
    /// Returns whether the loop sends the messages, where a memory inside it is present or not.
    #[must_use]
    pub fn is_in_loop(self, memory_inside: bool) -> bool {
        match self {
            Self::Auto => !memory_inside,
            Self::InLoop => true,
            Self::InMemory => false,
        }
    }
}

/// The advisor's special role in a chain, if it has one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AdvisorRole {
    /// Nothing in particular.
    #[default]
    General,
    /// It runs tools and asks again; at most one, in [`Phase::Loop`].
    ToolLoop {
        /// Who sends the messages of the turn again in each round.
        history: History,
    },
    /// It adds context that is sent and never stored, once per turn; see [`context_fn`](crate::context_fn).
    Context,
    /// It remembers the conversation; at most one, in [`Phase::Turn`] or [`Phase::Round`].
    Memory,
}

impl Placement {
    /// An advisor of no particular role in this phase.
    #[must_use]
    pub fn new(phase: Phase) -> Self {
        Self { phase, role: AdvisorRole::General, side: MemorySide::Any }
    }

    /// The same place, which has to be inside memory: for advisors that change answers.
    #[must_use]
    pub fn inside_memory(self) -> Self {
        Self { side: MemorySide::Inside, ..self }
    }

    /// The same place, which has to be outside memory: for advisors that change what the user said before it is stored.
    #[must_use]
    pub fn outside_memory(self) -> Self {
        Self { side: MemorySide::Outside, ..self }
    }

    /// The same place with a role.
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
    /// Whether this is the tool loop.
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
