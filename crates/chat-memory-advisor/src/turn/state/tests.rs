//! Tests of `turn::state`.

use advisor_core::FinishReason;
use conversation_store::InMemoryStore;
use futures::FutureExt;

use super::*;
use crate::Window;
use crate::tests::{turn, turn_memory};
use crate::transcript::repair::Pieces;

fn state() -> TurnState {
    let memory = turn_memory(InMemoryStore::new(), "t", Window::All.into()).0;
    let hold = memory.lease.acquire(None).now_or_never().unwrap().unwrap();
    let pieces = Pieces { earlier: Vec::new(), running: Vec::new() };
    TurnState::new(hold, Version::EMPTY, Prompt::new(None, pieces, &memory.measure).unwrap().0, None)
}

#[test]
fn turn_has_a_stored_end_only_after_one() {
    let ended = Life::Ended(TurnEnd::Completed(FinishReason::Stop));
    assert!(ended.has_stored_end());
    for after_end in [true, false] {
        assert_eq!(Life::Running { after_end }.has_stored_end(), after_end);
        assert_eq!(Life::BrokenOff { after_end }.has_stored_end(), after_end);
    }
}

#[test]
fn law_k3_stopped_turn_overrides_only_its_earlier_end() {
    let (mut state, end) = (state(), TurnEnd::Interrupted { partial: "so far".into() });
    assert_eq!(state.unfinished(&turn("t"), 1, &end).unwrap().stopped, StoppedWhile::Running);
    state.life = Life::Running { after_end: true };
    assert_eq!(state.unfinished(&turn("t"), 1, &end).unwrap().stopped, StoppedWhile::AfterEnd);
}

#[test]
fn only_a_running_turn_is_broken_off() {
    let mut state = state();
    state.break_off();
    assert!(matches!(state.life, Life::BrokenOff { after_end: false }), "{:?}", state.life);
    state.life = Life::Running { after_end: true };
    state.break_off();
    assert!(matches!(state.life, Life::BrokenOff { after_end: true }), "{:?}", state.life);
    state.life = Life::Ended(TurnEnd::RolledBack);
    state.break_off();
    assert!(matches!(state.life, Life::Ended(_)));
}
