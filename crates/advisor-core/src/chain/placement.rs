//! `Phase` and `Placement`: where an advisor stands in the chain; `Plan`: the resolved chain as a readable table.

use std::cmp::Ordering;
use std::fmt;

use crate::chain::Link;

/// The frequency of an advisor's runs, and thereby its distance from the model. Ordered outermost first.
///
/// Inside a phase, the advisor added first is outermost, except [beside the model](AdvisorRole::BesideModel).
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

/// Position of an advisor in the chain, and what it requires there. By default it is in [`Phase::Turn`], and requires
/// nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "advisors write it")]
pub struct Placement {
    /// The phase in which it runs.
    pub phase: Phase,
    /// What it is in a chain, or where it must be.
    pub role: AdvisorRole,
}

/// What an advisor is in a chain, or where it must be. A chain that contradicts it cannot be built.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AdvisorRole {
    /// Anything else: it may be anywhere.
    #[default]
    General,
    /// It changes answers, and must be between memory and the model, so that its changes are remembered as they were
    /// shown.
    ///
    /// If the chain has a tool loop, the place must also be inside the loop, since the loop reports each answer to
    /// memory. A place in [`Phase::ModelCall`] always is.
    InsideMemory,
    /// It changes the user's messages before they are stored, and must be between the caller and memory.
    OutsideMemory,
    /// It must be directly beside the model, inside all others of [`Phase::ModelCall`], whenever it is added. Any other phase
    /// is an error. Several keep the order in which they are added.
    ///
    /// It translates between the form of a model and that of the chain, or counts the calls of the model.
    BesideModel,
    /// It remembers the conversation. A chain has at most one memory, in [`Phase::Round`] or [`Phase::Turn`].
    Memory,
    /// It runs tools and calls the model again. A chain has at most one tool loop, in [`Phase::Loop`].
    ToolLoop(LoopHistory),
}

/// The component that sends the messages of a running turn again in each round of its tool loop.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "there is no third one")]
pub enum LoopHistory {
    /// The memory, if one is inside the loop, else the loop.
    #[default]
    Auto,
    /// The loop.
    InLoop,
    /// The memory.
    InMemory,
}

impl Placement {
    /// Creates a placement in this phase.
    #[must_use]
    pub fn new(phase: Phase) -> Self {
        Self { phase, role: AdvisorRole::General }
    }
}

pub(super) fn is_memory(placement: &Placement) -> bool {
    placement.role == AdvisorRole::Memory
}

pub(super) fn is_tool_loop(placement: &Placement) -> bool {
    matches!(placement.role, AdvisorRole::ToolLoop(_))
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
pub(crate) struct Plan(Vec<(String, Placement)>);

impl Plan {
    pub(super) fn new(links: &[Link]) -> Self {
        Self(links.iter().map(|link| (link.advisor.name().to_owned(), link.placement)).collect())
    }

    fn position(&self, is: fn(&Placement) -> bool) -> Option<usize> {
        self.0.iter().position(|(_, placement)| is(placement))
    }

    /// Returns the phase of memory, if the chain has one.
    fn memory(&self) -> Option<Phase> {
        let (_, memory) = self.0.get(self.position(is_memory)?)?;
        Some(memory.phase)
    }

    /// Returns whether the advisor at this place is outside memory (`Less`), inside it, or neither.
    fn side(&self, place: usize) -> Ordering {
        self.position(is_memory).map_or(Ordering::Equal, |memory| place.cmp(&memory))
    }

    fn sees_rounds(&self, placement: &Placement) -> bool {
        self.position(is_tool_loop).is_some() && placement.phase > Phase::Loop
    }

    /// Returns the names of the advisors on this side of memory, among the first `n`, without the tool loop.
    fn listed(&self, n: usize, side: Ordering) -> String {
        let listed = self
            .0
            .iter()
            .take(n)
            .enumerate()
            .filter(|(place, (_, placement))| self.side(*place) == side && !is_tool_loop(placement));
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
                AdvisorRole::Memory => "remembers the conversation",
                AdvisorRole::ToolLoop(_) if self.memory() == Some(Phase::Round) => {
                    "runs tools; memory inside it sends the messages"
                }
                AdvisorRole::ToolLoop(_) => "runs tools; sends the turn's messages again",
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
        let has_loop = self.position(is_tool_loop).is_some();
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
        let (all, tool_loop) = (self.0.len(), self.position(is_tool_loop));
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
