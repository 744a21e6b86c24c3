//! Collects the reports of children about a conversation, and checks its log against them.

use std::collections::HashSet;

use advisor_chain::memory::repair;
use advisor_tests::prelude::*;

use crate::processes::chain::ONCE;
use crate::processes::child::Report;

/// The reports about one conversation.
#[derive(Debug, Default)]
pub(crate) struct Witness {
    /// By their numbers.
    acknowledged: BTreeMap<u64, Entry>,
    shown: Vec<Shown>,
    /// The answers that readers were given, by their turns.
    completed: BTreeMap<String, String>,
    /// Turns that were closed when their readers had gone, and the processes of those.
    closed: BTreeSet<(String, usize)>,
    /// Turns that continued without their readers, and the processes of those.
    finished: BTreeSet<(String, usize)>,
}

/// The text of a round that a reader was shown.
#[derive(Debug)]
struct Shown {
    process: usize,
    turn: String,
    round: u32,
    text: String,
    /// Whether the reader knows that the round has ended.
    ended: bool,
}

impl Witness {
    /// Adds a report of a process. Checks that the messages of a request are valid.
    pub(crate) fn hear(&mut self, process: usize, report: Report) {
        match report {
            Report::Acknowledged(entries) => {
                for entry in entries {
                    if let Some(other) = self.acknowledged.get(&entry.seq) {
                        assert_eq!(*other, entry, "two entries with one number were acknowledged");
                    }
                    self.acknowledged.insert(entry.seq, entry);
                }
            }
            Report::Asked(messages) => check_prompt(&messages),
            Report::Shown { turn, round, text } => self.shown(process, turn, round).text.push_str(&text),
            Report::RoundEnded { turn, round } => self.shown(process, turn, round).ended = true,
            Report::Completed { turn, text } => {
                let rounds = self.shown.iter_mut().filter(|shown| shown.process == process);
                rounds.filter(|shown| shown.turn == turn).for_each(|shown| shown.ended = true);
                let before = self.completed.insert(turn, text.clone());
                assert!(before.is_none_or(|before| before == text), "a turn has two answers");
            }
            Report::Closed { turn } => _ = self.closed.insert((turn, process)),
            Report::Finished { turn } => _ = self.finished.insert((turn, process)),
            Report::Failed { turn, kind } => panic!("turn {turn} fails: {kind}"),
            Report::Ready | Report::Held | Report::At { .. } | Report::Over { .. } => {}
        }
    }

    /// Returns the text of this round that the reader of this turn received in this process.
    fn shown(&mut self, process: usize, turn: String, round: u32) -> &mut Shown {
        let is_it = |shown: &Shown| (shown.process, shown.round) == (process, round) && shown.turn == turn;
        let at = self.shown.iter().position(is_it).unwrap_or_else(|| {
            self.shown.push(Shown { process, turn, round, text: String::new(), ended: false });
            self.shown.len() - 1
        });
        &mut self.shown[at]
    }

    /// Returns the least number of entries in the log.
    pub(crate) fn acknowledged(&self) -> usize {
        self.acknowledged.keys().next_back().map_or(0, |seq| usize::try_from(*seq).unwrap())
    }

    /// Returns the number of turns that were reported as complete.
    pub(crate) fn completed(&self) -> usize {
        self.completed.len()
    }

    /// Returns whether the reader of this turn received an answer.
    pub(crate) fn has_completed(&self, turn: &str) -> bool {
        self.completed.contains_key(turn)
    }

    /// Checks that the log agrees with all reports, and that the starts in the file agree with the log.
    pub(crate) fn check(&self, log: &[Entry], starts: &[(String, String)]) {
        assert!(log.iter().map(|entry| entry.seq).eq((1..).take(log.len())), "the log has gaps");
        for (seq, entry) in &self.acknowledged {
            let stored = log.get(usize::try_from(seq - 1).unwrap());
            assert_eq!(stored, Some(entry), "entry {seq} was acknowledged");
        }
        check_turns(log);
        assert_eq!(validate_transcript(&repair(log)), [], "the log gives no valid transcript");
        self.shown.iter().for_each(|shown| shown.check(log));
        for (turn, text) in &self.completed {
            let end = ends(log, turn).next_back();
            assert!(matches!(end, Some(TurnEnd::Completed(_))), "{turn} is complete, and its end is {end:?}");
            assert_eq!(answers(log, turn).next_back().as_ref(), Some(text), "the answer of {turn}");
        }
        self.check_closed(log);
        self.check_finished(log);
        self.check_partials(log);
        check_starts(log, starts);
    }

    /// Checks that a closed turn stores exactly the text of its last round that its reader received.
    fn check_closed(&self, log: &[Entry]) {
        for (turn, process) in &self.closed {
            let shown = self.last_shown(turn, *process);
            let is_it = |end: &TurnEnd| matches!(end, TurnEnd::Interrupted { partial } if *partial == shown);
            let all: Vec<_> = ends(log, turn).collect();
            assert!(
                all.iter().copied().any(is_it),
                "{turn} was closed after {shown:?}, and its ends are {all:?}"
            );
        }
    }

    /// Checks that a turn which continued without its reader is complete, and that an answer begins with the
    /// shown text.
    fn check_finished(&self, log: &[Entry]) {
        for (turn, process) in &self.finished {
            let shown = self.last_shown(turn, *process);
            let end = ends(log, turn).next_back();
            assert!(matches!(end, Some(TurnEnd::Completed(_))), "{turn} went on, and its end is {end:?}");
            let is_it = |answer: String| answer.starts_with(shown);
            assert!(answers(log, turn).any(is_it), "{turn} went on, and no answer begins with {shown:?}");
        }
    }

    /// Returns the last text that the reader of this turn received in this process.
    fn last_shown(&self, turn: &str, process: usize) -> &str {
        let mut shown = self.shown.iter().rev();
        shown.find(|shown| shown.turn == turn && shown.process == process).map_or("", |shown| &shown.text)
    }

    /// Checks that the stored partial text of an interrupted turn equals the shown text.
    fn check_partials(&self, log: &[Entry]) {
        for entry in log {
            let EntryKind::TurnEnded(TurnEnd::Interrupted { partial } | TurnEnd::Failed { partial }) =
                &entry.kind
            else {
                continue;
            };
            let mut shown = self.shown.iter().filter(|shown| shown.turn == entry.turn.as_str());
            let is_known = partial.is_empty() || shown.any(|shown| shown.text == partial.as_str());
            assert!(is_known, "{partial:?} of {} was never shown so", entry.turn);
        }
    }
}

impl Shown {
    /// Checks that shown text never differs from the stored answer, and that an ended round is stored.
    fn check(&self, log: &[Entry]) {
        let mut stored = answers(log, &self.turn);
        if self.ended {
            assert!(stored.any(|answer| answer == self.text), "not stored as it was shown: {self:?}");
            return;
        }
        // Every answer begins with words of its own, up to a comma.
        let begin = self.text.split_inclusive(',').next().unwrap();
        let other = stored.find(|answer| answer.starts_with(begin) && !answer.starts_with(&self.text));
        assert_eq!(other.filter(|_| !begin.is_empty()), None, "what is stored differs from {self:?}");
    }
}

/// The texts of a turn's answers.
fn answers<'a>(log: &'a [Entry], turn: &'a str) -> impl DoubleEndedIterator<Item = String> + 'a {
    let messages = log.iter().filter(move |entry| entry.turn.as_str() == turn);
    let messages = messages.filter_map(|entry| entry.kind.as_message());
    messages.filter(|message| message.role() == Role::Assistant).map(Message::text)
}

fn ends<'a>(log: &'a [Entry], turn: &'a str) -> impl DoubleEndedIterator<Item = &'a TurnEnd> {
    log.iter().filter(move |entry| entry.turn.as_str() == turn).filter_map(|entry| match &entry.kind {
        EntryKind::TurnEnded(end) => Some(end),
        _ => None,
    })
}

/// Checks that the messages of a request are valid, and that the user speaks first.
pub(crate) fn check_prompt(messages: &[Message]) {
    let said: Vec<_> = messages.iter().filter(|message| message.role() != Role::System).collect();
    assert_eq!(validate_transcript(said.iter().copied()), [], "the model was sent {said:#?}");
    assert!(said.first().is_some_and(|first| first.role() == Role::User), "the user speaks first");
}

/// The entries of a turn stand together, and it has one input: a message of the user, or the results after an approval.
fn check_turns(log: &[Entry]) {
    let mut seen = HashSet::new();
    for entries in log.chunk_by(|one, next| one.turn == next.turn) {
        let turn = &entries[0].turn;
        assert!(seen.insert(turn), "the entries of {turn} do not stand together");
        let roles: Vec<_> =
            entries.iter().filter_map(|entry| entry.kind.as_message()).map(Message::role).collect();
        let results = usize::from(roles.first() == Some(&Role::Tool));
        let inputs = roles.iter().filter(|role| **role == Role::User).count() + results;
        assert_eq!(inputs, 1, "inputs of {turn}");
    }
}

/// No call was started twice, and those that must not be are announced in the log.
fn check_starts(log: &[Entry], starts: &[(String, String)]) {
    let announced: HashSet<_> = log
        .iter()
        .filter_map(|entry| match &entry.kind {
            EntryKind::CallStarted(start) => Some(start.key.to_string()),
            _ => None,
        })
        .collect();
    let mut seen = HashSet::new();
    for (tool, key) in starts {
        assert!(seen.insert(key), "call {key} of `{tool}` was started twice");
        let once = ONCE.contains(&tool.as_str());
        assert!(
            !once || announced.contains(key),
            "call {key} of `{tool}` runs without its start being stored"
        );
    }
}
