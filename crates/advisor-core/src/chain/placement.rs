//! `Phase` and `Placement`: where an advisor stands in the chain; `Plan`: the resolved chain as a readable table.

use std::cmp::Ordering;
use std::fmt;

use crate::AdvisorChain;
use crate::chain::Link;

/// The frequency of an advisor's runs, and thereby its distance from the model. Ordered outermost first.
///
/// Inside a phase, the advisor added first is outermost, except [beside the model](Placement::beside_model).
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

/// Position of an advisor in the chain, and what it requires there. By default it is in [`Phase::Turn`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Placement {
    /// The phase in which it runs.
    pub phase: Phase,
    pub(super) role: Role,
}

/// What an advisor is in a chain, or where it must be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Role {
    #[default]
    General,
    InsideMemory,
    OutsideMemory,
    BesideModel,
    Memory,
    ToolLoop(History),
}

/// The component that sends the messages of a running turn again in each round of its tool loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum History {
    /// The memory, if one is inside the loop, else the loop.
    Auto,
    InLoop,
    InMemory,
}

impl Placement {
    /// Creates a placement in this phase.
    #[must_use]
    pub fn new(phase: Phase) -> Self {
        Self { phase, role: Role::General }
    }

    /// Creates a placement directly beside the model, inside all others of [`Phase::ModelCall`], whenever it is added. Any
    /// other phase is an error. Several keep the order in which they are added.
    ///
    /// It is for advisors that translate between the form of a model and that of the chain, and for those that count
    /// its calls.
    #[must_use]
    pub fn beside_model() -> Self {
        Self { phase: Phase::ModelCall, role: Role::BesideModel }
    }

    /// Creates the placement of an advisor that remembers the conversation, in [`Phase::Round`]. A chain has at most one,
    /// there or in [`Phase::Turn`].
    #[must_use]
    pub fn memory() -> Self {
        Self { phase: Phase::Round, role: Role::Memory }
    }

    /// Creates the placement of an advisor that runs tools and calls the model again. A chain has at most one, in
    /// [`Phase::Loop`].
    #[must_use]
    pub fn tool_loop() -> Self {
        Self { phase: Phase::Loop, role: Role::ToolLoop(History::Auto) }
    }

    /// Sets whether a tool loop itself sends the messages of the turn again in each round. By default it does so unless a
    /// memory is inside it. A chain with a memory that contradicts this cannot be built.
    #[must_use]
    pub fn with_history(self, in_loop: bool) -> Self {
        let history = if in_loop { History::InLoop } else { History::InMemory };
        Self { role: Role::ToolLoop(history), ..self }
    }

    /// Requires a place between memory and the model: for advisors that change answers, so that their changes are
    /// remembered as they were shown.
    ///
    /// If the chain has a tool loop, the place must also be inside the loop, since the loop reports each answer to
    /// memory. A place in [`Phase::ModelCall`] always is.
    #[must_use]
    pub fn inside_memory(self) -> Self {
        Self { role: Role::InsideMemory, ..self }
    }

    /// Requires a place between the caller and memory: for advisors that change the user's messages before they are
    /// stored.
    #[must_use]
    pub fn outside_memory(self) -> Self {
        Self { role: Role::OutsideMemory, ..self }
    }

    /// Checks whether it is that of a memory.
    #[must_use]
    pub fn is_memory(&self) -> bool {
        self.role == Role::Memory
    }

    /// Checks whether it is that of a tool loop.
    #[must_use]
    pub fn is_tool_loop(&self) -> bool {
        matches!(self.role, Role::ToolLoop(_))
    }

    /// Checks whether it [requires](Self::inside_memory) a place inside memory.
    #[must_use]
    pub fn is_inside_memory(&self) -> bool {
        self.role == Role::InsideMemory
    }

    /// Checks whether the tool loop of this placement sends the messages of the turn again in each round. `inside` is the
    /// rest of the chain inside the loop.
    #[must_use]
    pub fn keeps_history(&self, inside: &AdvisorChain) -> bool {
        match self.role {
            Role::ToolLoop(History::InLoop) => true,
            Role::ToolLoop(History::InMemory) => false,
            _ => !inside.has_memory(),
        }
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

/// Readable description of a chain. Its `Display` is a table and a few sentences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan(Vec<(String, Placement)>);

impl Plan {
    pub(super) fn new(links: &[Link]) -> Self {
        Self(links.iter().map(|link| (link.advisor.name().to_owned(), link.placement)).collect())
    }

    fn position(&self, is: fn(&Placement) -> bool) -> Option<usize> {
        self.0.iter().position(|(_, placement)| is(placement))
    }

    /// Returns the phase of memory, if the chain has one.
    fn memory(&self) -> Option<Phase> {
        let (_, memory) = self.0.get(self.position(Placement::is_memory)?)?;
        Some(memory.phase)
    }

    /// Returns whether the advisor at this place is outside memory (`Less`), inside it, or neither.
    fn side(&self, place: usize) -> Ordering {
        self.position(Placement::is_memory).map_or(Ordering::Equal, |memory| place.cmp(&memory))
    }

    fn sees_rounds(&self, placement: &Placement) -> bool {
        self.position(Placement::is_tool_loop).is_some() && placement.phase > Phase::Loop
    }

    /// Returns the names of the advisors on this side of memory, among the first `n`, without the tool loop.
    fn listed(&self, n: usize, side: Ordering) -> String {
        let listed = self
            .0
            .iter()
            .take(n)
            .enumerate()
            .filter(|(place, (_, placement))| self.side(*place) == side && !placement.is_tool_loop());
        let often = |placement| if self.sees_rounds(placement) { " (in every round)" } else { "" };
        listed
            .map(|(_, (name, placement))| format!("{name}{}", often(placement)))
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// Writes a line for each advisor, and one for the model.
    fn fmt_advisors(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (name, placement)) in self.0.iter().enumerate() {
            let often = match placement.phase {
                Phase::ModelCall => "each model call",
                _ if self.sees_rounds(placement) => "every round",
                _ => "once per turn",
            };
            let role = match placement.role {
                Role::Memory => "remembers the conversation",
                Role::ToolLoop(_) if self.memory() == Some(Phase::Round) => {
                    "runs tools; memory inside it sends the messages"
                }
                Role::ToolLoop(_) => "runs tools; sends the turn's messages again",
                _ => "",
            };
            let side = match self.side(place) {
                Ordering::Less => "outside memory",
                Ordering::Equal => "",
                Ordering::Greater => "inside memory",
            };
            let line = format!("{:<10}  {name:<24}  {often:<15}  {side:<14}  {role}", placement.phase);
            writeln!(f, "{}", line.trim_end())?;
        }
        writeln!(f, "{:<10}  the model", "")
    }

    /// Writes the component that runs the tools, and the steps at which messages are stored.
    fn fmt_storing(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has_loop = self.position(Placement::is_tool_loop).is_some();
        if !has_loop {
            writeln!(f, "No advisor runs tools: calls of the model are client-side: the caller runs them.")?;
        } else if self.memory().is_some() {
            writeln!(
                f,
                "An approved call runs before the first round, with the tool that the first request has beside the model."
            )?;
        }
        match self.memory() {
            None => writeln!(f, "Nothing is remembered after the turn."),
            Some(Phase::Round) => {
                writeln!(f, "Each round is stored as it completes, before a tool of it runs.")
            }
            Some(_) => {
                writeln!(f, "Each message is stored as the loop makes it final, before the loop continues.")
            }
        }
    }

    /// Writes which advisors' changes and answers are not stored.
    fn fmt_not_stored(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (all, tool_loop) = (self.0.len(), self.position(Placement::is_tool_loop));
        let changing = self.listed(all, Ordering::Less);
        if !changing.is_empty() {
            writeln!(
                f,
                "Outside memory: {changing}. Messages that they add are stored, unless they are ephemeral or instructions; \
                 their changes to an answer are not stored."
            )?;
        }
        // The loop reports its answers to memory before these advisors see them.
        let between = self.listed(tool_loop.unwrap_or_default(), Ordering::Greater);
        if !between.is_empty() {
            writeln!(
                f,
                "Outside the loop, which reports each answer to memory: {between}. Their changes to an answer are not stored."
            )?;
        }
        // The loop reports the answers inside it to memory, even where memory is further inside.
        let answering = self.listed(tool_loop.unwrap_or(all), Ordering::Less);
        if !answering.is_empty() {
            writeln!(
                f,
                "An answer that one of these gives by itself is made outside memory and not stored: {answering}."
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_advisors(f)?;
        self.fmt_storing(f)?;
        self.fmt_not_stored(f)
    }
}
