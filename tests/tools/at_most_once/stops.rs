//! Turns that are dropped, cancelled or crash, and the turn after them.

use advisor_chain::tools::OUTCOME_UNKNOWN;
use advisor_tests::prelude::*;
use tokio::task::yield_now;

use crate::at_most_once::world::{World, check_texts, fine, poll, polls_of_a_turn, two_rounds};

#[tokio::test]
async fn law_t5_t1_k4_drop_or_crash_starts_and_reports_call_once() {
    let mut seen = [0; 3];
    for place in PLACES {
        for exclusive in [false, true] {
            let world = World { exclusive, ..World::new(place) };
            for crashes in [false, true] {
                for polls in 0..=polls_of_a_turn(&world, two_rounds).await {
                    let what = format!("{place:?}, exclusive {exclusive}, crash {crashes}, {polls} polls");
                    let world = World { exclusive, ..World::new(place) };
                    let first = world.process(two_rounds());
                    poll(first.turn("go"), polls).await;
                    world.check_starts(&what).await;
                    let next = if crashes {
                        world.process(fine())
                    } else {
                        world.process_of(first.memory.clone(), fine())
                    };
                    let sent = next.next(&what).await;
                    world.check_starts(&what).await;
                    let log = world.log().await;
                    if !log.is_empty() && log[0].kind.as_message().is_some_and(|said| said.text() == "go") {
                        let told = check_texts(&what, &sent, &log, &world.starts);
                        seen = std::array::from_fn(|n| seen[n] + told[n]);
                    }
                    // The sent messages are stored, and stay the same in the next turn.
                    let again = world.process(fine()).next(&what).await;
                    assert_eq!(again[..sent.len()], sent, "{what}");
                }
            }
        }
    }
    assert!(seen.iter().all(|times| *times > 20), "results, to be verified, unknown: {seen:?}");
}

/// A tool that was running when its turn was cancelled, dropped or undone.
#[tokio::test]
async fn law_t5_k3_stopped_running_tool_needs_verification_unless_rolled_back() {
    for place in PLACES {
        for on_drop in [OnDrop::KeepPartial, OnDrop::Rollback] {
            for cancels in [false, true] {
                let world = World::new(place);
                let process = world.process(two_rounds());
                let mut turn = process.turn("go").with_on_drop(on_drop);
                while world.starts.lock().unwrap().is_empty() {
                    let _ = futures::poll!(turn.next());
                    yield_now().await;
                }
                if cancels {
                    turn.handle().cancel(on_drop);
                    turn.call().await.unwrap_err();
                } else {
                    drop(turn);
                }
                let what = format!("{place:?} {on_drop:?} cancelled {cancels}");
                let next = world.process_of(process.memory, fine());
                let sent = next.next(&what).await;
                let told: Vec<_> =
                    sent.iter().filter_map(Message::tool_result).map(|result| result.text()).collect();
                let expected = match on_drop {
                    OnDrop::Rollback => vec![],
                    _ => vec![VERIFY_BEFORE_RETRYING, OUTCOME_UNKNOWN, VERIFY_BEFORE_RETRYING],
                };
                assert_eq!(told, expected, "{what}");
                world.check_starts(&what).await;
            }
        }
    }
}
