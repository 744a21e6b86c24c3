use std::fmt;

use advisor_core::{ConversationKey, TurnId};
use conversation_store::{Entry, NewEntry};

use super::{Happened, Mishap, Over, Place, Scenario, Strike};

/// A case that has run: some turns of one conversation that were struck, and a last one that was not.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Ran {
    /// What is struck, for people.
    pub scenario: &'static str,
    /// The conversation.
    pub conversation: ConversationKey,
    /// The turns, the last one included.
    pub turns: Vec<TurnRan>,
    /// The conversation's log at the end.
    pub log: Vec<Entry>,
    /// The log of another conversation, in a process of its own, that has only the last turn.
    pub alone: Vec<Entry>,
}

/// One turn of a [`Ran`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TurnRan {
    /// The turn.
    pub id: TurnId,
    /// What was to happen to it.
    pub strikes: Vec<Strike>,
    /// The points that it passed.
    pub places: Vec<Place>,
    /// How it was over for its reader.
    pub over: Over,
    /// What happened from its beginning until the next one's.
    pub happened: Vec<Happened>,
    /// The conversation's log right after it.
    pub log: Vec<Entry>,
}

impl Ran {
    /// A case of which nothing has run.
    pub(super) fn of(scenario: Scenario, conversation: ConversationKey) -> Self {
        let scenario = scenario.name();
        Self { scenario, conversation, turns: Vec::new(), log: Vec::new(), alone: Vec::new() }
    }

    /// Everything that happened, in order.
    pub fn happened(&self) -> impl Iterator<Item = &Happened> {
        self.turns.iter().flat_map(|turn| &turn.happened)
    }

    /// What was appended by the end of the turn at `place`, in order.
    pub(super) fn appended_until(&self, place: usize) -> impl Iterator<Item = &NewEntry> {
        let turns = self.turns.iter().take(place.saturating_add(1));
        turns.flat_map(|turn| &turn.happened).flat_map(appended)
    }

    /// Whether the process was killed in the turn at `place` or in a later one.
    pub(super) fn is_killed_from(&self, place: usize) -> bool {
        self.turns.iter().skip(place).any(|turn| turn.over == Over::Killed)
    }

    /// Whether all points at which something was to happen were reached.
    #[must_use]
    pub fn all_struck(&self) -> bool {
        self.turns.iter().all(TurnRan::all_struck)
    }
}

impl TurnRan {
    /// Whether all points at which something was to happen were reached.
    pub(super) fn all_struck(&self) -> bool {
        let struck = self.happened.iter().filter(|happened| matches!(happened, Happened::Struck { .. }));
        struck.count() == self.strikes.len()
    }

    /// How the turn was cancelled first, if it was: that is the one that counts.
    pub(super) fn first_cancelled(&self) -> Option<Mishap> {
        self.struck_by().find(|mishap| matches!(mishap, Mishap::Cancel(_)))
    }

    /// What happened to it.
    pub(super) fn struck_by(&self) -> impl Iterator<Item = Mishap> {
        self.happened.iter().filter_map(|happened| match happened {
            Happened::Struck { mishap, .. } => Some(*mishap),
            _ => None,
        })
    }

    /// Its entries in a log.
    pub(super) fn entries<'a>(&'a self, log: &'a [Entry]) -> impl DoubleEndedIterator<Item = &'a Entry> {
        log.iter().filter(|entry| entry.turn == self.id)
    }
}

/// What an event appended; nothing if it is another event.
pub(super) fn appended(happened: &Happened) -> &[NewEntry] {
    match happened {
        Happened::Appended { entries, .. } => entries,
        _ => &[],
    }
}

/// The timeline.
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
