//! Tests of `turn::state`.

use std::sync::Arc;

use advisor_core::{ConversationKey, FinishReason};

use super::*;
use crate::conversation::Registry;
use crate::conversation::lease_state::LeaseState;
use crate::conversation::lock::Owner;
use crate::test_logs::turn;
use crate::transcript::window::Fitted;

fn state() -> TurnState {
    let (registry, key) = (Arc::new(Registry::default()), ConversationKey::new("c").unwrap());
    let lease = Arc::new(LeaseState::new(&Turn::new(turn("t"))));
    let owner: Arc<dyn Owner> = Arc::<LeaseState>::clone(&lease);
    let guard = ConversationGuard::new(&registry, &lease, registry.locks.try_lock(&key, &owner).unwrap());
    let fitted = Fitted { earlier: Vec::new(), running: Vec::new(), full: false };
    TurnState::new(guard, Version::EMPTY, Prompt::new(Vec::new(), None, &fitted, Arc::default()), None)
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
    assert_eq!(state.unfinished(&turn("t"), 1, &end).unwrap().stage, Stage::Running);
    state.life = Life::Running { after_end: true };
    assert_eq!(state.unfinished(&turn("t"), 1, &end).unwrap().stage, Stage::AfterEnd);
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
