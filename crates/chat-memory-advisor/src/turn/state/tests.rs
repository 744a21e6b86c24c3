//! Tests of `turn::state`.

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
fn law_k3_stopped_turn_overrides_only_its_earlier_end() {
    let (mut state, end) = (state(), TurnEnd::Interrupted { partial: "so far".into() });
    assert_eq!(state.unfinished(&turn("t"), 1, &end).unwrap().stopped, StoppedWhile::Running);
    state.life = Life::Running { after_end: true };
    assert_eq!(state.unfinished(&turn("t"), 1, &end).unwrap().stopped, StoppedWhile::AfterEnd);
}
