//! `Search`: finds the matches of a pattern in pieces of text, with the smallest hold-back.

use std::collections::HashSet;
use std::mem;
use std::ops::Range;

use regex_automata::nfa::thompson::{BuildError, NFA, State, WhichCaptures};
use regex_automata::util::look::Look;
use regex_automata::util::primitives::StateID;
use regex_syntax::hir::Hir;

use super::{Found, Searched};

/// A search for the matches in the text of one block, which arrives in pieces.
///
/// It follows all possible matches at a time, each as a thread of the automaton, so it reads each byte once (a Pike
/// VM). Only the text behind a match is read again, if it was read to decide about that match.
///
/// To search the last bytes again with `regex` is simpler, but then readers lag by the longest match in any
/// text. A lazy DFA cannot decide `\b` beside letters that are not ASCII, and does not know where a match
/// begins.
#[derive(Debug, Clone, Default)]
pub(super) struct Search {
    /// The last character before the pending text: `\b` and `^` look at it.
    before: Option<char>,
    /// The number of bytes of the pending text that were read.
    at: usize,
    /// The possible matches, the preferred one first. The first one also begins first.
    threads: Vec<Thread>,
    /// The match, unless a thread that is left finds a preferred one.
    found: Option<Range<usize>>,
    /// The states that were visited at the current position.
    visited: Visited,
    /// Buffers that are empty between calls, kept for their memory.
    spare: Vec<Thread>,
    stack: Vec<StateID>,
    around: String,
}

/// A possible match.
#[derive(Debug, Clone, Copy)]
struct Thread {
    state: StateID,
    /// The byte at which it begins.
    start: usize,
}

impl Search {
    /// Returns the first match in the pending text, if it is decided.
    ///
    /// The pending text begins with what [`forget`](Self::forget) left of the last one.
    pub(super) fn find(&mut self, automaton: &Automaton, text: Searched<'_>) -> Found<Range<usize>> {
        // Assertions at the end of the last text wait for the next character.
        self.follow(automaton, text, Some);
        loop {
            if self.threads.is_empty() {
                if let Some(found) = self.found.take() {
                    self.at = found.end;
                    return Found::Match(found);
                }
                self.skip(automaton, &text);
            }
            match text.as_bytes().get(self.at) {
                Some(byte) => self.read(automaton, text, *byte),
                None if text.is_at_end() && !self.threads.is_empty() => self.threads.clear(),
                None => return Found::Nothing(self.undecided()),
            }
        }
    }

    /// Returns the beginning of a match that can only become longer or shorter: no thread that is left begins earlier.
    pub(super) fn certain_start(&self) -> Option<usize> {
        let start = self.found.as_ref()?.start;
        self.threads.first().is_none_or(|thread| thread.start == start).then_some(start)
    }

    /// Forgets the front of the pending text, which was emitted or replaced.
    pub(super) fn forget(&mut self, front: &str) {
        self.before = front.chars().next_back().or(self.before);
        self.at = self.at.saturating_sub(front.len());
        for thread in &mut self.threads {
            thread.start = thread.start.saturating_sub(front.len());
        }
        if let Some(found) = &mut self.found {
            *found = found.start.saturating_sub(front.len())..found.end.saturating_sub(front.len());
        }
    }

    /// Returns the last character before this byte of the pending text.
    fn before(&self, text: &str, at: usize) -> Option<char> {
        text.get(..at).and_then(|front| front.chars().next_back()).or(self.before)
    }

    /// Returns the first byte at which a match may still begin.
    fn undecided(&self) -> usize {
        self.threads.first().map_or(self.at, |thread| thread.start)
    }

    /// Skips text in which no match can begin.
    fn skip(&mut self, automaton: &Automaton, text: &str) {
        let rest = text.as_bytes().get(self.at..).unwrap_or_default();
        self.at += rest.iter().position(|byte| automaton.begins_with(*byte)).unwrap_or(rest.len());
        self.visited.clear();
    }

    fn read(&mut self, automaton: &Automaton, text: Searched<'_>, byte: u8) {
        // A match that begins later is not the first one.
        if self.found.is_none() && automaton.begins_with(byte) {
            self.enter(automaton, text, Thread { state: automaton.start(), start: self.at });
        }
        self.at += 1;
        self.follow(automaton, text, |thread| {
            automaton.after(thread.state, byte).map(|state| Thread { state, ..thread })
        });
    }

    /// Moves each thread, or ends it, and enters the states that follow.
    fn follow(
        &mut self,
        automaton: &Automaton,
        text: Searched<'_>,
        moved: impl Fn(Thread) -> Option<Thread>,
    ) {
        let mut threads = mem::replace(&mut self.threads, mem::take(&mut self.spare));
        self.visited.clear();
        for thread in threads.drain(..).filter_map(moved) {
            if self.enter(automaton, text, thread) {
                break;
            }
        }
        self.spare = threads;
    }

    /// Adds a thread in each state that follows without a byte.
    ///
    /// Returns whether that completes a match, which is preferred to all threads behind this one.
    fn enter(&mut self, automaton: &Automaton, text: Searched<'_>, thread: Thread) -> bool {
        self.stack.push(thread.state);
        while let Some(id) = self.stack.pop() {
            if !self.visited.insert(id, automaton) {
                continue;
            }
            match automaton.state(id) {
                State::Match { .. } => {
                    self.found = Some(thread.start..self.at);
                    self.stack.clear();
                    return true;
                }
                State::ByteRange { .. } | State::Sparse(_) | State::Dense(_) => {
                    self.threads.push(Thread { state: id, ..thread });
                }
                State::Look { look, next } => match self.holds(automaton, *look, text) {
                    Some(true) => self.stack.push(*next),
                    Some(false) => {}
                    None => self.threads.push(Thread { state: id, ..thread }),
                },
                state => push_following(state, &mut self.stack),
            }
        }
        false
    }

    /// Checks an assertion at the current position. `None`: it depends on the next character.
    fn holds(&mut self, automaton: &Automaton, look: Look, text: Searched<'_>) -> Option<bool> {
        let next = text.get(self.at..)?.chars().next();
        if next.is_none() && !text.is_at_end() {
            return None;
        }
        self.around.clear();
        self.around.extend(self.before(&text, self.at));
        let at = self.around.len();
        self.around.extend(next);
        Some(automaton.holds(look, &self.around, at))
    }
}

/// A regular expression as a nondeterministic automaton, which reads a text byte by byte.
#[derive(Debug)]
pub(super) struct Automaton {
    nfa: NFA,
    /// The bytes with which a match can begin.
    first: ByteSet,
}

type ByteSet = [bool; 1 + u8::MAX as usize];

impl Automaton {
    /// The maximum size in memory, which is also that of `regex`.
    const BYTES: usize = 10 << 20;

    pub(super) fn new(pattern: &Hir) -> Result<Self, Box<BuildError>> {
        let limits = NFA::config().which_captures(WhichCaptures::None).nfa_size_limit(Some(Self::BYTES));
        let nfa = NFA::compiler().configure(limits).build_from_hir(pattern)?;
        Ok(Self { first: first_bytes(&nfa), nfa })
    }

    fn start(&self) -> StateID {
        self.nfa.start_anchored()
    }

    fn state(&self, id: StateID) -> &State {
        self.nfa.state(id)
    }

    /// Checks whether a match can begin with this byte.
    fn begins_with(&self, byte: u8) -> bool {
        self.first.get(usize::from(byte)).is_some_and(|begins| *begins)
    }

    /// Returns the state after a byte.
    fn after(&self, id: StateID, byte: u8) -> Option<StateID> {
        after(self.nfa.state(id), byte)
    }

    /// Checks an assertion, such as `\b`, between two characters.
    ///
    /// `around` has the character before the position, if any, then the one after it.
    fn holds(&self, look: Look, around: &str, at: usize) -> bool {
        self.nfa.look_matcher().matches(look, around.as_bytes(), at)
    }
}

/// The states that were visited at one position of the text.
#[derive(Debug, Clone, Default)]
struct Visited {
    /// The position at which each state was visited last, as a number.
    marks: Vec<u64>,
    position: u64,
}

impl Visited {
    /// Forgets all states.
    fn clear(&mut self) {
        self.position += 1;
    }

    /// Adds a state of the automaton, and returns whether it is new.
    fn insert(&mut self, id: StateID, automaton: &Automaton) -> bool {
        if self.marks.is_empty() {
            self.marks.resize(automaton.nfa.states().len(), 0);
        }
        let mark = self.marks.get_mut(id.as_usize()).filter(|mark| **mark != self.position);
        mark.map(|mark| *mark = self.position).is_some()
    }
}

/// Appends the states that follow one without a byte, the preferred one last.
fn push_following(state: &State, stack: &mut Vec<StateID>) {
    match state {
        State::Look { next, .. } | State::Capture { next, .. } => stack.push(*next),
        State::Union { alternates } => stack.extend(alternates.iter().rev()),
        State::BinaryUnion { alt1, alt2 } => stack.extend([*alt2, *alt1]),
        State::ByteRange { .. } | State::Sparse(_) | State::Dense(_) | State::Fail | State::Match { .. } => {}
    }
}

fn after(state: &State, byte: u8) -> Option<StateID> {
    match state {
        State::ByteRange { trans } => trans.matches_byte(byte).then_some(trans.next),
        State::Sparse(transitions) => transitions.matches_byte(byte),
        State::Dense(transitions) => transitions.matches_byte(byte),
        _ => None,
    }
}

fn first_bytes(nfa: &NFA) -> ByteSet {
    let mut first = [false; 1 + u8::MAX as usize];
    let (mut stack, mut visited) = (vec![nfa.start_anchored()], HashSet::new());
    while let Some(id) = stack.pop() {
        if visited.insert(id) {
            let state = nfa.state(id);
            for (byte, begins) in (0..=u8::MAX).zip(&mut first) {
                *begins |= after(state, byte).is_some();
            }
            push_following(state, &mut stack);
        }
    }
    first
}
