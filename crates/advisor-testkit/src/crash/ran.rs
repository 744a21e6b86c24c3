use std::fmt;

use advisor_core::{ConversationKey, TurnId};
use conversation_store::{Entry, NewEntry};

use super::{Happened, Mishap, Over, Place, Scenario, Strike};

/// A case that has run: turns of one conversation with strikes, and a last one without.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Ran {
    /// The scenario's name.
    pub scenario: &'static str,
    /// The conversation.
    pub conversation: ConversationKey,
    /// The turns, the last one included.
    pub turns: Vec<TurnRan>,
    /// The conversation's log at the end.
    pub log: Vec<Entry>,
    /// The log of another conversation, in a separate process, that has only the last turn.
    pub alone: Vec<Entry>,
}

/// One turn of a [`Ran`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TurnRan {
    /// The turn.
    pub id: TurnId,
    /// The strikes of the turn.
    pub strikes: Vec<Strike>,
    /// The points that the turn passed.
    pub places: Vec<Place>,
    /// The end of the turn, for its reader.
    pub over: Over,
    /// The events from its beginning to that of the next turn.
    pub happened: Vec<Happened>,
    /// The conversation's log right after it.
    pub log: Vec<Entry>,
}

impl Ran {
    /// Creates a case without turns.
    pub(super) fn of(scenario: Scenario, conversation: ConversationKey) -> Self {
        let scenario = scenario.name();
        Self { scenario, conversation, turns: Vec::new(), log: Vec::new(), alone: Vec::new() }
    }

    /// Returns all events, in order.
    pub fn happened(&self) -> impl Iterator<Item = &Happened> {
        self.turns.iter().flat_map(|turn| &turn.happened)
    }

    /// Returns the entries that were appended by the end of the turn at `place`, in order.
    pub(super) fn appended_until(&self, place: usize) -> impl Iterator<Item = &NewEntry> {
        let turns = self.turns.iter().take(place.saturating_add(1));
        turns.flat_map(|turn| &turn.happened).flat_map(appended)
    }

    /// Checks whether the process was killed in the turn at `place` or in a later one.
    pub(super) fn is_killed_from(&self, place: usize) -> bool {
        self.turns.iter().skip(place).any(|turn| turn.over == Over::Killed)
    }

    /// Checks whether every strike happened.
    #[must_use]
    pub fn all_struck(&self) -> bool {
        self.turns.iter().all(TurnRan::all_struck)
    }
}

impl TurnRan {
    /// Checks whether every strike happened.
    pub(super) fn all_struck(&self) -> bool {
        let struck = self.happened.iter().filter(|happened| matches!(happened, Happened::Struck { .. }));
        struck.count() == self.strikes.len()
    }

    /// Returns the first mishap that cancelled the turn. Only the first one has an effect.
    pub(super) fn first_cancelled(&self) -> Option<Mishap> {
        self.struck_by().find(|mishap| matches!(mishap, Mishap::Cancel(_)))
    }

    /// Returns the mishaps that happened to the turn.
    pub(super) fn struck_by(&self) -> impl Iterator<Item = Mishap> {
        self.happened.iter().filter_map(|happened| match happened {
            Happened::Struck { mishap, .. } => Some(*mishap),
            _ => None,
        })
    }

    /// Returns the turn's entries in a log.
    pub(super) fn entries<'a>(&'a self, log: &'a [Entry]) -> impl DoubleEndedIterator<Item = &'a Entry> {
        log.iter().filter(|entry| entry.turn == self.id)
    }
}

/// Returns the entries that an event appended; none if it is another event.
pub(super) fn appended(happened: &Happened) -> &[NewEntry] {
    match happened {
        Happened::Appended { entries, .. } => entries,
        _ => &[],
    }
}

/// Writes the timeline.
impl fmt::Display for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}:", self.scenario)?;
        for turn in &self.turns {
            writeln!(f, "  struck {:?}", turn.strikes)?;
            for happened in &turn.happened {
                writeln!(f, "    {happened}")?;
            }
        }
        write!(f, "  log:")?;
        for entry in &self.log {
            write!(f, " {}", super::words::of_entry(&entry.kind))?;
        }
        writeln!(f)
    }
}
