//! Two processes that run one turn.

use advisor_chain::memory::store::{BatchKey, NewEntry};
use advisor_tests::prelude::*;
use tokio::task::yield_now;

use crate::at_most_once::world::{World, key};

/// Two processes run the same turn at once, since one was considered dead. Both write the same start, but the
/// store lets only one of them start the call.
#[tokio::test]
async fn law_t5_one_of_two_turn_runs_starts_call() {
    for place in PLACES {
        let world = World::new(place);
        let gate = Gate::new();
        let answers = vec![Answer::from_calls([("1", "charge", "{}")])];
        let memory = ChatMemoryAdvisor::new(world.store.clone());
        let process = world.hooked(memory, answers, Waits(gate.clone()));
        let mut turn = process.turn("go");
        while !gate.is_reached() {
            let _ = futures::poll!(turn.next());
            yield_now().await;
        }
        let log = world.log().await;
        let id = log[0].turn.clone();
        let start = EntryKind::CallStarted(CallStart::new(CallKey::new(id.clone(), 1, 0), "1"));
        let other = Batch::new(BatchKey::new(id.clone(), 1, "started"), vec![NewEntry::new(id, start)]);
        let version = world.store.load(&key(), ReadRange::All).await.unwrap().version;
        world.store.append(&key(), version, other).await.unwrap();
        gate.release();
        let error = turn.call().await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::StoreConflict { .. }), "{place:?}: {error:?}");
        assert_eq!(*world.starts.lock().unwrap(), BTreeMap::new(), "{place:?}");
    }
}

/// Waits after the answer is stored and before its calls are announced.
struct Waits(Gate);

#[async_trait]
impl LoopHooks for Waits {
    async fn after_round(&self, response: ChatResponse, _round: u32) -> Result<ChatResponse> {
        self.0.pass().await;
        Ok(response)
    }
}
