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
    /// How often it runs.
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

    /// Returns the advisors whose changes and additions memory cannot tell from the caller's messages.
    fn changes_outside_memory(&self) -> Vec<String> {
        let outside =
            |entry: &&PlanEntry| entry.side == MemorySide::Outside && entry.role == AdvisorRole::General;
        let often = |entry: &PlanEntry| if entry.sees_rounds { " (in every round)" } else { "" };
        self.entries.iter().filter(outside).map(|entry| format!("{}{}", entry.name, often(entry))).collect()
    }

    fn has_loop(&self) -> bool {
        self.entries.iter().any(|entry| entry.role.is_tool_loop())
    }

    /// Returns the advisors inside memory but outside the loop: the loop reports its answers to memory before they
    /// see them.
    fn between_memory_and_loop(&self) -> Vec<&str> {
        let outside_loop =
            self.entries.iter().take_while(|entry| self.has_loop() && !entry.role.is_tool_loop());
        let between = outside_loop.filter(|entry| entry.side == MemorySide::Inside);
        between.filter(|entry| entry.role == AdvisorRole::General).map(|entry| entry.name.as_str()).collect()
    }

    /// Returns the advisors whose own answers memory does not see. They are outside both memory and the loop,
    /// which reports the answers inside it.
    fn outside_memory(&self) -> Vec<&str> {
        let tells = |entry: &&PlanEntry| entry.role == AdvisorRole::Memory || entry.role.is_tool_loop();
        let outside = self.entries.iter().take_while(|entry| !tells(entry));
        outside.filter(|entry| entry.role == AdvisorRole::General).map(|entry| entry.name.as_str()).collect()
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for entry in &self.entries {
            let rounds = if entry.sees_rounds { "every round" } else { "once per turn" };
            let role = match entry.role {
                AdvisorRole::Memory => "remembers the conversation",
                AdvisorRole::ToolLoop { .. } if self.loop_keeps_history() => {
                    "runs tools; sends the turn's messages again"
                }
                AdvisorRole::ToolLoop { .. } => "runs tools; memory inside it sends the messages",
                AdvisorRole::Context => "adds context: sent, never stored, found once per turn",
                AdvisorRole::General => "",
            };
            let side = match entry.side {
                MemorySide::Any => "",
                MemorySide::Inside => "inside memory",
                MemorySide::Outside => "outside memory",
            };
            let line = format!("{:<10}  {:<24}  {rounds:<13}  {side:<14}  {role}", entry.phase, entry.name);
            writeln!(f, "{}", line.trim_end())?;
        }
        writeln!(f, "{:<10}  the model", "")?;
        if !self.has_loop() {
            writeln!(f, "No advisor runs tools: calls of the model are handed to the caller.")?;
        }
        match self.memory() {
            None => writeln!(f, "Nothing is remembered after the turn."),
            Some(memory) if memory.phase == Phase::Round => {
                writeln!(f, "Each round is stored as it completes, before a tool of it runs.")
            }
            Some(_) => writeln!(f, "Each message is stored as the loop makes it final, before it goes on."),
        }?;
        let adds = self.changes_outside_memory();
        if !adds.is_empty() {
            writeln!(
                f,
                "Outside memory: {}. Messages that they add are stored, unless they are ephemeral or instructions; \
                 what they change of an answer is not remembered.",
                adds.join(", ")
            )?;
        }
        let between = self.between_memory_and_loop();
        if !between.is_empty() {
            writeln!(
                f,
                "Outside the loop, which tells memory of each answer: {}. What they change of an answer is not remembered.",
                between.join(", ")
            )?;
        }
        match (self.memory(), &*self.outside_memory()) {
            (None, _) | (_, []) => Ok(()),
            (_, outside) => writeln!(
                f,
                "An answer that one of these gives by itself is made outside memory and not remembered: {}.",
                outside.join(", ")
            ),
        }
    }
}
