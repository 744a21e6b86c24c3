//! `CaseRun` and `TurnRun`: a finished case with its events and logs.

use std::fmt;

use advisor_core::{ConversationKey, TurnId};
use conversation_store::{Entry, NewEntry};

use super::{AwaitPoint, Event, Fault, Injection, Outcome, Scenario};

/// A case that has run: turns of one conversation with injections, and a last turn without any.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CaseRun {
    /// The scenario's name.
    pub scenario: &'static str,
    /// The conversation.
    pub conversation: ConversationKey,
    /// The turns, the last one included.
    pub turns: Vec<TurnRun>,
    /// The conversation's log at the end.
    pub log: Vec<Entry>,
    /// The log of another conversation, in a separate process, that has only the last turn.
    pub alone: Vec<Entry>,
}

/// One turn of a [`CaseRun`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TurnRun {
    /// The turn.
    pub id: TurnId,
    /// The injections of the turn.
    pub injections: Vec<Injection>,
    /// The points that the turn passed.
    pub await_points: Vec<AwaitPoint>,
    /// The end of the turn, for its reader.
    pub outcome: Outcome,
    /// The events from its beginning to that of the next turn.
    pub events: Vec<Event>,
    /// The conversation's log right after it.
    pub log: Vec<Entry>,
}

impl CaseRun {
    /// Creates a case without turns.
    pub(super) fn new(scenario: Scenario, conversation: ConversationKey) -> Self {
        let scenario = scenario.name();
        Self { scenario, conversation, turns: Vec::new(), log: Vec::new(), alone: Vec::new() }
    }

    /// Returns all events, in order.
    pub fn events(&self) -> impl Iterator<Item = &Event> {
        self.turns.iter().flat_map(|turn| &turn.events)
    }

    /// Returns the entries that were appended by the end of the turn at `place`, in order.
    pub(super) fn appended_until(&self, place: usize) -> impl Iterator<Item = &NewEntry> {
        let turns = self.turns.iter().take(place.saturating_add(1));
        turns.flat_map(|turn| &turn.events).flat_map(appended)
    }

    /// Checks whether the process was killed in the turn at `place` or in a later one.
    pub(super) fn is_killed_from(&self, place: usize) -> bool {
        self.turns.iter().skip(place).any(|turn| turn.outcome == Outcome::Killed)
    }

    /// Checks whether every fault was injected.
    #[must_use]
    pub fn all_injected(&self) -> bool {
        self.turns.iter().all(|turn| turn.injected().count() == turn.injections.len())
    }
}

impl TurnRun {
    /// Returns the first fault that cancelled the turn. Only the first one has an effect.
    pub(super) fn first_cancelled(&self) -> Option<Fault> {
        self.injected().find(|fault| matches!(fault, Fault::Cancel(_)))
    }

    /// Returns the faults that were injected into the turn.
    pub(super) fn injected(&self) -> impl Iterator<Item = Fault> {
        self.events.iter().filter_map(|event| match event {
            Event::Injected { fault, .. } => Some(*fault),
            _ => None,
        })
    }

    /// Returns the turn's entries in a log.
    pub(super) fn entries<'a>(&'a self, log: &'a [Entry]) -> impl DoubleEndedIterator<Item = &'a Entry> {
        log.iter().filter(|entry| entry.turn == self.id)
    }
}

/// Returns the entries that an event appended; none if it is another event.
pub(super) fn appended(event: &Event) -> &[NewEntry] {
    match event {
        Event::Appended { entries, .. } => entries,
        _ => &[],
    }
}

/// Writes the timeline.
impl fmt::Display for CaseRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}:", self.scenario)?;
        for turn in &self.turns {
            writeln!(f, "  injected {:?}", turn.injections)?;
            for event in &turn.events {
                writeln!(f, "    {event}")?;
            }
        }
        write!(f, "  log:")?;
        for entry in &self.log {
            write!(f, " {}", entry.kind.label())?;
        }
        writeln!(f)
    }
}
