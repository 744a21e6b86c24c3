//! Stores that fail.

use advisor_tests::prelude::*;

use crate::at_most_once::world::{PLACES, World, check_texts, fine, poll, two_rounds};

#[tokio::test]
async fn law_o5_t5_the_store_may_fail_at_any_operation() {
    for place in PLACES {
        for operation in 0..operations_of_a_turn(place).await {
            for fault in StoreFault::ALL {
                let what = format!("{place:?}, {fault:?} at operation {operation}");
                let world = World::new(place);
                let process = world.process(two_rounds());
                world.store.fail_at(operation, fault);
                let ended = poll(process.turn("go"), 100).await;
                assert_eq!(world.store.pending_faults(), 0, "{what}: the turn comes so far");
                world.check_starts(&what).await;
                if operation == STARTS && matches!(fault, StoreFault::Unavailable | StoreFault::Conflict) {
                    assert!(ended, "{what}");
                    check_nothing_started(&what, &world, fault).await;
                }
                let sent = world.process_of(process.memory, fine()).next(&what).await;
                world.check_starts(&what).await;
                check_texts(&what, &sent, &world.log().await, &world.starts);
            }
        }
    }
}

/// Load, input, answer, starts: this operation stores that calls are about to be started.
const STARTS: usize = 3;

async fn operations_of_a_turn(place: Phase) -> usize {
    let world = World::new(place);
    world.process(two_rounds()).turn("go").call().await.unwrap();
    world.store.operations()
}

/// The starts of calls could not be stored, so no call starts.
async fn check_nothing_started(what: &str, world: &World, fault: StoreFault) {
    assert_eq!(*world.starts.lock().unwrap(), BTreeMap::new(), "{what}: no tool runs");
    let log = world.log().await;
    let texts = log.iter().filter_map(|entry| entry.kind.as_message()?.tool_result());
    let texts: Vec<_> = texts.map(ToolResult::text).collect();
    let not_started = ["not started: an error ended the turn"; 3];
    assert!(texts.is_empty() && fault == StoreFault::Conflict || texts == not_started, "{what}: {texts:?}");
}
