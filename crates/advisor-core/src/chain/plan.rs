//! `Plan` and `PlanEntry`: the resolved chain as a readable table, made by `explain`.

use std::cmp::Ordering;
use std::fmt;

use crate::chain::Link;
use crate::{AdvisorRole, MemorySide, Phase};

/// Readable description of a chain. Its `Display` is a table and a few sentences.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Plan {
    /// The advisors, outermost first. The model comes after the last.
    pub entries: Vec<PlanEntry>,
}

/// One advisor of a [`Plan`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlanEntry {
    /// The advisor's name.
    pub name: String,
    /// The phase in which it runs.
    pub phase: Phase,
    /// Its special role, if any.
    pub role: AdvisorRole,
    /// Whether it runs in every tool round, not only once in the turn.
    pub sees_rounds: bool,
    /// Its side of memory; [`MemorySide::Any`] for memory itself and in a chain without memory.
    pub side: MemorySide,
}

impl Plan {
    pub(crate) fn new(links: &[Link]) -> Self {
        let looped = links.iter().any(|link| link.placement.role.is_tool_loop());
        let memory = links.iter().position(|link| link.placement.role == AdvisorRole::Memory);
        let side = |place: usize| match memory.map(|memory| place.cmp(&memory)) {
            None | Some(Ordering::Equal) => MemorySide::Any,
            Some(Ordering::Less) => MemorySide::Outside,
            Some(Ordering::Greater) => MemorySide::Inside,
        };
        let entries = links
            .iter()
            .enumerate()
            .map(|(place, link)| PlanEntry {
                name: String::from(link.advisor.name()),
                phase: link.placement.phase,
                role: link.placement.role,
                sees_rounds: looped && link.placement.phase > Phase::Loop,
                side: side(place),
            })
            .collect();
        Self { entries }
    }

    /// Returns the entry of memory, if the chain has one.
    #[must_use]
    pub fn memory(&self) -> Option<&PlanEntry> {
        self.entries.iter().find(|entry| entry.role == AdvisorRole::Memory)
    }

    /// Checks whether the tool loop, rather than memory, sends the turn's own messages again each round.
    #[must_use]
    pub fn loop_keeps_history(&self) -> bool {
        self.memory().is_none_or(|memory| memory.phase != Phase::Round)
    }

    /// Returns the position of the tool loop, if the chain has one.
    fn tool_loop(&self) -> Option<usize> {
        self.entries.iter().position(|entry| entry.role.is_tool_loop())
    }

    /// Returns the names of the advisors without a special role on this side of memory, among the first `n`.
    fn names(&self, n: usize, side: MemorySide) -> String {
        let is_listed = |entry: &&PlanEntry| entry.side == side && entry.role == AdvisorRole::General;
        let often = |entry: &PlanEntry| if entry.sees_rounds { " (in every round)" } else { "" };
        let listed = self.entries.iter().take(n).filter(is_listed);
        listed.map(|entry| format!("{}{}", entry.name, often(entry))).collect::<Vec<_>>().join(", ")
    }
}

/// The sections of the text of a plan.
impl Plan {
    /// Writes a line for each advisor, and one for the model.
    fn fmt_entries(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for entry in &self.entries {
            let often = match entry.phase {
                Phase::ModelCall => "each model call",
                _ if entry.sees_rounds => "every round",
                _ => "once per turn",
            };
            let role = match entry.role {
                AdvisorRole::Memory => "remembers the conversation",
                AdvisorRole::ToolLoop { .. } if self.loop_keeps_history() => {
                    "runs tools; sends the turn's messages again"
                }
                AdvisorRole::ToolLoop { .. } => "runs tools; memory inside it sends the messages",
                AdvisorRole::TextCalls => "reads tool calls in the text",
                AdvisorRole::Context => "adds context: sent, never stored, found once per turn",
                AdvisorRole::General => "",
            };
            let side = match entry.side {
                MemorySide::Any => "",
                MemorySide::Inside => "inside memory",
                MemorySide::Outside => "outside memory",
            };
            let line = format!("{:<10}  {:<24}  {often:<15}  {side:<14}  {role}", entry.phase, entry.name);
            writeln!(f, "{}", line.trim_end())?;
        }
        writeln!(f, "{:<10}  the model", "")
    }

    /// Writes the component that runs the tools, and the steps at which messages are stored.
    fn fmt_storing(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.tool_loop().is_none() {
            writeln!(f, "No advisor runs tools: calls of the model are client-side: the caller runs them.")?;
        }
        if self.memory().is_some() && self.tool_loop().is_some() {
            writeln!(
                f,
                "An approved call runs before the first round, with the tool that the first request has beside the model."
            )?;
        }
        match self.memory() {
            None => writeln!(f, "Nothing is remembered after the turn."),
            Some(memory) if memory.phase == Phase::Round => {
                writeln!(f, "Each round is stored as it completes, before a tool of it runs.")
            }
            Some(_) => {
                writeln!(f, "Each message is stored as the loop makes it final, before the loop continues.")
            }
        }
    }

    /// Writes which advisors' changes and answers are not stored.
    fn fmt_not_stored(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.entries.len();
        let changing = self.names(all, MemorySide::Outside);
        if !changing.is_empty() {
            writeln!(
                f,
                "Outside memory: {changing}. Messages that they add are stored, unless they are ephemeral or instructions; \
                 their changes to an answer are not stored."
            )?;
        }
        // The loop reports its answers to memory before these advisors see them.
        let between = self.names(self.tool_loop().unwrap_or_default(), MemorySide::Inside);
        if !between.is_empty() {
            writeln!(
                f,
                "Outside the loop, which reports each answer to memory: {between}. Their changes to an answer are not stored."
            )?;
        }
        // The loop reports the answers inside it to memory, even where memory is further inside.
        let answering = self.names(self.tool_loop().unwrap_or(all), MemorySide::Outside);
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
        self.fmt_entries(f)?;
        self.fmt_storing(f)?;
        self.fmt_not_stored(f)
    }
}
