//! `Automaton`: a pattern as the automaton that a search runs.

use std::collections::HashSet;

use regex_automata::nfa::thompson::{BuildError, NFA, State, WhichCaptures};
use regex_automata::util::look::Look;
use regex_automata::util::primitives::StateID;
use regex_syntax::hir::Hir;

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

    pub(super) fn start(&self) -> StateID {
        self.nfa.start_anchored()
    }

    pub(super) fn state(&self, id: StateID) -> &State {
        self.nfa.state(id)
    }

    /// Checks whether a match can begin with this byte.
    pub(super) fn begins_with(&self, byte: u8) -> bool {
        self.first.get(usize::from(byte)).is_some_and(|begins| *begins)
    }

    /// Returns the state after a byte.
    pub(super) fn after(&self, id: StateID, byte: u8) -> Option<StateID> {
        after(self.nfa.state(id), byte)
    }

    /// Checks an assertion, such as `\b`, between two characters.
    ///
    /// `around` has the character before the position, if any, then the one after it.
    pub(super) fn holds(&self, look: Look, around: &str, at: usize) -> bool {
        self.nfa.look_matcher().matches(look, around.as_bytes(), at)
    }
}

/// The states that were visited at one position of the text.
#[derive(Debug, Clone, Default)]
pub(super) struct Visited {
    /// The position at which each state was visited last, as a number.
    marks: Vec<u64>,
    position: u64,
}

impl Visited {
    /// Forgets all states.
    pub(super) fn clear(&mut self) {
        self.position += 1;
    }

    /// Adds a state of the automaton, and returns whether it is new.
    pub(super) fn insert(&mut self, id: StateID, automaton: &Automaton) -> bool {
        if self.marks.is_empty() {
            self.marks.resize(automaton.nfa.states().len(), 0);
        }
        let mark = self.marks.get_mut(id.as_usize()).filter(|mark| **mark != self.position);
        mark.map(|mark| *mark = self.position).is_some()
    }
}

/// Appends the states that follow one without a byte, the preferred one last.
pub(super) fn push_following(state: &State, stack: &mut Vec<StateID>) {
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
